import type { McpError } from "@modelcontextprotocol/sdk/types.js";

import { cut } from "../text/clean.js";
import { classifyFailure } from "../connect/failures.js";
import { maskValue } from "../connect/maskValue.js";
import type { Session } from "../connect/peer.js";
import { McpAuthRequiredError, McpConnectionError, McpMiddlewareError, McpProtocolError, messageOf } from "../errors.js";

/** A request that failed, for the message. */
export interface FailedRequest {
  readonly serverName: string;
  readonly toolName?: string | undefined;
  /** What was wanted, such as `the call of "search"`. */
  readonly subject: string;
  /** The limits that were in force, with the options that raise them. */
  readonly timeout: { readonly ms: number; readonly option: string };
  readonly maxTimeout?: { readonly ms: number; readonly option: string } | undefined;
}

/* A server may say as much as it likes; nobody reads that much. */
const MAX_TEXT_CHARS = 10_000;

/** What a failed request means to the caller. */
export function callError(
  cause: unknown,
  request: FailedRequest,
  session: Session | undefined,
  mask = session?.mask ?? ((text: string) => text),
): McpMiddlewareError {
  if (McpMiddlewareError.isInstance(cause)) return cause;
  const { serverName, toolName, subject } = request;
  const details = { serverName, toolName, cause: maskValue(cause, mask) };
  const ended = session?.endReason();
  switch (classifyFailure(cause, session)) {
    case "unauthorized":
      return new McpAuthRequiredError(`Server "${serverName}" refused ${subject} for want of credentials.`, details);
    case "timeout":
      return timeoutError(cause as McpError, request, details);
    case "answered": {
      const { code } = cause as McpError;
      const serverText = cut(mask(messageOf(cause)), MAX_TEXT_CHARS);
      const message = `Server "${serverName}" refused ${subject}: ${serverText}`;
      return new McpProtocolError("SERVER_ERROR", message, { ...details, ...(code < 0 ? { rpcCode: code } : {}), serverText });
    }
    case "session-lost":
    case "transport":
      return new McpConnectionError(
        ended === undefined ? "CONNECT_FAILED" : "SESSION_LOST",
        cut(
          mask(`${capitalised(subject)} on server "${serverName}" was not answered: ${ended ?? messageOf(cause)}.`),
          MAX_TEXT_CHARS,
        ),
        details,
      );
  }
}

function timeoutError(
  { data }: McpError,
  { subject, serverName, timeout, maxTimeout }: FailedRequest,
  details: ConstructorParameters<typeof McpConnectionError>[2],
): McpConnectionError {
  const isHard = maxTimeout !== undefined && (data as { maxTotalTimeout?: unknown }).maxTotalTimeout !== undefined;
  const what = capitalised(subject);
  return new McpConnectionError(
    "REQUEST_TIMEOUT",
    isHard
      ? `${what} on server "${serverName}" did not end within ${maxTimeout.ms} ms. Raise ${maxTimeout.option} if it may take longer.`
      : `${what} on server "${serverName}" was not answered within ${timeout.ms} ms. Raise ${timeout.option} if it may take longer.`,
    details,
  );
}

function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
