import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";

import { McpConnectionError, McpMiddlewareError, McpProtocolError, messageOf } from "../errors.js";
import { saysTooLarge } from "./messageBudget.js";
import type { Peer } from "./peer.js";

export type Failure =
  /** The server answered with an error; the connection is fine. */
  | "answered"
  /** No answer in time; the request may still run. */
  | "timeout"
  | "unauthorized"
  /** The server no longer knows the session, so the request did not run. */
  | "session-lost"
  /** The answer exceeded a limit; the request has run. */
  | "too-large"
  /** The request could not be sent; it did not run. */
  | "unsent"
  /** The web server did not take the request now; it did not run. */
  | "busy"
  /** The connection broke, or the web server failed; the request may have run. */
  | "transport";

/** A message could not be sent. */
export class UnsentError extends Error {}

/** A web server answered a request with an HTTP status that says that it has no answer. */
export class HttpStatusError extends Error {
  readonly code: number;
  /** When it may be tried again, in milliseconds since 1970, where the server says so. */
  readonly retryAtMs: number | undefined;

  constructor(status: number, text: string, retryAtMs: number | undefined) {
    super(text);
    this.code = status;
    this.retryAtMs = retryAtMs;
  }
}

/**
 * `data` of the error that replaces an answer which will not come. As an object of this class no
 * server can send it.
 */
export class Unanswered {
  readonly reason: string;

  constructor(reason = "the connection ended before the answer") {
    this.reason = reason;
  }
}

/** Why a connection ended whose server asks without reading the answers. */
export const UNREAD = "it sends requests faster than it reads the answers";

/** Statuses that may mean an unknown session; except for 404 the text has to say so. */
const LOST_SESSION_STATUSES: readonly number[] = [400, 401, 403, 410, 503];
/* The head of a text says what kind of error it is. */
const MAX_READ_CHARS = 2_000;
const TRANSPORT_CODES: readonly number[] = [-32_000, -32_001, -32_600];
const ANSWERS_SESSION_LOST =
  /^(MCP error -\d+: )*(bad request: |not found: )?((no valid|unknown|invalid|expired|missing) (mcp )?session|(mcp )?session (id )?(was )?(not found|unknown|invalid|expired|terminated|does not exist))/i;
const SAYS_SESSION_LOST =
  /session[^.]{0,40}(not found|unknown|invalid|expired|missing|terminated|closed|no longer|does ?n.t exist|not exist|not initiali[sz]ed)|(unknown|invalid|expired|no valid|no such|missing)[^.]{0,20}session/i;

export function classifyFailure(error: unknown, peer: Peer | undefined): Failure {
  if (isSessionLost(error, peer)) return "session-lost";
  const status = httpStatusOf(error);
  if (isUnauthorized(error) || status === 403) return "unauthorized";
  if (status === 429 || status === 503) return "busy";
  // The server refused this request (too large, not understood), so it is there.
  if (status !== undefined && status >= 400 && status < 500) return "answered";
  if (isRpcError(error)) {
    if (isOwnTimeout(error)) return "timeout";
    if (peer?.endReason() === undefined && !(error.data instanceof Unanswered)) return "answered";
  } else if (McpMiddlewareError.isInstance(error)) return "answered";
  if (saysTooLarge(reasonOf(error, peer))) return "too-large";
  return isUnsent(error) ? "unsent" : "transport";
}

/* Codes of errors before anything could be sent. */
const UNSENT_CODES: readonly unknown[] = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];

function isUnsent(error: unknown): boolean {
  if (error instanceof UnsentError || messageOf(error) === "Not connected") return true;
  const { cause } = (error ?? {}) as { readonly cause?: { readonly code?: unknown } };
  return UNSENT_CODES.includes(cause?.code);
}

/** Why a request was not answered, for a failure `transport` or `too-large`. */
export function reasonOf(error: unknown, peer: Peer | undefined): string {
  const ended = peer?.endReason();
  if (ended !== undefined) return ended;
  return isRpcError(error) && error.data instanceof Unanswered
    ? error.data.reason
    : messageOf(error);
}

/**
 * True when a request may be sent again: a lost session proves that it did not run; after a timeout
 * it may still run.
 */
export function mayRepeat(failure: Failure, isRepeatable: boolean): boolean {
  if (failure === "session-lost" || failure === "unsent") return true;
  return failure === "transport" && isRepeatable;
}

export const SESSION_UNKNOWN = "the server does not know the session any more";

export function isConnectFailure(error: unknown): boolean {
  return McpConnectionError.isInstance(error) && error.code !== "CLOSED";
}

/** The JSON-RPC code that the server answered with; `undefined` for other errors. */
export function rpcCodeOf(error: unknown): number | undefined {
  if (McpProtocolError.isInstance(error)) return error.rpcCode;
  return isRpcError(error) && error.code < 0 ? error.code : undefined;
}

/** Which limit an SDK timeout exceeded: silence or total time. */
export function timeoutKind(error: unknown): "silence" | "total" {
  const data = isRpcError(error)
    ? (error.data as { readonly maxTotalTimeout?: unknown } | undefined)
    : undefined;
  return data?.maxTotalTimeout === undefined ? "silence" : "total";
}

export function isUnauthorized(error: unknown): boolean {
  return (
    httpStatusOf(error) === 401 ||
    (error instanceof Error && error.constructor.name === "UnauthorizedError")
  );
}

/** True for a JSON-RPC error, also of another copy of the SDK (from a wrapped client). */
export function isRpcError(error: unknown): error is McpError {
  if (error instanceof McpError) return true;
  const code =
    typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "number" && code <= -32_000;
}

/**
 * True for a timeout of the SDK. Servers may send the same code, but without the limit in `data`.
 */
export function isOwnTimeout({ code, data }: McpError): boolean {
  if (code !== Number(ErrorCode.RequestTimeout) || typeof data !== "object" || data === null)
    return false;
  return "timeout" in data || "maxTotalTimeout" in data;
}

function isSessionLost(error: unknown, peer: Peer | undefined): boolean {
  if (peer?.hasSession() !== true) return false;
  const status = httpStatusOf(error);
  if (status === 404) return true;
  if (status !== undefined)
    return (
      LOST_SESSION_STATUSES.includes(status) &&
      SAYS_SESSION_LOST.test(messageOf(error).slice(0, MAX_READ_CHARS))
    );
  // A tool may report a lost session of its own and may have run, so only a transport's wording
  // counts.
  return (
    isRpcError(error) &&
    !isOwnTimeout(error) &&
    TRANSPORT_CODES.includes(error.code) &&
    ANSWERS_SESSION_LOST.test(error.message.slice(0, MAX_READ_CHARS))
  );
}

/**
 * HTTP status of a refused request. By shape, because loading the SDK's transports costs time:
 * their errors carry it as `code`, which JSON-RPC errors do as well; the SSE transport has that of
 * a POST in its text alone.
 */
export function httpStatusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || error instanceof McpError || error.name === "McpError")
    return undefined;
  const { code } = error as { readonly code?: unknown };
  if (typeof code === "number" && code >= 100 && code < 600) return code;
  const [, status] = /^Error POSTing to endpoint \(HTTP (\d{3})\)/.exec(error.message) ?? [];
  return status === undefined ? undefined : Number(status);
}
