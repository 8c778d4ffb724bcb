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
 * Runs the adapter's `afterToolCall` hook and puts its answer in place of the result's text.
 *
 * The hook may return a text, `[content, artifact]`, a `ToolMessage`, or `{ result }` with one of these. A `Command` is
 * not taken here: it would pass the gate unread.
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
    { serverName, name: toolName, args: structuredClone(args), result: [outcome.content, outcome.artifact.blocks] },
    stateOf(config),
    config ?? {},
  );
  const given = typeof answer === "object" && answer !== null && "result" in answer ? answer.result : answer;
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

/** State of the graph a call runs in; empty outside of one. */
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

/** Changes that the adapter's `beforeToolCall` hook asks for. */
export interface CallChange {
  readonly args: unknown;
  /** HTTP headers of this call alone. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** Runs the adapter's `beforeToolCall` hook on a copy of the arguments. */
export async function callBefore(
  hook: NonNullable<AdapterCallbacks["beforeToolCall"]>,
  { serverName, toolName }: ToolEntry,
  args: unknown,
  { config }: GateCall,
): Promise<CallChange> {
  const call = hook as (request: unknown, state: unknown, config: unknown) => unknown;
  const answer = (await call({ serverName, name: toolName, args: structuredClone(args) }, stateOf(config), config ?? {})) as
    { readonly args?: unknown; readonly headers?: unknown } | undefined;
  return { args: answer?.args, headers: headersOf(answer?.headers) };
}

/** Headers with text in them; `undefined` when there are none. */
function headersOf(given: unknown): Readonly<Record<string, string>> | undefined {
  const headers = textsOf(given);
  return Object.keys(headers).length === 0 ? undefined : headers;
}

/** Tells the adapter's `onProgress` callback. */
export function tellProgress(
  { onProgress }: AdapterCallbacks,
  progress: Progress,
  { serverName, toolName, args }: { readonly serverName: string; readonly toolName: string; readonly args: unknown },
  events: HubEvents,
): void {
  const callback = onProgress as ((progress: unknown, source: unknown) => unknown) | undefined;
  if (callback === undefined) return;
  events.guard("onProgress", serverName, () => callback(progress, { type: "tool", name: toolName, args, server: serverName }));
}
