import { digest } from "../text/hash.js";

/** The longest name that every provider of models takes. */
export const MAX_BOUND_NAME_CHARS = 64;

const LEGAL = /^[A-Za-z0-9_-]{1,64}$/;
/** A plain name that looks like a hashed one would be read in two ways. */
const LOOKS_HASHED = /_[0-9a-f]{8,}$/;
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
  if (isUnambiguous && LEGAL.test(plain) && !LOOKS_HASHED.test(plain)) return plain;
  return hashedName(`mcp__${legalise(serverName).slice(0, MAX_SERVER_CHARS)}__${legalise(toolName)}`, serverName, toolName);
}

/**
 * Bound name by the `names` option, made legal.
 *
 * Never throws: for a function that throws or returns no text the name is that of `"mcp"`.
 *
 * @param names - `"mcp"`, `"bare"` (the raw name) or the user's function.
 */
export function nameTool(
  names: "mcp" | "bare" | ((serverName: string, toolName: string) => string),
  serverName: string,
  toolName: string,
): string {
  if (names === "mcp") return boundName(serverName, toolName);
  const wanted: unknown = names === "bare" ? toolName : callSafely(names, serverName, toolName);
  if (typeof wanted !== "string") return boundName(serverName, toolName);
  // `__proto__` is legal for providers and a trap as a key.
  return LEGAL.test(wanted) && wanted !== "__proto__" ? wanted : hashedName(legalise(wanted), serverName, toolName);
}

function callSafely(names: (serverName: string, toolName: string) => string, serverName: string, toolName: string): unknown {
  try {
    return names(serverName, toolName);
  } catch {
    return undefined;
  }
}

function legalise(text: string): string {
  return text.normalize("NFKD").replace(/[^A-Za-z0-9_-]+/g, "_");
}

/** A bound name for the case that even the hashed one is taken: a longer hash of the pair. */
export function longName(serverName: string, toolName: string): string {
  return hashedName(`mcp__${legalise(toolName)}`, serverName, toolName, 4 * HASH_CHARS);
}

function hashedName(head: string, serverName: string, toolName: string, hashChars = HASH_CHARS): string {
  const hash = digest(JSON.stringify([serverName, toolName]), hashChars);
  return `${head.slice(0, MAX_BOUND_NAME_CHARS - hashChars - 1)}_${hash}`;
}
