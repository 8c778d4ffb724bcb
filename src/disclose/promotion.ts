import type { ToolEntry } from "../catalog/toolEntry.js";
import type { Budgets } from "../config/defaults.js";
import type { Strategy } from "../config/agentOptions.js";
import {
  EMPTY_ACTIVATION,
  type McpActivation,
  type McpSent,
  type McpStateUpdate,
  type McpThreadState,
  type Promotion,
} from "../state.js";
import type { ServerView, View } from "./view.js";

/** A tool bound in a model call: a server's tool, or one of our own by its name. */
export type BoundTool =
  | { readonly kind: "mcp"; readonly entry: ToolEntry }
  | { readonly kind: "synthetic"; readonly name: string };

/** Characters of a tool's definition as the model client gets it. */
export type SizeOf = (entry: ToolEntry) => number;

const rawSize: SizeOf = ({ definitionChars }) => definitionChars;

interface Placed {
  readonly tool: BoundTool;
  readonly at: number;
  readonly order: number;
  readonly name: string;
}

/** Positions reserved for each server, so that servers of the same write do not mix. */
const ORDERS_PER_SERVER = 1_000_000;

/**
 * Tools of a model call in the order first bound. A step extends the one before, except after an
 * eviction or a changed tool.
 */
export function toolsToBind(
  view: View,
  sent: McpSent,
  activation: McpActivation,
  budgets: Budgets,
  sizeOf: SizeOf = rawSize,
): BoundTool[] {
  const placed: Placed[] = Object.entries(sent.synthetic).map(([name, at]) => ({
    tool: { kind: "synthetic", name },
    at,
    order: -1,
    name,
  }));
  const loaded = new Set<string>();
  Object.entries(sent.servers).forEach(([serverName, { at, names }], serverPosition) => {
    const server = view.server(serverName);
    if (server === undefined) return;
    const known =
      names === undefined ? undefined : new Map(names.map((name, position) => [name, position]));
    alwaysLoadedTools(server, sent).forEach((entry, position) => {
      const added = activeOf(activation, entry);
      const recorded = known?.get(entry.boundName);
      // Joined the server later: bound only when promoted.
      if (known !== undefined && recorded === undefined && added === undefined) return;
      loaded.add(entry.boundName);
      placed.push({
        tool: { kind: "mcp", entry },
        at: recorded === undefined ? (added?.at ?? at) : at,
        order:
          recorded === undefined && added !== undefined
            ? added.order
            : serverPosition * ORDERS_PER_SERVER + (recorded ?? position),
        name: entry.boundName,
      });
    });
  });
  for (const [entry, { at, order }] of keptPromotions(view, activation, loaded, budgets, sizeOf)) {
    placed.push({ tool: { kind: "mcp", entry }, at, order, name: entry.boundName });
  }
  placed.sort((a, b) => a.at - b.at || a.order - b.order || (a.name < b.name ? -1 : 1));
  return placed.flatMap(({ tool }) =>
    tool.kind === "mcp" && !view.mayShow(tool.entry) ? [] : [tool],
  );
}

/** Tools of a server that a thread binds in every model call. */
export function alwaysLoadedTools(server: ServerView, sent: McpSent): ServerView["tools"] {
  return sent.servers[server.serverName]?.alwaysLoaded === true
    ? server.tools
    : server.alwaysLoaded;
}

/**
 * Promoted tools to bind: all that were used last, then the most recently used within the budgets.
 */
function keptPromotions(
  view: View,
  activation: McpActivation,
  loaded: ReadonlySet<string>,
  budgets: Budgets,
  sizeOf: SizeOf,
): [ToolEntry, Promotion][] {
  const candidates: [ToolEntry, Promotion][] = [];
  for (const [boundName, promotion] of Object.entries(activation.promoted)) {
    if (promotion.gone || loaded.has(boundName)) continue;
    const entry = view.tool(boundName);
    if (entry !== undefined && entry.hash === promotion.hash) candidates.push([entry, promotion]);
  }
  candidates.sort(([, a], [, b]) => b.used - a.used || b.at - a.at || a.order - b.order);
  const newest = candidates[0]?.[1].used;
  let chars = 0;
  return candidates.filter(([entry, { used }], position) => {
    chars += sizeOf(entry);
    return used === newest || (position < budgets.maxPromoted && chars <= budgets.maxPromotedChars);
  });
}

function activeOf(activation: McpActivation, entry: ToolEntry): Promotion | undefined {
  const promotion = Object.hasOwn(activation.promoted, entry.boundName)
    ? activation.promoted[entry.boundName]
    : undefined;
  return promotion?.gone === false ? promotion : undefined;
}

/** The next number for `Promotion.at`. */
export function nextAt(activation: McpActivation, sent: McpSent | undefined): number {
  let highest = 0;
  for (const { at, used } of Object.values(activation.promoted))
    highest = Math.max(highest, at, used);
  for (const { at } of Object.values(sent?.servers ?? {})) highest = Math.max(highest, at);
  for (const at of Object.values(sent?.synthetic ?? {})) highest = Math.max(highest, at);
  return highest + 1;
}

/**
 * The state write that promotes tools which were found or called. Always loaded tools need none. A
 * bound tool only gets a higher `used`; any other (new, gone, changed, evicted) gets a new place at
 * the end.
 * @param bound - Tools that were bound when these were found.
 * @returns `undefined` when there is nothing to write.
 */
export function promote(
  found: readonly ToolEntry[],
  bound: readonly BoundTool[],
  activation: McpActivation,
  sent: McpSent | undefined,
): McpActivation | undefined {
  const boundNames = new Set(
    bound.flatMap((tool) => (tool.kind === "mcp" ? [tool.entry.boundName] : [])),
  );
  const at = nextAt(activation, sent);
  const promoted: Record<string, Promotion> = {};
  found.forEach((entry, order) => {
    const present = activeOf(activation, entry);
    if (!boundNames.has(entry.boundName)) {
      promoted[entry.boundName] = { hash: entry.hash, at, order, used: at, gone: false };
    } else if (present !== undefined) {
      promoted[entry.boundName] = { ...present, used: at };
    }
  });
  return Object.keys(promoted).length === 0 ? undefined : { v: 1, promoted };
}

/**
 * The state write that demotes removed or changed tools; `undefined` when there is nothing to
 * write.
 */
export function demote(
  boundNames: Iterable<string>,
  activation: McpActivation,
  sent: McpSent | undefined,
): McpActivation | undefined {
  const at = nextAt(activation, sent);
  const promoted: Record<string, Promotion> = {};
  for (const boundName of boundNames) {
    const present = Object.hasOwn(activation.promoted, boundName)
      ? activation.promoted[boundName]
      : undefined;
    if (present?.gone === false) promoted[boundName] = { ...present, at, used: at, gone: true };
  }
  return Object.keys(promoted).length === 0 ? undefined : { v: 1, promoted };
}

export function activationOf(state: {
  readonly mcpActivation?: McpActivation | undefined;
}): McpActivation {
  return state.mcpActivation ?? EMPTY_ACTIVATION;
}

/** The state update for tools that were found or called; `undefined` when there is none. */
export function promotionOf(
  view: View,
  found: readonly ToolEntry[],
  state: McpThreadState,
  {
    strategy,
    budgets,
    sizeOf,
  }: { readonly strategy: Strategy; readonly budgets: Budgets; readonly sizeOf?: SizeOf },
): McpStateUpdate | undefined {
  if (strategy === "execute") return undefined;
  const { _mcpSent: sent } = state;
  const activation = activationOf(state);
  const bound = sent === undefined ? [] : toolsToBind(view, sent, activation, budgets, sizeOf);
  const mcpActivation = promote(found, bound, activation, sent);
  return mcpActivation === undefined ? undefined : { mcpActivation };
}
