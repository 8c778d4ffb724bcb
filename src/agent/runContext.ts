import type { Caller } from "../call/caller.js";
import type { View } from "../disclose/view.js";
import type { McpThreadState } from "../state.js";

/** One step of a run: what it may see, the state of its thread, who it is for. */
export interface RunContext {
  readonly view: View;
  readonly state: McpThreadState;
  readonly caller: Caller;
}

/** A tool call of a model, as LangChain passes it on. */
export interface ToolCall {
  readonly id?: string | undefined;
  /** The name the model used: a bound name, if it is ours. */
  readonly name: string;
  readonly args?: unknown;
}

/**
 * True for a run that a tool of another agent began, as deepagents do: its task was written by a model, so nothing in it is
 * typed input. LangGraph names the nodes around a run; `tools` is the node of tool calls, in `createAgent` and in ours.
 */
export function isInsideOfTool({ config }: Caller): boolean {
  const namespace: unknown = config?.configurable?.["checkpoint_ns"];
  if (typeof namespace !== "string") return false;
  const around = namespace.split("|").slice(0, -1);
  return around.some((node) => node.startsWith("tools:"));
}

/** The value of a record for a tool call, which may have no id. */
export function ofCall<Value>(record: Readonly<Record<string, Value>> | undefined, { id }: ToolCall): Value | undefined {
  return record !== undefined && id !== undefined && Object.hasOwn(record, id) ? record[id] : undefined;
}
