import { ToolMessage } from "@langchain/core/messages";

import { oneLine } from "../text/clean.js";
import { isRecord } from "../text/isRecord.js";
import { jsonText } from "./contentBlock.js";
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
const MAX_REASON_CHARS = 500;
/* The server needs something of a person that it asks for on a page of its own. */
const PERSON_NEEDED = -32_042;

/**
 * Text for the model about a failed call: one or two sentences, without a stack or option names.
 */
export function errorTextForModel(error: unknown, boundName: string): string {
  if (!McpMiddlewareError.isInstance(error)) {
    return `The call of ${boundName} failed: ${oneLine(messageOf(error), MAX_SERVER_TEXT_CHARS)}`;
  }
  const server = `Server "${oneLine(error.serverName ?? "", 64)}"`;
  if (McpProtocolError.isInstance(error)) {
    if (error.code === "INVALID_ARGUMENTS") return oneLine(error.message, 3_000);
    return `${server} refused the call of ${boundName}: ${oneLine(error.serverText ?? "", MAX_SERVER_TEXT_CHARS)}${detailsText(error)}`;
  }
  if (McpAuthRequiredError.isInstance(error))
    return `${server} needs a sign-in before its tools can be used. Go on without it.`;
  if (McpPolicyError.isInstance(error)) return policyText(error, boundName);
  if (McpNotFoundError.isInstance(error))
    return `The tool ${boundName} is not available any more. Search again for what you need.`;
  if (McpConnectionError.isInstance(error)) {
    switch (error.code) {
      case "REQUEST_TIMEOUT":
        return `${server} did not answer the call of ${boundName} in time. It may still be working on it; do not repeat a call that changes something without checking.`;
      case "BREAKER_OPEN": {
        const until =
          error.untilMs === undefined ? "later" : `until ${new Date(error.untilMs).toISOString()}`;
        return `${server} is unavailable ${until}. Do not call it before; use other tools.`;
      }
      case "CLOSED":
        return `${server} is not available any more. Go on without it.`;
      case "UNANSWERED": {
        const status = error.httpStatus === undefined ? "" : ` (HTTP ${error.httpStatus})`;
        return `${server} did not answer the call of ${boundName}: the connection broke${status}. Whether it ran is not known; check before you repeat a call that changes something.`;
      }
      case "SERVER_BUSY":
        return `${server} is busy (HTTP ${error.httpStatus}) and did not run the call of ${boundName}. Try again ${laterText(error)}, or use other tools.`;
      case "MESSAGE_TOO_LARGE":
        return `The answer of ${boundName} was too large and could not be taken. Ask for less.`;
      default:
        return `${server} is not available now. Use other tools, or try again later.`;
    }
  }
  return `The call of ${boundName} failed.`;
}

/** A short form of what the server says about its error; a page that a person has to open first. */
function detailsText({ rpcCode, data }: McpProtocolError): string {
  if (data === undefined || data === null) return "";
  const pages = isRecord(data) && Array.isArray(data["elicitations"]) ? data["elicitations"] : [];
  const page = (pages as unknown[]).find(
    (one) => isRecord(one) && /^https?:/.test(String(one["url"])),
  );
  if (rpcCode === PERSON_NEEDED && isRecord(page)) {
    return ` A person has to open ${oneLine(String(page["url"]), MAX_REASON_CHARS)} first. Tell them, and call again when they have done it.`;
  }
  return ` Details: ${oneLine(jsonText(data), MAX_REASON_CHARS)}`;
}

function laterText({ untilMs }: McpConnectionError): string {
  return untilMs === undefined ? "later" : `after ${new Date(untilMs).toISOString()}`;
}

/** Text for the model about a refusal. A hidden tool reads like one that does not exist. */
function policyText({ code, reason, isHidden }: McpPolicyError, boundName: string): string {
  if (code === "POLICY_DENIED") {
    if (isHidden) return `The tool ${boundName} is not available. Search for what you need.`;
    return `The policy refused this call of ${boundName}: ${oneLine(reason, MAX_SERVER_TEXT_CHARS)}. Do not repeat it as it was.`;
  }
  return `${boundName} was not run: ${oneLine(reason, MAX_SERVER_TEXT_CHARS)}. Go on without it, or say what you need it for.`;
}

export function errorMessage(
  call: { readonly id?: string | undefined; readonly name: string },
  text: string,
): ToolMessage {
  return new ToolMessage({
    content: text,
    name: call.name,
    tool_call_id: call.id ?? "",
    status: "error",
  });
}

const METHOD_NOT_FOUND = -32_601;
/** Prefixes that the MCP SDKs on both sides add to a server's error text. */
const CODES = /^(?:MCP error -?\d+: )+/;

/**
 * Says why a resource or a prompt could not be fetched, in one or two sentences for a person or a
 * model.
 * @param subject - A noun for the middle of a sentence, such as `the resource`.
 * @param otherwise - Follows the server's name when the server does not know the method.
 */
export function failureText(error: unknown, subject: string, otherwise: string): string {
  if (!McpMiddlewareError.isInstance(error))
    return `Getting ${subject} failed: ${oneLine(messageOf(error), MAX_REASON_CHARS)}`;
  const server = `Server "${oneLine(error.serverName ?? "", 64)}"`;
  if (McpPolicyError.isInstance(error)) {
    if (error.code === "POLICY_DENIED") return `The policy does not allow ${subject}.`;
    return `A person has to approve it: ${oneLine(error.reason, MAX_REASON_CHARS)}.`;
  }
  if (McpProtocolError.isInstance(error)) {
    if (error.rpcCode === METHOD_NOT_FOUND) return `${server} ${otherwise}`;
    return `${server} refused ${subject}: ${oneLine((error.serverText ?? "").replace(CODES, ""), MAX_REASON_CHARS)}`;
  }
  if (McpAuthRequiredError.isInstance(error))
    return `${server} needs a sign-in before it can be used.`;
  if (McpNotFoundError.isInstance(error)) return `${server} is not configured.`;
  if (!McpConnectionError.isInstance(error)) return `${server} failed.`;
  switch (error.code) {
    case "REQUEST_TIMEOUT":
      return `${server} did not answer in time.`;
    case "UNANSWERED":
      return `${server} did not answer: the connection broke.`;
    case "SERVER_BUSY":
      return `${server} is busy (HTTP ${error.httpStatus}). Try again ${laterText(error)}.`;
    case "MESSAGE_TOO_LARGE":
      return `${server} answered with more than can be taken.`;
    case "BREAKER_OPEN": {
      const until =
        error.untilMs === undefined ? "now" : `until ${new Date(error.untilMs).toISOString()}`;
      return `${server} is unavailable ${until}.`;
    }
    default:
      return `${server} is not available now.`;
  }
}
