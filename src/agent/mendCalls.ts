import { randomUUID } from "node:crypto";

import type { AIMessage } from "@langchain/core/messages";

const MAX_RAW_CHARS = 100_000;

/**
 * Makes calls of a model's answer answerable, in place: a call without an id gets one, and a call
 * whose arguments are no JSON becomes a call without arguments. Empty arguments are none.
 * @returns The ids of calls with broken arguments: they are answered with an error, not run.
 */
export function mendCalls(answer: AIMessage): ReadonlySet<string> {
  const broken = new Set<string>();
  const calls = (answer.tool_calls ??= []);
  for (const call of calls) call.id = call.id === undefined || call.id === "" ? newId() : call.id;
  for (const { id, name, args } of answer.invalid_tool_calls ?? []) {
    const callId = id === undefined || id === "" ? newId() : id;
    if (!isEmpty(args)) broken.add(callId);
    calls.push({ type: "tool_call", id: callId, name: name ?? "unknown", args: {} });
  }
  answer.invalid_tool_calls = [];
  return broken;
}

function newId(): string {
  return `call_${randomUUID()}`;
}

function isEmpty(args: string | undefined): boolean {
  return args === undefined || (args.length < MAX_RAW_CHARS && args.trim() === "");
}
