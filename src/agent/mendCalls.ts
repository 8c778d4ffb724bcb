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
  for (const call of calls) call.id ||= newId();
  // They stay on the message: a cache may give the same answer again, and it is reviewed again.
  for (const invalid of answer.invalid_tool_calls ?? []) {
    const id = (invalid.id ||= newId());
    if (!isEmpty(invalid.args)) broken.add(id);
    if (calls.some((call) => call.id === id)) continue;
    calls.push({ type: "tool_call", id, name: invalid.name ?? "unknown", args: {} });
  }
  return broken;
}

function newId(): string {
  return `call_${randomUUID()}`;
}

function isEmpty(args: string | undefined): boolean {
  return args === undefined || (args.length < MAX_RAW_CHARS && args.trim() === "");
}
