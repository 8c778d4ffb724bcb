import type { ServerSettings } from "../config/settings.js";
import { McpConnectionError, messageOf, type McpMiddlewareError } from "../errors.js";
import type { State } from "./connectionState.js";
import { maskValue } from "./maskValue.js";
import type { Session } from "./peer.js";

/** The connection was there and is gone. @param remedy - What happens next, or what to do. */
export function lostError(serverName: string, session: Session, reason: string | undefined, remedy: string): McpConnectionError {
  const why = session.endReason() ?? session.mask(reason ?? "the connection ended");
  return new McpConnectionError("SESSION_LOST", `Server "${serverName}" was lost: ${why}. ${remedy}${tailOf(session)}`, {
    serverName,
  });
}

/** It was opened, and its tools could not be listed. */
export function listError(serverName: string, cause: unknown, session: Session | undefined): McpConnectionError {
  const mask = session?.mask ?? ((text: string) => text);
  const why = session?.endReason() ?? messageOf(cause);
  const message = `Server "${serverName}" was reached, but its tools could not be listed: ${why}.${tailOf(session)}`;
  return new McpConnectionError("CONNECT_FAILED", mask(message), { serverName, cause: maskValue(cause, mask) });
}

/** Handshake and first listing took too long. */
export function timeoutError({ serverName, connectTimeoutMs }: ServerSettings, attempt: number): McpConnectionError {
  return new McpConnectionError(
    "CONNECT_TIMEOUT",
    `Server "${serverName}" was not ready within ${connectTimeoutMs} ms (attempt ${attempt}). Check that it runs, or raise connectTimeoutMs.`,
    { serverName },
  );
}

/** The next attempt to open it again is waited for. */
export function reconnectingError(
  serverName: string,
  { error, attempt, nextAtMs }: Extract<State, { kind: "reconnecting" }>,
): McpConnectionError {
  const seconds = nextAtMs === undefined ? undefined : Math.max(1, Math.round((nextAtMs - Date.now()) / 1_000));
  const next = seconds === undefined ? "" : `; the next attempt is in ${seconds} s`;
  return new McpConnectionError(
    "CONNECT_FAILED",
    `Server "${serverName}" is being opened again (attempt ${attempt} failed)${next}. Last error: ${error.message}`,
    { serverName, cause: error },
  );
}

/** It failed several times in a row and is left alone. */
export function openBreakerError(
  serverName: string,
  untilMs: number | undefined,
  cause?: McpMiddlewareError,
): McpConnectionError {
  const until = untilMs === undefined ? "the probe that is under way ends" : new Date(untilMs).toISOString();
  return new McpConnectionError(
    "BREAKER_OPEN",
    `Server "${serverName}" failed several times in a row and is unavailable until ${until}. hub.reconnect("${serverName}") tries at once.${cause === undefined ? "" : ` Last error: ${cause.message}`}`,
    { serverName, ...(cause === undefined ? {} : { cause }), ...(untilMs === undefined ? {} : { untilMs }) },
  );
}

/** It is being opened anew by someone else. */
export function openedAnewError(serverName: string): McpConnectionError {
  return new McpConnectionError("CONNECT_FAILED", `Server "${serverName}" is being opened anew. Try again.`, { serverName });
}

/** It was closed, or is not to be opened. */
export function closedError(serverName: string, kind: "disabled" | "closed"): McpConnectionError {
  const why = kind === "disabled" ? 'is disabled ("enabled": false)' : "is closed: the hub was closed";
  return new McpConnectionError("CLOSED", `Server "${serverName}" ${why}.`, { serverName });
}

function tailOf(session: Session | undefined): string {
  const tail = session?.stderrTail() ?? "";
  return tail === "" ? "" : ` Its last lines on stderr: ${tail}`;
}
