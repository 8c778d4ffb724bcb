import type { AskRequest, OnAsk } from "../config/askSchema.js";
import type { HubEvents } from "../events.js";
import { messageOf } from "../errors.js";
import { readAskResponse, refuseAll, toAskRequest } from "./request.js";
import type { McpAsked, McpDecisions } from "../state.js";
import type { Caller } from "../call/caller.js";

export type Interrupt = (request: AskRequest) => unknown;

/** Ways to ask a person from inside a run. */
export interface Asking {
  /** `undefined` outside of a graph. */
  readonly interrupt: Interrupt | undefined;
  /** Used when the run cannot be interrupted. */
  readonly onAsk: OnAsk | undefined;
  readonly events: HubEvents;
}

/**
 * Asks about all operations at once: by LangGraph's interrupt, which throws, else by `onAsk`.
 * Without either, refuses all.
 */
export async function askPeople(
  asked: McpAsked,
  { interrupt, onAsk, events }: Asking,
  caller: Pick<Caller, "context" | "signal">,
): Promise<McpDecisions> {
  try {
    if (interrupt !== undefined) return read(asked, interrupt(toAskRequest(asked)), events);
  } catch (error) {
    if (!isMissingCheckpointer(error)) throw error;
  }
  if (onAsk !== undefined) return askNow(asked, onAsk, caller);
  events.warn(
    "NOBODY_TO_ASK",
    'Something has to be approved by a person, and the agent has no way to ask: compile it with a checkpointer, or give the option "onAsk".',
  );
  return refuseAll(asked, "A person has to approve it, and none can be asked here");
}

/** Asks by `onAsk`. An error that it throws refuses all operations. */
export async function askNow(
  asked: McpAsked,
  onAsk: OnAsk,
  { context = {}, signal }: Pick<Caller, "context" | "signal">,
): Promise<McpDecisions> {
  try {
    return readAskResponse(asked, await onAsk(toAskRequest(asked), { context, signal }));
  } catch (error) {
    signal?.throwIfAborted();
    return refuseAll(asked, `Asking failed: ${messageOf(error)}`);
  }
}

/**
 * Reads a resumed answer and warns when it is unreadable: otherwise only the model would learn of
 * it.
 */
function read(asked: McpAsked, response: unknown, events: HubEvents): McpDecisions {
  const decisions = readAskResponse(asked, response);
  const unread = Object.values(decisions).find(({ type }) => type === "refuse");
  if (unread !== undefined) {
    events.warn(
      "ANSWER_UNREADABLE",
      `${unread.message ?? "An answer could not be read"}: nothing was run. Resume with { decisions: [{ type: "approve" }] }, one for each request in their order, or each with its callId.`,
    );
  }
  return decisions;
}

function isMissingCheckpointer(error: unknown): boolean {
  return (
    typeof error === "object" &&
    error !== null &&
    "lc_error_code" in error &&
    error.lc_error_code === "MISSING_CHECKPOINTER"
  );
}
