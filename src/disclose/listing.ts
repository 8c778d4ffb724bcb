import type { Strategy } from "../config/agentOptions.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import { cut, oneLine } from "../text/clean.js";

/** One server in the listing. Its texts are untrusted. */
export interface ListedServer {
  readonly serverName: string;
  readonly purpose: string | undefined;
  readonly instructions: string | undefined;
  /** Deferred tools only. */
  readonly tools: readonly ToolEntry[];
}

export interface ListingInput {
  readonly servers: readonly ListedServer[];
  readonly connecting: readonly string[];
  /** Servers that connect on demand. */
  readonly onDemand: readonly {
    readonly serverName: string;
    readonly purpose: string | undefined;
  }[];
  readonly unavailable: readonly string[];
  /** Characters of the whole block, including tags and newlines. */
  readonly budgetChars: number;
  /** Default: `"promote"`. */
  readonly strategy?: Strategy | undefined;
  /** Whether a tool may be named. Default: every tool may. */
  readonly mayShow?: ((tool: ToolEntry) => boolean) | undefined;
}

const OPEN = "<AVAILABLE_MCP_TOOLS>\n";
const CLOSE = "</AVAILABLE_MCP_TOOLS>";
/** The name of the search tool in texts for the model. */
export function searchName(strategy: Strategy): string {
  return strategy === "provider" ? "your tool search" : "search_mcp_tools";
}

const INTROS: Readonly<Record<Strategy, string>> = {
  promote:
    "More tools are available from MCP servers. To use one, call search_mcp_tools with the job in plain words or a tool name from this list; what it finds becomes callable.\n",
  execute:
    "More tools are available from MCP servers. To use one, call search_mcp_tools with the job in plain words or a tool name from this list; run what it finds with execute_mcp_tool.\n",
  provider:
    "More tools are available from MCP servers. Find them with your tool search, by the job or by a name from this list.\n",
};
const MAX_LINE_CHARS = 250;
const MAX_PURPOSE_CHARS = 120;
const MAX_INSTRUCTION_CHARS = 400;
const MIN_DESCRIPTION_CHARS = 16;
/* Reserved for the overflow line and for the newlines before the block. */
const OVERFLOW_CHARS = 110;
const LEAD_CHARS = 2;

/**
 * Renders the `<AVAILABLE_MCP_TOOLS>` block from visible deferred tools, or `""` when there is
 * nothing to say. Pure. The budget is a hard cap. It goes to server names first, then to tool names
 * by fair share (small servers first), then to descriptions, then to server instructions.
 */
export function renderListing(input: ListingInput): string {
  const {
    servers,
    connecting,
    onDemand,
    unavailable,
    budgetChars,
    strategy = "promote",
    mayShow = () => true,
  } = input;
  const deferring = servers.filter(({ tools }) => tools.length > 0);
  const hasSearchable =
    deferring.length + connecting.length + onDemand.length + unavailable.length > 0;
  const instructing = servers.filter(
    ({ instructions }) => instructions !== undefined && instructions.trim() !== "",
  );
  if (!hasSearchable && instructing.length === 0) return "";

  const room = new Room(budgetChars - OPEN.length - CLOSE.length - LEAD_CHARS - OVERFLOW_CHARS);
  const intro = hasSearchable && room.take(INTROS[strategy].length) ? INTROS[strategy] : "";
  const waiting = [
    nameLine("Still connecting", connecting, room),
    nameLine("Not available now", unavailable, room),
  ].join("");
  const lazily = onDemand
    .map(({ serverName, purpose }) => lazyLine(serverName, purpose, room))
    .join("");
  const { shown, hidden } = chooseServers(deferring, room);
  const named = new Map(
    [...chooseNamed(shown, room)].map((server) => [server, server.tools.filter(mayShow)]),
  );
  const purposes = choosePurposes(
    shown.filter((server) => !named.has(server)),
    room,
  );
  const descriptionChars = chooseDescriptionChars([...named.values()].flat(), room);
  const body = shown.map((server) => {
    const tools = named.get(server) ?? [];
    if (tools.length === 0) return "";
    return (
      (hasHeader(server) ? `${label({ ...server, tools })}:\n` : "") +
      tools.map((tool) => toolLine(tool, descriptionChars)).join("")
    );
  });
  const withPurpose = shown.flatMap((server) => {
    const purpose = purposes.get(server);
    return purpose === undefined ? [] : [`${label(server)}: ${purpose}\n`];
  });
  const bare = shown.filter((server) => !named.has(server) && !purposes.has(server)).map(label);
  const bareLine = bare.length === 0 ? "" : `Servers: ${bare.join(", ")}\n`;
  const instructions = instructing.map((server) => instructionLine(server, room)).join("");
  const text =
    intro +
    body.join("") +
    withPurpose.join("") +
    bareLine +
    overflowLine(hidden, strategy) +
    lazily +
    waiting +
    instructions;
  return `${OPEN}${text}${CLOSE}`;
}

/** Bound names of the tools that a listing names. */
export function listedNames(listing: string): string[] {
  return [...listing.matchAll(/^- ([^\s:]+)/gm)].map(([, name]) => name!);
}

class Room {
  left: number;

  constructor(chars: number) {
    this.left = chars;
  }

  /** Takes characters; returns false when too few are left. */
  take(chars: number): boolean {
    if (chars > this.left) return false;
    this.left -= chars;
    return true;
  }
}

/** Servers whose names fit, in order. The overflow line counts the rest. */
function chooseServers(
  servers: readonly ListedServer[],
  room: Room,
): { shown: ListedServer[]; hidden: ListedServer[] } {
  const shown: ListedServer[] = [];
  const hidden: ListedServer[] = [];
  if (servers.length > 0) room.take("Servers: \n".length);
  for (const server of servers) (room.take(label(server).length + 2) ? shown : hidden).push(server);
  return { shown, hidden };
}

/** Servers whose tools are named: cheapest first, each within an equal share of the room left. */
function chooseNamed(servers: readonly ListedServer[], room: Room): Set<ListedServer> {
  const named = new Set<ListedServer>();
  const byCost = servers
    .map((server) => ({
      server,
      cost: server.tools.reduce((sum, tool) => sum + tool.boundName.length + 3, 0),
    }))
    .sort((a, b) => a.cost - b.cost);
  byCost.forEach(({ server, cost }, position) => {
    const gain = hasHeader(server) ? cost : cost - label(server).length - 2;
    const share = room.left / (byCost.length - position);
    if (gain <= share && room.take(gain)) named.add(server);
  });
  return named;
}

function choosePurposes(servers: readonly ListedServer[], room: Room): Map<ListedServer, string> {
  const purposes = new Map<ListedServer, string>();
  servers.forEach((server, position) => {
    const share = Math.floor(room.left / (servers.length - position));
    const purpose =
      server.purpose === undefined
        ? ""
        : oneLine(server.purpose, Math.min(MAX_PURPOSE_CHARS, share - 3));
    if (
      purpose.length >= Math.min(MIN_DESCRIPTION_CHARS, server.purpose?.length ?? 0) &&
      purpose !== "" &&
      room.take(purpose.length + 3)
    ) {
      purposes.set(server, purpose);
    }
  });
  return purposes;
}

/** The description length that fits for all tools; 0 when it would be too short to be useful. */
function chooseDescriptionChars(tools: readonly ToolEntry[], room: Room): number {
  const lengths = tools.map((tool) => descriptionOf(tool, MAX_LINE_CHARS).length);
  const cost = (chars: number): number =>
    lengths.reduce((sum, length) => sum + (length === 0 ? 0 : Math.min(length, chars) + 2), 0);
  let low = 0;
  let high = MAX_LINE_CHARS;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (cost(middle) <= room.left) low = middle;
    else high = middle - 1;
  }
  const chars = low < MIN_DESCRIPTION_CHARS && Math.max(0, ...lengths) > low ? 0 : low;
  if (chars > 0) room.take(cost(chars));
  return chars;
}

function toolLine(tool: ToolEntry, descriptionChars: number): string {
  const description =
    descriptionChars === 0 ? "" : cut(descriptionOf(tool, MAX_LINE_CHARS), descriptionChars);
  return description === "" ? `- ${tool.boundName}\n` : `- ${tool.boundName}: ${description}\n`;
}

/** The description that fits into a line of `lineChars` characters. */
function descriptionOf(tool: ToolEntry, lineChars: number): string {
  return oneLine(
    tool.description === "" ? (tool.title ?? "") : tool.description,
    lineChars - tool.boundName.length - 4,
  );
}

/**
 * True when bound names do not show the server's name (option `names`): it then gets a header line.
 */
function hasHeader({ serverName, tools }: ListedServer): boolean {
  return !tools.every(({ boundName }) => boundName.startsWith(`mcp__${serverName}__`));
}

function label({ serverName, tools }: ListedServer): string {
  return `${oneLine(serverName, 64)} (${tools.length} ${tools.length === 1 ? "tool" : "tools"})`;
}

function nameLine(title: string, serverNames: readonly string[], room: Room): string {
  if (serverNames.length === 0) return "";
  const line = `${title}: ${serverNames.map((name) => oneLine(name, 64)).join(", ")}\n`;
  if (room.take(line.length)) return line;
  const short = `${title}: ${serverNames.length} servers\n`;
  return room.take(short.length) ? short : "";
}

function lazyLine(serverName: string, purpose: string | undefined, room: Room): string {
  const head = `${oneLine(serverName, 64)} (opened when searched)`;
  const line =
    purpose === undefined ? `${head}\n` : `${head}: ${oneLine(purpose, MAX_PURPOSE_CHARS)}\n`;
  if (room.take(line.length)) return line;
  return room.take(head.length + 1) ? `${head}\n` : "";
}

function instructionLine({ serverName, instructions }: ListedServer, room: Room): string {
  const line = `Instructions of server ${oneLine(serverName, 64)}: ${oneLine(instructions ?? "", MAX_INSTRUCTION_CHARS)}\n`;
  return room.take(line.length) ? line : "";
}

function overflowLine(hidden: readonly ListedServer[], strategy: Strategy): string {
  if (hidden.length === 0) return "";
  const tools = hidden.reduce((sum, server) => sum + server.tools.length, 0);
  return `… and ${tools} tools of ${hidden.length} more servers, found by ${searchName(strategy)}\n`;
}
