import { oneLine } from "../text/clean.js";
import { saysTooLarge } from "../connect/failures.js";
import {
  McpAuthRequiredError,
  McpConnectionError,
  McpMiddlewareError,
  McpNotFoundError,
  McpPolicyError,
  McpProtocolError,
  messageOf,
} from "../errors.js";

const MAX_SERVER_TEXT_CHARS = 1_000;

/**
 * What the model reads about a failed call: one or two sentences, what it may do next, no stack, no option names.
 */
export function errorTextForModel(error: unknown, boundName: string): string {
  if (!McpMiddlewareError.isInstance(error)) {
    return `The call of ${boundName} failed: ${oneLine(messageOf(error), MAX_SERVER_TEXT_CHARS)}`;
  }
  const server = `Server "${oneLine(error.serverName ?? "", 64)}"`;
  if (McpProtocolError.isInstance(error)) {
    if (error.code === "INVALID_ARGUMENTS") return oneLine(error.message, 3_000);
    return `${server} refused the call of ${boundName}: ${oneLine(error.serverText ?? "", MAX_SERVER_TEXT_CHARS)}`;
  }
  if (McpAuthRequiredError.isInstance(error)) return `${server} needs a sign-in before its tools can be used. Go on without it.`;
  if (McpPolicyError.isInstance(error)) return policyText(error, boundName);
  if (McpNotFoundError.isInstance(error))
    return `The tool ${boundName} is not available any more. Search again for what you need.`;
  if (McpConnectionError.isInstance(error)) {
    switch (error.code) {
      case "REQUEST_TIMEOUT":
        return `${server} did not answer the call of ${boundName} in time. It may still be working on it; do not repeat a call that changes something without checking.`;
      case "BREAKER_OPEN": {
        const until = error.untilMs === undefined ? "later" : `until ${new Date(error.untilMs).toISOString()}`;
        return `${server} is unavailable ${until}. Do not call it before; use other tools.`;
      }
      case "CLOSED":
        return `${server} is not available any more. Go on without it.`;
      case "SESSION_LOST":
        // Without a tool it was lost before this call, which was then not sent.
        if (saysTooLarge(error.message)) {
          return `The answer of ${boundName} was too large and could not be taken; the connection was lost with it. Ask for less.`;
        }
        if (error.toolName === undefined) return `${server} is not available now. Use other tools, or try again later.`;
        return `The connection to ${server.replace("S", "s")} was lost. Whether ${boundName} ran is not known; use other tools, or try again later.`;
      default:
        if (saysTooLarge(error.message)) return `The answer of ${boundName} was too large and could not be taken. Ask for less.`;
        return `${server} is not available now. Use other tools, or try again later.`;
    }
  }
  return `The call of ${boundName} failed.`;
}

/** What the model reads when the policy or a person refused. Of a tool it may not know it learns nothing. */
function policyText({ code, reason, isHidden }: McpPolicyError, boundName: string): string {
  if (code === "POLICY_DENIED") {
    if (isHidden) return `The tool ${boundName} is not available. Search for what you need.`;
    return `The policy refused this call of ${boundName}: ${oneLine(reason, MAX_SERVER_TEXT_CHARS)}. Do not repeat it as it was.`;
  }
  return `${boundName} was not run: ${oneLine(reason, MAX_SERVER_TEXT_CHARS)}. Go on without it, or say what you need it for.`;
}
