import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { getCurrentTaskInput } from "@langchain/langgraph";

import type { ToolEntry } from "../catalog/toolEntry.js";
import { textsOf } from "../text/isRecord.js";
import type { AdapterCallbacks } from "../config/settings.js";
import type { Progress } from "../connect/peer.js";
import type { HubEvents } from "../events.js";
import type { GateCall } from "./gate.js";
import type { CallOutcome } from "./result.js";

/**
 * Replaces the result's text by the answer of the adapter's `afterToolCall` hook. The hook may
 * return a text, `[content, artifact]`, a `ToolMessage`, or `{ result }` with one of these. A
 * `Command` is refused with a warning: it would bypass the gate.
 */
export async function replaceResult(
  hook: NonNullable<AdapterCallbacks["afterToolCall"]>,
  outcome: CallOutcome,
  args: unknown,
  { serverName, toolName, config }: GateCall,
  events: HubEvents,
): Promise<CallOutcome> {
  const call = hook as (result: unknown, state: unknown, config: unknown) => unknown;
  const answer = await call(
    {
      serverName,
      name: toolName,
      args: structuredClone(args),
      result: [outcome.content, outcome.artifact.blocks],
    },
    stateOf(config),
    config ?? {},
  );
  const given =
    typeof answer === "object" && answer !== null && "result" in answer ? answer.result : answer;
  if (given === undefined || given === null) return outcome;
  const content = contentOf(given);
  if (content !== undefined) return { ...outcome, content };
  events.warn(
    "CALLBACK_FAILED",
    `afterToolCall for "${toolName}" returned something that is no text; the result stays as it was.`,
    serverName,
  );
  return outcome;
}

/** State of the graph that the call runs in; `{}` outside of a graph. */
export function stateOf(config: RunnableConfig | undefined): unknown {
  try {
    return config === undefined ? {} : getCurrentTaskInput(config);
  } catch {
    return {};
  }
}

function contentOf(given: unknown): string | undefined {
  if (typeof given === "string") return given;
  if (Array.isArray(given)) return contentOf(given[0]);
  if (ToolMessage.isInstance(given)) return given.text;
  return undefined;
}

export interface CallChange {
  readonly args: unknown;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** Runs the adapter's `beforeToolCall` hook with a copy of the arguments. */
export async function callBefore(
  hook: NonNullable<AdapterCallbacks["beforeToolCall"]>,
  { serverName, toolName }: ToolEntry,
  args: unknown,
  { config }: GateCall,
): Promise<CallChange> {
  const call = hook as (request: unknown, state: unknown, config: unknown) => unknown;
  const answer = (await call(
    { serverName, name: toolName, args: structuredClone(args) },
    stateOf(config),
    config ?? {},
  )) as { readonly args?: unknown; readonly headers?: unknown } | undefined;
  return { args: answer?.args, headers: headersOf(answer?.headers) };
}

function headersOf(given: unknown): Readonly<Record<string, string>> | undefined {
  const headers = textsOf(given);
  return Object.keys(headers).length === 0 ? undefined : headers;
}

export function tellProgress(
  { onProgress }: AdapterCallbacks,
  progress: Progress,
  {
    serverName,
    toolName,
    args,
  }: { readonly serverName: string; readonly toolName: string; readonly args: unknown },
  events: HubEvents,
): void {
  const callback = onProgress as ((progress: unknown, source: unknown) => unknown) | undefined;
  if (callback === undefined) return;
  events.guard("onProgress", serverName, () =>
    callback(progress, { type: "tool", name: toolName, args, server: serverName }),
  );
}
