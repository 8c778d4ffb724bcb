import type { RunnableConfig } from "@langchain/core/runnables";

import type { McpRunContext } from "../config/policyOptions.js";
import type { RunOrigin } from "../events.js";
import type { McpAsked, McpDecisions } from "../state.js";

/** A person's answer that lets an operation run. */
export interface Approval {
  /** `"edit"`: the call already has the edited arguments. */
  readonly type: "approve" | "edit";
  /**
   * Digest of the approved arguments: as they would be sent or, for an edit, as the person wrote
   * them.
   */
  readonly digest: string;
  readonly toolHash: string;
  readonly answeredBy?: string | undefined;
}

/** Who an operation is for, with a person's decision about it. */
export interface Caller {
  /** User, workspace, scopes. */
  readonly context?: McpRunContext | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly origin?: RunOrigin | undefined;
  /** Configuration of the run, for streams and adapter hooks. */
  readonly config?: RunnableConfig | undefined;
  readonly toolCallId?: string | undefined;
  /** Set when a person has already decided. */
  readonly approval?: Approval | undefined;
  /** Asks a person during the operation. */
  readonly ask?: ((asked: McpAsked) => Promise<McpDecisions>) | undefined;
}

/**
 * Reads the caller from a run's configuration: a hook's `runtime.context` has only keys of the
 * middleware's `contextSchema`.
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

/** The approval in a person's decision; `{}` for other decisions. */
export function approvalOf(decision: McpDecisions[string] | undefined): Pick<Caller, "approval"> {
  if (decision?.type !== "approve" && decision?.type !== "edit") return {};
  const { type, digest, toolHash, answeredBy } = decision;
  return { approval: { type, digest, toolHash, answeredBy } };
}
