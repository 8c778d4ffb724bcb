import { isRecord } from "../../text/isRecord.js";
import { messageOf } from "../../errors.js";

/** A call, as a script's function receives it. */
export interface McpTestCall {
  readonly serverName: string;
  /** Raw tool name, prompt name, or URI. */
  readonly target: string;
  /** As they reached the server: repaired, validated, edited by a person. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Number of the call of this target, from 1. */
  readonly count: number;
}

type Result = Readonly<Record<string, unknown>>;

/** Text, a result in MCP's shape, or an `Error`. */
export type McpTestValue = string | Result | Error;

/**
 * Scripted answer: a value, a function of the call, or an array of these, one per call. An `Error`
 * becomes an `isError` result of a tool, and a JSON-RPC error of a prompt or resource.
 */
export type McpTestAnswer =
  | McpTestValue
  | ((call: McpTestCall) => McpTestValue | Promise<McpTestValue>)
  | readonly (McpTestValue | ((call: McpTestCall) => McpTestValue | Promise<McpTestValue>))[];

/**
 * Returns a script's answer to a call.
 * @throws errors of the script's function, and when answers run out.
 */
export async function answerTo(answer: McpTestAnswer, call: McpTestCall): Promise<McpTestValue> {
  const one = isSequence(answer) ? answer[call.count - 1] : answer;
  if (one === undefined && isSequence(answer)) {
    throw new Error(
      `The script of "${call.target}" has ${answer.length} answers; this is call ${call.count}.`,
    );
  }
  const value: unknown = typeof one === "function" ? await one(call) : one;
  if (
    typeof value === "string" ||
    value instanceof Error ||
    (isRecord(value) && !isContentBlock(value))
  )
    return value;
  throw new Error(
    `The script of "${call.target}" answers with ${isRecord(value) ? "a content block" : typeof value}. Give text, an Error, or a result such as { content: [{ type: "text", text: "…" }] }.`,
  );
}

/**
 * True for a content block: an array of them is read as a sequence of answers, not as one result.
 */
function isContentBlock(value: Readonly<Record<string, unknown>>): boolean {
  return ["text", "image", "audio", "resource", "resource_link"].includes(String(value["type"]));
}

function isSequence(answer: McpTestAnswer): answer is Extract<McpTestAnswer, readonly unknown[]> {
  return Array.isArray(answer);
}

const RESULT_KEYS = ["content", "structuredContent", "isError", "_meta"] as const;

/** Makes a tool result. @throws for an object that is none. */
export function toToolResult(value: McpTestValue): Result {
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  if (value instanceof Error)
    return { content: [{ type: "text", text: messageOf(value) }], isError: true };
  if (RESULT_KEYS.some((key) => key in value)) return { content: [], ...value };
  throw new Error(
    `A result has one of ${RESULT_KEYS.join(", ")}; the script has ${Object.keys(value).join(", ") || "nothing"}. Did you mean { structuredContent: … }?`,
  );
}

/** Makes a prompt result. @throws a value that is an `Error`. */
export function toPromptResult(value: McpTestValue): Result {
  if (value instanceof Error) throw value;
  return typeof value === "string"
    ? { messages: [{ role: "user", content: { type: "text", text: value } }] }
    : value;
}

/** Makes a resource result. @throws a value that is an `Error`. */
export function toResourceResult(value: McpTestValue, uri: string): Result {
  if (value instanceof Error) throw value;
  if (typeof value === "string")
    return { contents: [{ uri, mimeType: "text/plain", text: value }] };
  return isRecord(value) && "contents" in value ? value : { contents: [{ uri, ...value }] };
}
