import {
  McpAuthRequiredError,
  McpConnectionError,
  McpMiddlewareError,
  messageOf,
} from "../../errors.js";
import { httpStatusOf, isUnauthorized } from "../failures.js";
import { maskValue } from "../maskValue.js";
import type { Peer } from "../peer.js";
import type { Wire } from "./openClient.js";

const MAX_REASON_CHARS = 500;
const MAX_TEXT_CHARS = 20_000;

/**
 * The error of a failed connect, for the developer: HTTP status, exit code, last lines of stderr.
 */
export function connectError(
  serverName: string,
  error: unknown,
  wire: Wire,
  peer: Peer,
): McpMiddlewareError {
  const strayLines = wire.strayLines?.() ?? 0;
  const tail = peer.stderrTail();
  const stray =
    strayLines === 0 ? "" : ` It wrote ${strayLines} lines to stdout that are no MCP messages.`;
  const detail = stray + (tail === "" ? "" : ` Its last lines on stderr: ${tail}`);
  if (McpConnectionError.isInstance(error))
    return new McpConnectionError(error.code, error.message + detail, {
      serverName,
      cause: maskValue(error, peer.mask),
    });
  if (McpMiddlewareError.isInstance(error)) return error;
  const details = { serverName, cause: maskValue(error, peer.mask) };
  if (isUnauthorized(error)) {
    return new McpAuthRequiredError(
      `Server "${serverName}" asks for credentials (401). Give "headers" or an "authProvider" that it accepts.`,
      details,
    );
  }
  const code: unknown = (error as NodeJS.ErrnoException | undefined)?.code;
  const reason =
    wire.stderrTail === undefined
      ? describeCause(error, peer.mask)
      : code === "ENOENT"
        ? `${messageOf(error)}. Check that "command" is a program on the PATH (arguments go into "args"), and that "cwd" exists`
        : (wire.endReason?.() ?? describeCause(error, peer.mask));
  return new McpConnectionError(
    "CONNECT_FAILED",
    peer.mask(`Server "${serverName}" could not be opened: ${reason}.${detail}`),
    details,
  );
}

/**
 * The error's text with its HTTP status and its cause, because `fetch` only says "fetch failed".
 */
function describeCause(error: unknown, mask: (text: string) => string): string {
  const cause =
    typeof error === "object" && error !== null && "cause" in error ? error.cause : undefined;
  const code = httpStatusOf(error);
  const status = code === undefined ? "" : `HTTP ${code}: `;
  const reason = cause === undefined || cause === null ? "" : ` (${messageOf(cause)})`;
  const text = withoutPage(cutAt(messageOf(error), MAX_TEXT_CHARS));
  // Masked before it is cut: a cut secret would not be recognised.
  return cutAt(mask(status + text + reason), MAX_REASON_CHARS).trim();
}

/** Puts a word in place of an HTML page, which web servers answer with at a wrong path. */
function withoutPage(text: string): string {
  const start = text.search(/<(?:!doctype|html)/i);
  return start < 0
    ? text
    : `${text.slice(0, start).trimEnd()} an HTML page; check the path of the URL`;
}

function cutAt(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`;
}
