import { oneLine } from "../text/clean.js";
import { nearest } from "../text/nearest.js";
import type { ConnectionPool } from "../connect/pool.js";
import type { View } from "../disclose/view.js";

/** Which `/mcp` commands a person may use; see the option `chatCommands`. */
export type ChatCommands = "off" | "thread" | "all";

export type ChatCommand =
  | { readonly kind: "list" }
  | { readonly kind: "enable" | "disable" | "reconnect"; readonly serverName: string }
  /** Says what is wrong and what can be typed. */
  | { readonly kind: "problem"; readonly text: string };

const ACTIONS = ["enable", "disable", "reconnect"] as const;
const CHAT_COMMAND = /^\s*\/mcp(?:\s+([^]*))?$/;

/**
 * Parses a chat command; `undefined` for any other text. `serverNames`: servers that a person may
 * name. Pure; never throws.
 */
export function parseChatCommand(
  text: string,
  serverNames: readonly string[],
  allowed: ChatCommands,
): ChatCommand | undefined {
  const match = allowed === "off" ? null : CHAT_COMMAND.exec(text);
  if (match === null) return undefined;
  const [action, rest] = splitFirst((match[1] ?? "").trim());
  if (action === "") return { kind: "list" };
  const actions = ACTIONS.filter((known) => known !== "reconnect" || allowed === "all");
  const known = actions.find((name) => name === action);
  if (known === undefined) {
    const guess = nearest(action, actions);
    const hint = guess === undefined ? "" : ` Did you mean "/mcp ${guess}"?`;
    return {
      kind: "problem",
      text: `There is no "/mcp ${oneLine(action, 40)}".${hint} ${usage(actions)}`,
    };
  }
  if (rest === "")
    return { kind: "problem", text: `Which server? ${usage(actions)}${serversLine(serverNames)}` };
  const serverName =
    serverNames.find((name) => name === rest) ??
    serverNames.find((name) => name.toLowerCase() === rest.toLowerCase());
  if (serverName !== undefined) return { kind: known, serverName };
  return {
    kind: "problem",
    text: `There is no server "${oneLine(rest, 64)}".${serversLine(serverNames)}`,
  };
}

/**
 * Lists the servers of a thread for a person. With `"all"` it includes the errors of their
 * connections.
 */
export function describeServers(view: View, allowed: ChatCommands, pool: ConnectionPool): string {
  const names = [...view.spokenServers(), ...view.spokenDisabled()];
  if (names.length === 0) return "There are no MCP servers here.";
  const lines = names.map((serverName) => {
    const isOff = view.disabledNames.includes(serverName);
    const tools = view.server(serverName)?.tools.filter(view.mayShow).length;
    const facts = [
      isOff ? "disabled in this conversation" : view.state(serverName),
      tools === undefined ? "" : `${tools} tools`,
    ];
    const error = allowed === "all" && !isOff ? errorOf(pool, serverName) : undefined;
    return `- ${oneLine(serverName, 64)}: ${facts.filter((fact) => fact !== "").join(", ")}${error === undefined ? "" : ` (${oneLine(error, 500)})`}`;
  });
  return `MCP servers:\n${lines.join("\n")}\n${usage(ACTIONS.filter((known) => known !== "reconnect" || allowed === "all"))}`;
}

function usage(actions: readonly string[]): string {
  return `You can type ${actions.map((action) => `/mcp ${action} <server>`).join(", ")}.`;
}

function serversLine(serverNames: readonly string[]): string {
  return serverNames.length === 0
    ? ""
    : ` Servers: ${serverNames.map((name) => oneLine(name, 64)).join(", ")}.`;
}

function splitFirst(text: string): [first: string, rest: string] {
  const [first = ""] = text.split(/\s/, 1);
  return [first, text.slice(first.length).trim()];
}

function errorOf(pool: ConnectionPool, serverName: string): string | undefined {
  const { state } = pool.connection(serverName);
  return "error" in state ? state.error?.message : undefined;
}
