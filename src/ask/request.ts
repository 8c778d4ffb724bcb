import { cut, visible } from "../text/clean.js";
import { argumentsDigest } from "../policy/operation.js";
import type { AskRequest } from "../config/askSchema.js";
import type { McpAsked, McpDecisions } from "../state.js";

const MAX_MESSAGE_CHARS = 2_000;
const CALL_ANSWERS = ["approve", "edit", "reject"] as const;
const OTHER_ANSWERS = ["approve", "reject"] as const;
const SUBJECTS = {
  call: "tool",
  invoke: "prompt",
  read: "resource",
  list: "its lists",
  start: "the program",
} as const;

type AskedCall = McpAsked[string];
type StoredDecision = McpDecisions[string];

/** Makes the request that a person sees, in the order of the calls. Pure. */
export function toAskRequest(asked: McpAsked): AskRequest {
  const calls = inOrder(asked);
  return {
    actionRequests: calls.map(([callId, { boundName, request }]) => ({
      name: boundName,
      args: request.arguments as Record<string, unknown>,
      description: describe(request),
      callId,
      operation: request.operation,
      serverName: request.serverName,
      ...(request.operation === "call" ? { toolName: request.target } : {}),
      target: request.target,
      class: request.class,
      reason: request.reason,
    })),
    reviewConfigs: calls.map(([, { boundName, request }]) => ({
      actionName: boundName,
      allowedDecisions: request.operation === "call" ? CALL_ANSWERS : OTHER_ANSWERS,
    })),
  };
}

/**
 * Reads a person's answer. Never throws: an unreadable answer refuses the calls it may have been
 * meant for. Matches answers by `callId` when given, else by order. A wrong number of answers or a
 * wrong `callId` refuses all calls.
 */
export function readAskResponse(asked: McpAsked, response: unknown): McpDecisions {
  const calls = inOrder(asked);
  const answers = (response as { readonly decisions?: unknown } | null | undefined)?.decisions;
  if (!Array.isArray(answers)) return refuseAll(asked, "The answer held no list of decisions");
  if (answers.length !== calls.length) {
    return refuseAll(asked, `There were ${calls.length} requests and ${answers.length} answers`);
  }
  const ids = (answers as unknown[]).map(
    (answer) => (answer as { readonly callId?: unknown } | null)?.callId,
  );
  const isById = ids.some((id) => id !== undefined);
  if (
    isById &&
    (new Set(ids).size !== calls.length || !calls.every(([callId]) => ids.includes(callId)))
  ) {
    return refuseAll(asked, "The answers do not name each requested call once");
  }
  return Object.fromEntries(
    calls.map(([callId, call], position) => [
      callId,
      readAnswer(call, (answers as unknown[])[isById ? ids.indexOf(callId) : position]),
    ]),
  );
}

/** Refuses every call. `why` begins a sentence for the model. */
export function refuseAll(asked: McpAsked, why: string): McpDecisions {
  return Object.fromEntries(inOrder(asked).map(([callId, call]) => [callId, refusal(call, why)]));
}

function readAnswer(call: AskedCall, answer: unknown): StoredDecision {
  const { type, message, editedAction, answeredBy } = (answer ?? {}) as Readonly<
    Record<string, unknown>
  >;
  const base = { ...signOf(call), ...(typeof answeredBy === "string" ? { answeredBy } : {}) };
  switch (type) {
    case "approve":
      return { ...base, type };
    case "reject":
      return {
        ...base,
        type,
        ...(typeof message === "string" ? { message: cut(message, MAX_MESSAGE_CHARS) } : {}),
      };
    case "edit": {
      const { name, args } = (editedAction ?? {}) as Readonly<Record<string, unknown>>;
      if (name !== undefined && name !== call.boundName)
        return refusal(call, "The answer changed the name of the tool");
      if (typeof args !== "object" || args === null || Array.isArray(args)) {
        return refusal(call, "The edited arguments are not an object");
      }
      return {
        ...base,
        type,
        digest: argumentsDigest(args),
        editedArguments: args as Record<string, unknown>,
      };
    }
    default:
      return refusal(call, "The answer was neither approve, edit nor reject");
  }
}

function refusal(call: AskedCall, why: string): StoredDecision {
  return { ...signOf(call), type: "refuse", message: why };
}

/** Ties an answer to its call. */
function signOf({
  boundName,
  toolHash,
  digest: asked,
}: AskedCall): Pick<StoredDecision, "boundName" | "toolHash" | "digest"> {
  return { boundName, toolHash, digest: asked };
}

function inOrder(asked: McpAsked): [string, AskedCall][] {
  return Object.entries(asked).sort(([, a], [, b]) => a.order - b.order);
}

/**
 * For a person: fixed words and order, texts of others quoted, so that a server cannot write what
 * is shown.
 */
function describe({
  operation,
  serverName,
  target,
  class: toolClass,
  reason,
}: AskedCall["request"]): string {
  const subject =
    target === "" ? SUBJECTS[operation] : `${SUBJECTS[operation]} ${quoted(target, 200)}`;
  return `MCP server ${quoted(serverName, 64)}: ${subject} (${toolClass}). Reason: ${visible(cut(reason, 500))}.`;
}

function quoted(text: string, maxChars: number): string {
  return `"${visible(cut(text, maxChars)).replaceAll('"', "'")}"`;
}
