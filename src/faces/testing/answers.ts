import { isRecord } from "../../text/isRecord.js";
import { messageOf } from "../../errors.js";

/** What a scripted call is given. */
export interface McpTestCall {
  readonly serverName: string;
  /** The server's own name of the tool, the name of the prompt, or the URI of the resource. */
  readonly target: string;
  /** As they reached the server: repaired, checked, and as a person edited them. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Number of the call of this target, from 1. */
  readonly count: number;
}

/** A result in the protocol's own shape. */
type Result = Readonly<Record<string, unknown>>;

/** What is answered: text, a result in the protocol's own shape, or an `Error`. */
export type McpTestValue = string | Result | Error;

/**
 * Scripted answer: a value, a function of the call, or an array of these, one for each call in turn. An `Error` of a tool is
 * an `isError` result with its message; of a prompt or a resource it is the server's refusal.
 */
export type McpTestAnswer =
  | McpTestValue
  | ((call: McpTestCall) => McpTestValue | Promise<McpTestValue>)
  | readonly (McpTestValue | ((call: McpTestCall) => McpTestValue | Promise<McpTestValue>))[];

/** What a script says to a call. @throws what the script's function throws, and when it has no further answer. */
export async function answerTo(answer: McpTestAnswer, call: McpTestCall): Promise<McpTestValue> {
  const one = isSequence(answer) ? answer[call.count - 1] : answer;
  if (one === undefined && isSequence(answer)) {
    throw new Error(`The script of "${call.target}" has ${answer.length} answers; this is call ${call.count}.`);
  }
  const value: unknown = typeof one === "function" ? await one(call) : one;
  if (typeof value === "string" || value instanceof Error || (isRecord(value) && !isContentBlock(value))) return value;
  throw new Error(
    `The script of "${call.target}" answers with ${isRecord(value) ? "a content block" : typeof value}. Give text, an Error, or a result such as { content: [{ type: "text", text: "…" }] }.`,
  );
}

/** An array of blocks was meant for one result, and is a sequence of answers here. A resource's content has no `type`. */
function isContentBlock(value: Readonly<Record<string, unknown>>): boolean {
  return ["text", "image", "audio", "resource", "resource_link"].includes(String(value["type"]));
}

function isSequence(answer: McpTestAnswer): answer is Extract<McpTestAnswer, readonly unknown[]> {
  return Array.isArray(answer);
}

const RESULT_KEYS = ["content", "structuredContent", "isError", "_meta"] as const;

/** The result of a tool. @throws for an object that is none. */
export function toToolResult(value: McpTestValue): Result {
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  if (value instanceof Error) return { content: [{ type: "text", text: messageOf(value) }], isError: true };
  if (RESULT_KEYS.some((key) => key in value)) return { content: [], ...value };
  throw new Error(
    `A result has one of ${RESULT_KEYS.join(", ")}; the script has ${Object.keys(value).join(", ") || "nothing"}. Did you mean { structuredContent: … }?`,
  );
}

/** The result of a prompt. @throws a value that is an `Error`. */
export function toPromptResult(value: McpTestValue): Result {
  if (value instanceof Error) throw value;
  return typeof value === "string" ? { messages: [{ role: "user", content: { type: "text", text: value } }] } : value;
}

/** The result of reading a resource. @throws a value that is an `Error`. */
export function toResourceResult(value: McpTestValue, uri: string): Result {
  if (value instanceof Error) throw value;
  if (typeof value === "string") return { contents: [{ uri, mimeType: "text/plain", text: value }] };
  return isRecord(value) && "contents" in value ? value : { contents: [{ uri, ...value }] };
}
