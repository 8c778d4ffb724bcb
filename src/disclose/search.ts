import type { Strategy } from "../config/agentOptions.js";
import { isRecord } from "../text/isRecord.js";
import type { CatalogSearch } from "../catalog/search/catalogSearch.js";
import { nearestNames, type ToolMatches, type ToolQuery } from "../catalog/search/searchTools.js";
import { schemaText } from "../catalog/schema/schemaText.js";
import { cut, oneLine } from "../text/clean.js";
import type { JsonSchema, ToolEntry } from "../catalog/toolEntry.js";
import type { View } from "./view.js";

export interface SearchArguments {
  /** Each is searched on its own. */
  readonly queries: readonly string[];
  /** Maximum number of tools per query. */
  readonly limit: number;
  /** A server name or a configured category. */
  readonly server: string | undefined;
}

export interface SearchAnswer {
  readonly text: string;
  /** Tools to promote, best first. */
  readonly matches: readonly ToolEntry[];
}

const DEFAULT_LIMIT = 5;
const MAX_LIMIT = 50;
const MAX_QUERIES = 10;
const MAX_DESCRIPTION_CHARS = 200;
const MAX_LISTED_CHARS = 8_000;
/** How often a search is repeated because a policy function hid its results. */
const MAX_ROUNDS = 10;

export function searchToolDescription(strategy: Strategy): string {
  const what =
    strategy === "execute"
      ? "shows their arguments; execute_mcp_tool runs them"
      : "makes them callable";
  return `Finds tools of the connected MCP servers and ${what}. ${SEARCH_ADVICE}`;
}

const SEARCH_ADVICE =
  "Say what you need in a few words: action, object and " +
  'platform, such as "create issue github"; or give the exact name of a tool. One need a query; put several needs in "queries". ' +
  'If nothing fits, search again in other words. "server" alone lists the tools of a server; no arguments lists the servers.';

export const SEARCH_TOOL_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    query: { type: "string", description: "What the tool should do, or its name" },
    queries: { type: "array", items: { type: "string" }, description: "Several needs at once" },
    server: { type: "string", description: "Only tools of this server or category" },
    limit: {
      type: "integer",
      minimum: 1,
      maximum: MAX_LIMIT,
      description: `Tools per query, ${DEFAULT_LIMIT} unless given`,
    },
  },
};

/** Reads the model's arguments. Never throws; an unreadable value counts as not given. */
export function parseSearchArguments(value: unknown): SearchArguments {
  const given = isRecord(value) ? value : {};
  const texts = [
    given["query"],
    ...(Array.isArray(given["queries"]) ? (given["queries"] as unknown[]) : [given["queries"]]),
  ];
  const queries = texts
    .filter((text): text is string => typeof text === "string" && text.trim() !== "")
    .slice(0, MAX_QUERIES);
  const limit = Math.round(Number(given["limit"] ?? DEFAULT_LIMIT));
  const server = given["server"];
  return {
    queries: [...new Set(queries)],
    limit: Number.isFinite(limit) ? Math.min(MAX_LIMIT, Math.max(1, limit)) : DEFAULT_LIMIT,
    server: typeof server === "string" && server.trim() !== "" ? server.trim() : undefined,
  };
}

/**
 * Servers to search: one by name, all of a category, or all visible ones. Empty for an unknown
 * name.
 */
export function searchedServers(view: View, server: string | undefined): readonly string[] {
  const names = view.spokenServers();
  if (server === undefined) return names;
  if (names.includes(server)) return [server];
  return names.filter((serverName) => view.settings(serverName).category === server);
}

/** Answers a search of the visible tools. The caller waits for connecting servers first. */
export async function answerSearch(
  view: View,
  { queries, limit, server }: SearchArguments,
  search: Pick<CatalogSearch, "find">,
  strategy: Strategy = "promote",
): Promise<SearchAnswer> {
  const serverNames = searchedServers(view, server);
  if (server !== undefined && serverNames.length === 0) {
    return {
      text: `There is no server "${oneLine(server, 64)}". Servers: ${view.spokenServers().join(", ")}.`,
      matches: [],
    };
  }
  if (queries.length === 0) {
    if (server === undefined) return { text: listServers(view), matches: [] };
    return {
      text:
        serverNames.map((name) => listTools(view, name)).join("\n") +
        unreachable(view, serverNames),
      matches: [],
    };
  }
  const inScope = new Set(serverNames);
  const accepts = (entry: ToolEntry): boolean =>
    inScope.has(entry.serverName) && view.isVisible(entry);
  const results = await Promise.all(
    queries.map(async (query) => ({
      query,
      ...(await findShown(view, search, { query, limit, accepts })),
    })),
  );
  const matches = interleave(results.map(({ tools }) => tools));
  const missed = results
    .filter(({ tools }) => tools.length === 0)
    .map((result) => describeMiss(result));
  const found =
    matches.length === 0
      ? []
      : [
          `Found ${matches.length} ${matches.length === 1 ? "tool" : "tools"}, ${strategy === "execute" ? "to be run with execute_mcp_tool(name, arguments)" : `callable now by ${matches.length === 1 ? "its name" : "their names"}`}:`,
          ...matches.map((entry) =>
            strategy === "execute"
              ? `${matchLine(entry)}\n  arguments: ${schemaText(entry)}`
              : matchLine(entry),
          ),
        ];
  return { text: [...found, ...missed].join("\n") + unreachable(view, serverNames), matches };
}

/**
 * Finds tools that may be shown: the next match replaces one that the policy's function hides. Asks
 * it only about matches.
 */
export async function findShown(
  view: View,
  search: Pick<CatalogSearch, "find">,
  query: ToolQuery,
): Promise<ToolMatches> {
  if (!view.hasFunction) return search.find(query);
  const hidden = new Set<ToolEntry>();
  const asked = new Set<ToolEntry>();
  const isShown = (entry: ToolEntry): boolean => {
    if (!asked.has(entry) && !view.mayShow(entry)) hidden.add(entry);
    asked.add(entry);
    return !hidden.has(entry);
  };
  let wanted: number | undefined;
  for (let round = 0; ; round += 1) {
    // Doubles the limit, so that a function that hides many tools needs few rounds.
    const limit = query.limit * 2 ** round;
    const found = await search.find({
      ...query,
      limit,
      accepts: (entry) => !hidden.has(entry) && query.accepts(entry),
    });
    // Tools named in the query come on top of the limit.
    wanted ??= Math.max(query.limit, found.tools.length);
    const tools = takeShown(found.tools, wanted, isShown);
    const nearest = found.nearest.filter((name) => {
      const entry = view.tool(name);
      return entry !== undefined && isShown(entry);
    });
    const isComplete =
      tools.length >= Math.min(wanted, found.tools.length) &&
      nearest.length === found.nearest.length;
    if (isComplete || round === MAX_ROUNDS) return { tools, nearest };
  }
}

/** The first tools that may be shown. Does not test those after them. */
function takeShown(
  tools: readonly ToolEntry[],
  limit: number,
  isShown: (entry: ToolEntry) => boolean,
): ToolEntry[] {
  const shown: ToolEntry[] = [];
  for (const entry of tools) {
    if (shown.length >= limit) break;
    if (isShown(entry)) shown.push(entry);
  }
  return shown;
}

/** True when every query names a known tool: then no server need be waited for. */
export function isAnsweredByName(view: View, { queries, server }: SearchArguments): boolean {
  const inScope = new Set(searchedServers(view, server));
  return (
    queries.length > 0 &&
    queries.every((query) => {
      const named = [view.tool(query.trim()), ...view.catalog.toolsNamed(query.trim())];
      return named.some(
        (entry) => entry !== undefined && inScope.has(entry.serverName) && view.shows(entry),
      );
    })
  );
}

/** Text for the model about a tool name that is hidden or does not exist. Both read the same. */
export function unknownToolText(view: View, name: string): string {
  const near = nearestNames(view.catalog, name, (entry) => view.isVisible(entry)).filter((near) =>
    view.shows(view.tool(near)!),
  );
  const hint = near.length === 0 ? "" : ` Similar tools: ${near.join(", ")}.`;
  const away = view.serverNames.find(
    (serverName) =>
      view.server(serverName) === undefined && name.startsWith(`mcp__${serverName}__`),
  );
  const why = away === undefined ? "" : ` Server ${oneLine(away, 64)} is ${view.state(away)} now.`;
  return `The tool "${oneLine(name, 80)}" is not available.${why}${hint} Search for what you need.`;
}

function interleave(lists: readonly (readonly ToolEntry[])[]): ToolEntry[] {
  const result = new Set<ToolEntry>();
  const longest = Math.max(0, ...lists.map((list) => list.length));
  for (let rank = 0; rank < longest; rank += 1)
    for (const list of lists) if (rank < list.length) result.add(list[rank]!);
  return [...result];
}

function matchLine(entry: ToolEntry): string {
  const description = oneLine(entry.description || (entry.title ?? ""), MAX_DESCRIPTION_CHARS);
  const { properties, required } = entry.inputSchema;
  const needed = new Set(Array.isArray(required) ? (required as unknown[]) : []);
  const names = isRecord(properties) ? Object.keys(properties) : [];
  const args = names.slice(0, 12).map((name) => oneLine(name, 40) + (needed.has(name) ? "" : "?"));
  const more = names.length > 12 ? ", …" : "";
  return `- ${entry.boundName}(${args.join(", ")}${more})${description === "" ? "" : `: ${description}`}`;
}

function describeMiss({
  query,
  nearest,
}: {
  readonly query: string;
  readonly nearest: readonly string[];
}): string {
  const hint =
    nearest.length === 0
      ? "Try other words for the action or the object, or list a server's tools."
      : `Similar names: ${nearest.join(", ")}.`;
  return `Nothing fits "${oneLine(query, 100)}". ${hint}`;
}

function listServers(view: View): string {
  const lines = view.spokenServers().map((serverName) => {
    const server = view.server(serverName);
    const settings = view.settings(serverName);
    const count = server === undefined ? view.state(serverName) : `${server.tools.length} tools`;
    const purpose = oneLine(settings.description ?? server?.title ?? "", MAX_DESCRIPTION_CHARS);
    return `- ${oneLine(serverName, 64)} (${count})${purpose === "" ? "" : `: ${purpose}`}`;
  });
  return cut(`Servers:\n${lines.join("\n")}`, MAX_LISTED_CHARS);
}

function listTools(view: View, serverName: string): string {
  const tools = view.server(serverName)?.tools;
  if (tools === undefined) return "";
  const head = `Server ${oneLine(serverName, 64)} has ${tools.length} tools. Search for one by name to make it callable.`;
  // Tests no more tools than fit into the text.
  const shown: ToolEntry[] = [];
  let left = MAX_LISTED_CHARS - head.length;
  for (const entry of tools) {
    if (left < 0) break;
    if (!view.mayShow(entry)) continue;
    shown.push(entry);
    left -= entry.boundName.length + 3;
  }
  const full = [
    head,
    ...shown.map(
      (entry) => `- ${entry.boundName}: ${oneLine(entry.description || (entry.title ?? ""), 100)}`,
    ),
  ];
  const text = full.join("\n");
  return text.length <= MAX_LISTED_CHARS
    ? text
    : cut([head, ...shown.map((entry) => `- ${entry.boundName}`)].join("\n"), MAX_LISTED_CHARS);
}

/** Names searched servers that are still connecting or cannot be called now. */
function unreachable(view: View, serverNames: readonly string[]): string {
  const waiting = serverNames.filter(
    (serverName) => view.server(serverName) === undefined && isComing(view, serverName),
  );
  const away = serverNames.filter((serverName) => AWAY.includes(view.state(serverName)));
  const lines = [
    waiting.length === 0
      ? ""
      : `Still connecting, not searched: ${waiting.join(", ")}. Search again in a moment if you need them.`,
    away.length === 0
      ? ""
      : `Not available now: ${away.map((serverName) => `${serverName} (${view.state(serverName)})`).join(", ")}.`,
  ].filter((line) => line !== "");
  return lines.length === 0 ? "" : `\n${lines.join("\n")}`;
}

/** States in which a server cannot be called. */
const AWAY: readonly string[] = [
  "failed",
  "needs-auth",
  "disabled",
  "closed",
  "reconnecting",
  "unavailable",
];

function isComing(view: View, serverName: string): boolean {
  return ["connecting", "idle"].includes(view.state(serverName));
}
