import type { Caller } from "../call/caller.js";
import type { View } from "../disclose/view.js";
import type { McpThreadState } from "../state.js";

/** One step of a run: the view, the thread's state, the caller. */
export interface RunContext {
  readonly view: View;
  readonly state: McpThreadState;
  readonly caller: Caller;
}

export interface ToolCall {
  readonly id?: string | undefined;
  /** Name that the model used: a bound name, if the tool is ours. */
  readonly name: string;
  readonly args?: unknown;
}

/**
 * True for a run inside another agent's tool (deepagents), whose task is not typed input; LangGraph
 * names such nodes `tools:…`.
 */
export function isInsideOfTool({ config }: Caller): boolean {
  const namespace: unknown = config?.configurable?.["checkpoint_ns"];
  if (typeof namespace !== "string") return false;
  const around = namespace.split("|").slice(0, -1);
  return around.some((node) => node.startsWith("tools:"));
}

/** A record's value for a tool call, which may have no id. */
export function ofCall<Value>(
  record: Readonly<Record<string, Value>> | undefined,
  { id }: ToolCall,
): Value | undefined {
  return record !== undefined && id !== undefined && Object.hasOwn(record, id)
    ? record[id]
    : undefined;
}
