import { digest } from "../text/hash.js";

/** Longest tool name that every provider takes. */
export const MAX_BOUND_NAME_CHARS = 64;

const LEGAL = /^[A-Za-z0-9_-]{1,64}$/;
/** A plain name that looks hashed would be ambiguous. */
const LOOKS_HASHED = /_[0-9a-f]{8,}$/;
const HASH_CHARS = 8;
const MAX_SERVER_CHARS = 24;

/**
 * The name of a tool for the model: `mcp__<server>__<tool>` where that is legal (`[A-Za-z0-9_-]`,
 * at most 64 characters) and unambiguous, otherwise a readable head and a short hash of the pair.
 * The same pair has the same name in every process.
 * @example
 * boundName("tracker", "create_issue");
 * // → "mcp__tracker__create_issue"
 */
export function boundName(serverName: string, toolName: string): string {
  const plain = `mcp__${serverName}__${toolName}`;
  const isUnambiguous =
    !serverName.includes("__") &&
    !serverName.endsWith("_") &&
    !toolName.startsWith("_") &&
    serverName !== "" &&
    toolName !== "";
  if (isUnambiguous && LEGAL.test(plain) && !LOOKS_HASHED.test(plain)) return plain;
  return hashedName(
    `mcp__${legalise(serverName).slice(0, MAX_SERVER_CHARS)}__${legalise(toolName)}`,
    serverName,
    toolName,
  );
}

/**
 * Bound name by the option `names`, made legal; that of `"mcp"` for a function that throws or
 * returns no string.
 */
export function nameTool(
  names: "mcp" | "bare" | ((serverName: string, toolName: string) => string),
  serverName: string,
  toolName: string,
): string {
  if (names === "mcp") return boundName(serverName, toolName);
  const wanted: unknown = names === "bare" ? toolName : callSafely(names, serverName, toolName);
  if (typeof wanted !== "string") return boundName(serverName, toolName);
  // Providers take `__proto__`, but it is a trap as a key.
  return LEGAL.test(wanted) && wanted !== "__proto__"
    ? wanted
    : hashedName(legalise(wanted), serverName, toolName);
}

function callSafely(
  names: (serverName: string, toolName: string) => string,
  serverName: string,
  toolName: string,
): unknown {
  try {
    return names(serverName, toolName);
  } catch {
    return undefined;
  }
}

function legalise(text: string): string {
  return text.normalize("NFKD").replace(/[^A-Za-z0-9_-]+/g, "_");
}

/** A bound name with a longer hash, for when the hashed one is taken. */
export function longName(serverName: string, toolName: string): string {
  return hashedName(`mcp__${legalise(toolName)}`, serverName, toolName, 4 * HASH_CHARS);
}

function hashedName(
  head: string,
  serverName: string,
  toolName: string,
  hashChars = HASH_CHARS,
): string {
  const hash = digest(JSON.stringify([serverName, toolName]), hashChars);
  return `${head.slice(0, MAX_BOUND_NAME_CHARS - hashChars - 1)}_${hash}`;
}
