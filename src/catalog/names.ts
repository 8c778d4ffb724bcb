import { digest } from "./hash.js";

/** The longest name that every provider of models takes. */
export const MAX_BOUND_NAME_CHARS = 64;

const LEGAL = /^[A-Za-z0-9_-]{1,64}$/;
const HASH_CHARS = 8;
const MAX_SERVER_CHARS = 24;

/**
 * Bound name of a tool: the name the model sees.
 *
 * `mcp__<server>__<tool>` where that is legal (`[A-Za-z0-9_-]`, at most 64 characters) and cannot be read in two
 * ways; otherwise a readable head and a short hash of the exact pair. A pure function of the pair: equal in every
 * process, whatever else is connected.
 *
 * @example
 * boundName("tracker", "create_issue");
 * // → "mcp__tracker__create_issue"
 */
export function boundName(serverName: string, toolName: string): string {
  const plain = `mcp__${serverName}__${toolName}`;
  const isUnambiguous =
    !serverName.includes("__") && !serverName.endsWith("_") && !toolName.startsWith("_") && serverName !== "" && toolName !== "";
  if (isUnambiguous && LEGAL.test(plain)) return plain;
  return hashedName(`mcp__${legalise(serverName).slice(0, MAX_SERVER_CHARS)}__${legalise(toolName)}`, serverName, toolName);
}

/**
 * Bound name by the `names` option, made legal.
 *
 * @param names - `"mcp"`, `"bare"` (the raw name) or the user's function.
 */
export function nameTool(
  names: "mcp" | "bare" | ((serverName: string, toolName: string) => string),
  serverName: string,
  toolName: string,
): string {
  if (names === "mcp") return boundName(serverName, toolName);
  const wanted = names === "bare" ? toolName : names(serverName, toolName);
  if (typeof wanted !== "string") return boundName(serverName, toolName);
  // `__proto__` is legal for providers and a trap as a key.
  return LEGAL.test(wanted) && wanted !== "__proto__" ? wanted : hashedName(legalise(wanted), serverName, toolName);
}

function legalise(text: string): string {
  return text.normalize("NFKD").replace(/[^A-Za-z0-9_-]+/g, "_");
}

function hashedName(head: string, serverName: string, toolName: string): string {
  const hash = digest(JSON.stringify([serverName, toolName]), HASH_CHARS);
  return `${head.slice(0, MAX_BOUND_NAME_CHARS - HASH_CHARS - 1)}_${hash}`;
}
