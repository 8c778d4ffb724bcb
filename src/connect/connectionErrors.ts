import type { ServerSettings } from "../config/settings.js";
import {
  McpAuthRequiredError,
  McpConnectionError,
  McpMiddlewareError,
  McpProtocolError,
  messageOf,
} from "../errors.js";
import { cut } from "../text/clean.js";
import type { State } from "./connectionState.js";
import {
  classifyFailure,
  httpStatusOf,
  isRpcError,
  reasonOf,
  rpcCodeOf,
  timeoutKind,
  type HttpStatusError,
} from "./failures.js";
import { maskValue } from "./maskValue.js";
import type { Peer } from "./peer.js";
import type { ServerRequest } from "./requests.js";

/* Bounds a server's error text. */
const MAX_TEXT_CHARS = 10_000;

export function lostError(
  { serverName, reconnect }: ServerSettings,
  peer: Peer,
  reason: string | undefined,
  isOwned: boolean,
): McpConnectionError {
  const why = peer.endReason() ?? peer.mask(reason ?? "the connection ended");
  const call = `hub.reconnect("${serverName}")`;
  const byHand = isOwned
    ? `Its owner can open it again; then call ${call}.`
    : `Call ${call} to open it again.`;
  const remedy = reconnect === undefined ? byHand : "It is being reconnected.";
  return new McpConnectionError(
    "SESSION_LOST",
    `Server "${serverName}" was lost: ${why}. ${remedy}${tailOf(peer)}`,
    {
      serverName,
    },
  );
}

/** Error of a server that connected but did not list its tools. */
export function listError(
  serverName: string,
  cause: unknown,
  peer: Peer | undefined,
): McpConnectionError {
  const mask = peer?.mask ?? ((text: string) => text);
  const why = peer?.endReason() ?? messageOf(cause);
  const message = `Server "${serverName}" was reached, but its tools could not be listed: ${why}.${tailOf(peer)}`;
  return new McpConnectionError("CONNECT_FAILED", mask(message), {
    serverName,
    cause: maskValue(cause, mask),
  });
}

export function timeoutError(
  { serverName, connectTimeoutMs }: ServerSettings,
  attempt: number,
): McpConnectionError {
  return new McpConnectionError(
    "CONNECT_TIMEOUT",
    `Server "${serverName}" was not ready within ${connectTimeoutMs} ms (attempt ${attempt}). Check that it runs, or raise connectTimeoutMs.`,
    { serverName },
  );
}

export function reconnectingError(
  serverName: string,
  { error, attempt, nextAtMs }: Extract<State, { kind: "reconnecting" }>,
): McpConnectionError {
  const seconds =
    nextAtMs === undefined ? undefined : Math.max(1, Math.round((nextAtMs - Date.now()) / 1_000));
  const next = seconds === undefined ? "" : `; the next attempt is in ${seconds} s`;
  return new McpConnectionError(
    "CONNECT_FAILED",
    `Server "${serverName}" is being reconnected (attempt ${attempt} failed)${next}. Last error: ${error.message}`,
    { serverName, cause: error },
  );
}

export function openBreakerError(
  serverName: string,
  untilMs: number | undefined,
  cause?: McpMiddlewareError,
): McpConnectionError {
  const until =
    untilMs === undefined ? "the probe that is under way ends" : new Date(untilMs).toISOString();
  return new McpConnectionError(
    "BREAKER_OPEN",
    `Server "${serverName}" failed several times in a row and is unavailable until ${until}. hub.reconnect("${serverName}") tries at once.${cause === undefined ? "" : ` Last error: ${cause.message}`}`,
    {
      serverName,
      ...(cause === undefined ? {} : { cause }),
      ...(untilMs === undefined ? {} : { untilMs }),
    },
  );
}

/** Error of a request while another caller reconnects the server. */
export function reconnectedError(serverName: string): McpConnectionError {
  return new McpConnectionError(
    "CONNECT_FAILED",
    `Server "${serverName}" is being reconnected. Try again.`,
    { serverName },
  );
}

export function closedError(serverName: string, kind: "disabled" | "closed"): McpConnectionError {
  const why =
    kind === "disabled" ? 'is disabled ("enabled": false)' : "is closed: the hub was closed";
  return new McpConnectionError("CLOSED", `Server "${serverName}" ${why}.`, { serverName });
}

/** Turns a failed request into the error for its caller. */
export function requestError(
  cause: unknown,
  {
    subject,
    toolName,
    timeoutMs,
    maxTimeoutMs,
  }: Pick<ServerRequest, "subject" | "toolName" | "timeoutMs" | "maxTimeoutMs">,
  { serverName, requestTimeoutMs }: Pick<ServerSettings, "serverName" | "requestTimeoutMs">,
  peer: Peer | undefined,
  mask = peer?.mask ?? ((text: string) => text),
): McpMiddlewareError {
  if (McpMiddlewareError.isInstance(cause)) return cause;
  const details = { serverName, toolName, cause: maskValue(cause, mask) };
  const httpStatus = httpStatusOf(cause);
  const status = httpStatus === undefined ? {} : { httpStatus };
  const subjectOfSentence = subject.slice(0, 1).toUpperCase() + subject.slice(1);
  switch (classifyFailure(cause, peer)) {
    case "unauthorized":
      return new McpAuthRequiredError(
        `Server "${serverName}" refused ${subject} for want of credentials.`,
        details,
      );
    case "timeout": {
      const message =
        timeoutKind(cause) === "total"
          ? `did not end within ${maxTimeoutMs} ms. Raise maxToolTimeoutMs if it may take longer`
          : `was not answered within ${timeoutMs ?? requestTimeoutMs} ms. Raise ${timeoutMs === undefined ? "requestTimeoutMs" : "toolTimeoutMs"} if it may take longer`;
      return new McpConnectionError(
        "REQUEST_TIMEOUT",
        `${subjectOfSentence} on server "${serverName}" ${message}.`,
        details,
      );
    }
    case "answered": {
      const serverText = cut(mask(messageOf(cause)), MAX_TEXT_CHARS);
      const rpcCode = rpcCodeOf(cause);
      const data: unknown = isRpcError(cause) ? maskValue(cause.data, mask) : undefined;
      const more = { serverText, data, ...(rpcCode === undefined ? {} : { rpcCode }) };
      const message = `Server "${serverName}" refused ${subject}: ${serverText}`;
      return new McpProtocolError("SERVER_ERROR", message, { ...details, ...more });
    }
    case "too-large": {
      const message = `${subjectOfSentence} on server "${serverName}" was not answered: ${reasonOf(cause, peer)}. Ask for less, or raise the limit.`;
      return new McpConnectionError("MESSAGE_TOO_LARGE", message, details);
    }
    case "busy": {
      const { retryAtMs } = cause as Partial<HttpStatusError>;
      const when = retryAtMs === undefined ? "" : ` before ${new Date(retryAtMs).toISOString()}`;
      const message = `Server "${serverName}" did not take ${subject}${withStatus(cause)}; it did not run. Do not try again${when === "" ? " at once" : when}.`;
      const more = { ...status, ...(retryAtMs === undefined ? {} : { untilMs: retryAtMs }) };
      return new McpConnectionError("SERVER_BUSY", message, { ...details, ...more });
    }
    case "session-lost":
    case "unsent": {
      const code = peer?.endReason() === undefined ? "CONNECT_FAILED" : "SESSION_LOST";
      const text = `${subjectOfSentence} on server "${serverName}" was not sent: ${reasonOf(cause, peer)}. It did not run.`;
      return new McpConnectionError(code, cut(mask(text), MAX_TEXT_CHARS), details);
    }
    case "transport": {
      const text = `${subjectOfSentence} on server "${serverName}" was not answered${withStatus(cause)}: ${reasonOf(cause, peer)}. It may have run.`;
      const message = cut(mask(text), MAX_TEXT_CHARS);
      return new McpConnectionError("UNANSWERED", message, { ...details, ...status });
    }
  }
}

function withStatus(cause: unknown): string {
  const status = httpStatusOf(cause);
  return status === undefined ? "" : ` (HTTP ${status})`;
}

function tailOf(peer: Peer | undefined): string {
  const tail = peer?.stderrTail() ?? "";
  return tail === "" ? "" : ` Its last lines on stderr: ${tail}`;
}
