import type { RunnableConfig } from "@langchain/core/runnables";

import { contextOf, originOf } from "../call/boundTool.js";
import type { Caller } from "../call/permits.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { View } from "../disclose/view.js";

/** What a hook runs in. */
export interface RunContext extends Pick<Caller, "origin" | "signal" | "context"> {
  /** Run configuration, for the adapter's hooks. */
  readonly config?: RunnableConfig | undefined;
}

/**
 * What a hook or a node runs in. Taken from the run's configuration: what `createAgent` hands to a hook as
 * `runtime.context` is only the part that the middleware's own `contextSchema` names.
 */
export function runContextOf(config: RunnableConfig | undefined): RunContext {
  return { origin: originOf(config ?? {}), signal: config?.signal, context: contextOf(config), config };
}

/**
 * True for a run that a tool of another agent began, as deepagents do: its messages are written by a model. LangGraph names
 * the nodes that a run is inside of; `tools` is the node of tool calls, in `createAgent` and in ours.
 */
export function isInsideOfTool({ config }: RunContext): boolean {
  const { checkpoint_ns: namespace } = (config?.configurable ?? {}) as { readonly checkpoint_ns?: unknown };
  if (typeof namespace !== "string") return false;
  const around = namespace.split("|").slice(0, -1);
  return around.some((node) => node.startsWith("tools:"));
}

/** A tool call as LangChain hands it on. */
export interface ToolCallLike {
  readonly id?: string | undefined;
  readonly name: string;
  readonly args?: unknown;
}

/**
 * The visible tool of a bound name. When it is not known and may be ours every server is waited for, so that a name can be
 * told from an unknown one in a process that has just started.
 */
export type LookUpTool = (
  view: View,
  name: string,
  mayBeOurs: boolean,
  signal: AbortSignal | undefined,
) => Promise<ToolEntry | undefined>;
