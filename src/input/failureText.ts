import { oneLine } from "../text/clean.js";
import {
  McpAuthRequiredError,
  McpConnectionError,
  McpMiddlewareError,
  McpNotFoundError,
  McpPolicyError,
  McpProtocolError,
  messageOf,
} from "../errors.js";

const MAX_SERVER_TEXT_CHARS = 500;
const METHOD_NOT_FOUND = -32_601;
/** What SDKs put before a server's words, on both sides of the wire. */
const CODES = /^(?:MCP error -?\d+: )+/;

/**
 * Why a resource could not be read or a prompt not be got, in one or two sentences for a person or a model.
 *
 * @param subject - Such as `the resource`, in the middle of a sentence.
 * @param otherwise - What to do where a server has nothing of the kind.
 */
export function failureText(error: unknown, subject: string, otherwise: string): string {
  if (!McpMiddlewareError.isInstance(error))
    return `Getting ${subject} failed: ${oneLine(messageOf(error), MAX_SERVER_TEXT_CHARS)}`;
  const server = `Server "${oneLine(error.serverName ?? "", 64)}"`;
  if (McpPolicyError.isInstance(error)) {
    if (error.code === "POLICY_DENIED") return `The policy does not allow ${subject}.`;
    return `A person has to approve it: ${oneLine(error.reason, MAX_SERVER_TEXT_CHARS)}.`;
  }
  if (McpProtocolError.isInstance(error)) {
    if (error.rpcCode === METHOD_NOT_FOUND) return `${server} ${otherwise}`;
    return `${server} refused ${subject}: ${oneLine((error.serverText ?? "").replace(CODES, ""), MAX_SERVER_TEXT_CHARS)}`;
  }
  if (McpAuthRequiredError.isInstance(error)) return `${server} needs a sign-in before it can be used.`;
  if (McpNotFoundError.isInstance(error)) return `${server} is not configured.`;
  if (!McpConnectionError.isInstance(error)) return `${server} failed.`;
  switch (error.code) {
    case "REQUEST_TIMEOUT":
      return `${server} did not answer in time.`;
    case "BREAKER_OPEN": {
      const until = error.untilMs === undefined ? "now" : `until ${new Date(error.untilMs).toISOString()}`;
      return `${server} is unavailable ${until}.`;
    }
    default:
      return `${server} is not available now.`;
  }
}
