import type { RunnableConfig } from "@langchain/core/runnables";

import type { McpRunContext } from "../config/policyOptions.js";
import type { RunOrigin } from "../events.js";
import type { McpAsked, McpDecisions } from "../state.js";

/** A person's answer that lets an asked operation run. */
export interface Approval {
  /** `"edit"`: the call already has the edited arguments. */
  readonly type: "approve" | "edit";
  /** Digest of the approved arguments: as they would be sent; of an edit, as the person wrote them. */
  readonly digest: string;
  /** Content hash of the approved tool. */
  readonly toolHash: string;
  readonly answeredBy?: string | undefined;
}

/** Who an operation is for, and what a person said about it. */
export interface Caller {
  /** Context of the run: user, workspace, scopes. */
  readonly context?: McpRunContext | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Thread and run, for events. */
  readonly origin?: RunOrigin | undefined;
  /** Configuration of the run, for streams and for the adapter's hooks. */
  readonly config?: RunnableConfig | undefined;
  readonly toolCallId?: string | undefined;
  /** What a person has already said. */
  readonly approval?: Approval | undefined;
  /** Asks a person who has not been asked. */
  readonly ask?: ((asked: McpAsked) => Promise<McpDecisions>) | undefined;
}

/**
 * The caller of a run, read from its configuration: what `createAgent` passes to a hook as `runtime.context` is only the part
 * that the middleware's own `contextSchema` names.
 */
export function callerOf(config: RunnableConfig | undefined): Caller {
  const { configurable, metadata, runId: ownId } = config ?? {};
  const runId: unknown = ownId ?? configurable?.["run_id"] ?? metadata?.["run_id"];
  const threadId: unknown = configurable?.["thread_id"];
  const context = (config as { readonly context?: unknown } | undefined)?.context;
  return {
    context: typeof context === "object" && context !== null ? (context as McpRunContext) : {},
    signal: config?.signal,
    origin: {
      threadId: typeof threadId === "string" ? threadId : undefined,
      runId: typeof runId === "string" ? runId : undefined,
    },
    config,
  };
}

/** The approval in a person's decision; nothing for other decisions. */
export function approvalOf(decision: McpDecisions[string] | undefined): Pick<Caller, "approval"> {
  if (decision?.type !== "approve" && decision?.type !== "edit") return {};
  const { type, digest, toolHash, answeredBy } = decision;
  return { approval: { type, digest, toolHash, answeredBy } };
}
