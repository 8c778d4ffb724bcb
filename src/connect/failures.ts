import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";

import { McpConnectionError, McpMiddlewareError, messageOf } from "../errors.js";
import type { Peer } from "./peer.js";

/** What a failed request says about the connection. */
export type Failure =
  /** The server answered, with an error: the connection is well. */
  | "answered"
  /** No answer in time: the request may have run, and may run still. */
  | "timeout"
  /** Credentials are missing or refused. */
  | "unauthorized"
  /** The server has forgotten the session, and has said so to this very request: it did not run. */
  | "session-lost"
  /** The connection broke: whether the request ran is not known. */
  | "transport";

/** `data` of the error that stands in for an answer whose stream ended without it. */
export const UNANSWERED = "the connection ended before the answer";

/** Bytes of one message that are taken from a server over stdio or a WebSocket, which hold it whole while it arrives. */
export const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;

/** Bytes of one message, or one body, that are taken over HTTP. */
export const MAX_BODY_BYTES = 100 * 1024 * 1024;

/** Why a connection ended whose server sent more than is taken at once. */
export const TOO_LARGE = tooLarge(MAX_MESSAGE_BYTES);

/** How it is said that a message had more bytes. */
export function tooLarge(maxBytes: number): string {
  return `it sent a message larger than ${Math.round(maxBytes / 1024 / 1024)} MB`;
}

/** True for what {@link tooLarge} says. */
export function saysTooLarge(text: string): boolean {
  return text.includes("it sent a message larger than");
}

/** Statuses with which servers answer a request of a session they do not know; but for 404 the text has to say so. */
const LOST_SESSION_STATUSES: readonly number[] = [400, 401, 403, 410, 503];
const TRANSPORT_CODES: readonly number[] = [-32_000, -32_001, -32_600];
const ANSWERS_SESSION_LOST =
  /^(MCP error -\d+: )*(bad request: |not found: )?((no valid|unknown|invalid|expired|missing) (mcp )?session|(mcp )?session (id )?(was )?(not found|unknown|invalid|expired|terminated|does not exist))/i;
const SAYS_SESSION_LOST =
  /session[^.]{0,40}(not found|unknown|invalid|expired|missing|terminated|closed|no longer|does ?n.t exist|not exist|not initiali[sz]ed)|(unknown|invalid|expired|no valid|no such|missing)[^.]{0,20}session/i;

/** What a failed request says about the connection. */
export function classifyFailure(error: unknown, peer: Peer | undefined): Failure {
  if (isSessionLost(error, peer)) return "session-lost";
  const status = httpStatus(error);
  if (isUnauthorized(error) || status === 403) return "unauthorized";
  // Refused for what it is: too large, too often, not understood. The server is there.
  if (status !== undefined && status >= 400 && status < 500) return "answered";
  if (isRpcError(error)) {
    if (isOwnTimeout(error)) return "timeout";
    return peer?.endReason() !== undefined || error.data === UNANSWERED ? "transport" : "answered";
  }
  return McpMiddlewareError.isInstance(error) ? "answered" : "transport";
}

/**
 * True when a request may be sent once more, on a new connection.
 *
 * A lost session proves that it did not run. After any other break it is repeated only when it may run twice; after a
 * timeout never: it may be running still.
 */
export function mayRepeat(failure: Failure, isRepeatable: boolean): boolean {
  return failure === "session-lost" || (failure === "transport" && isRepeatable);
}

/** Why a connection ended whose server has lost the session. */
export const SESSION_UNKNOWN = "the server does not know the session any more";

/** True for a failure to connect that counts for the breaker. */
export function isConnectFailure(error: unknown): boolean {
  return McpConnectionError.isInstance(error) && error.code !== "CLOSED";
}

/** The code of a JSON-RPC error that the server answered with; `undefined` for other errors. */
export function rpcCodeOf(error: unknown): number | undefined {
  return isRpcError(error) && error.code < 0 ? error.code : undefined;
}

/** Which limit a timeout of the SDK exceeded: the silence of a request, or its total time. */
export function timeoutKind(error: unknown): "silence" | "total" {
  const data = isRpcError(error) ? (error.data as { readonly maxTotalTimeout?: unknown } | undefined) : undefined;
  return data?.maxTotalTimeout === undefined ? "silence" : "total";
}

/** True for the ways in which the SDK says that credentials are missing or refused. */
export function isUnauthorized(error: unknown): boolean {
  if (error instanceof UnauthorizedError) return true;
  return (error instanceof StreamableHTTPError || error instanceof SseError) && error.code === 401;
}

/** A JSON-RPC error, also one of another copy of the SDK, which a wrapped client may bring. */
export function isRpcError(error: unknown): error is McpError {
  if (error instanceof McpError) return true;
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "number" && code <= -32_000;
}

/** The SDK's own timeouts share their code with what servers send; only they carry the limit. */
export function isOwnTimeout({ code, data }: McpError): boolean {
  if (code !== Number(ErrorCode.RequestTimeout) || typeof data !== "object" || data === null) return false;
  return "timeout" in data || "maxTotalTimeout" in data;
}

function isSessionLost(error: unknown, peer: Peer | undefined): boolean {
  if (peer?.hasSession() !== true) return false;
  const status = httpStatus(error);
  if (status === 404) return true;
  if (status !== undefined) return LOST_SESSION_STATUSES.includes(status) && SAYS_SESSION_LOST.test(messageOf(error));
  // A tool may speak of a session of its own, and may have run: only the words of a transport count.
  return (
    isRpcError(error) && !isOwnTimeout(error) && TRANSPORT_CODES.includes(error.code) && ANSWERS_SESSION_LOST.test(error.message)
  );
}

/** The HTTP status of a refused POST; the SSE transport says it in its text only. */
function httpStatus(error: unknown): number | undefined {
  if (error instanceof StreamableHTTPError) return error.code;
  const [, status] = /^Error POSTing to endpoint \(HTTP (\d{3})\)/.exec(messageOf(error)) ?? [];
  return status === undefined ? undefined : Number(status);
}
