import type { AIMessage, BaseMessage } from "@langchain/core/messages";

import { askPeople, type Interrupt } from "../ask/people.js";
import { callOf, checked } from "../call/callArguments.js";
import { readExecution } from "./executeTool.js";
import { openCalls } from "./openCalls.js";
import { askedCall, type Wanted } from "../call/permits.js";
import type { McpTool } from "../call/mcpTool.js";
import type { OnAsk } from "../config/askSchema.js";
import { isOurPrefix, namesakesOf } from "../disclose/namesakes.js";
import { EXECUTE_TOOL_NAME } from "../disclose/thread.js";
import type { ProviderTool } from "../disclose/providerTools.js";
import type { View } from "../disclose/view.js";
import type { McpHub } from "../hub/mcpHub.js";
import { resourceOperation } from "../input/resourceTools.js";
import { permissionOf } from "../policy/operation.js";
import type { LookUpTool, RunContext, ToolCallLike } from "./runContext.js";
import type { McpAsked, McpStateUpdate, McpThreadState, McpUnbound } from "../state.js";

/** What a review is made of. */
export interface CallReviewParts {
  readonly hub: McpHub;
  readonly onAsk: OnAsk | undefined;
  readonly lookUp: LookUpTool;
}

/** What {@link CallReview.review} needs of a model call. */
export interface ReviewedPlan {
  readonly tools: readonly McpTool[];
  /** What the provider's own search can show. */
  readonly providerTools: readonly ProviderTool[];
  readonly foreignNames: ReadonlySet<string>;
  readonly view: View;
}

/** Looks at the calls of a model's answer before any of them runs, and asks a person about those that have to be asked. */
export class CallReview {
  readonly #parts: CallReviewParts;

  constructor(parts: CallReviewParts) {
    this.#parts = parts;
  }

  /** Looks at the model's answer once, and writes down what later hooks must not work out anew. */
  async review(
    answer: AIMessage,
    plan: ReviewedPlan,
    state: McpThreadState,
    run: RunContext,
  ): Promise<McpStateUpdate | undefined> {
    const unbound: McpUnbound = {};
    const asked: McpAsked = {};
    const ours = new Set(plan.tools.map(({ name }) => name));
    const deferred = new Set(plan.providerTools.map(({ name }) => name));
    const calls = (answer.tool_calls ?? []).filter((call) => call.id !== undefined);
    const seen = new Set<string>();
    const twice = new Set(calls.flatMap(({ id }) => (seen.size === seen.add(id!).size ? [id!] : [])));
    for (const [order, sent] of calls.entries()) {
      const id = sent.id!;
      const isExecution = sent.name === EXECUTE_TOOL_NAME && ours.has(sent.name);
      const inner = isExecution ? readExecution(sent.args) : undefined;
      const call: ToolCallLike = inner === undefined ? sent : { id, ...inner };
      const isBound = isExecution || ours.has(call.name);
      const verdict = isBound ? undefined : deferred.has(call.name) ? "deferred" : this.#verdict(call.name, plan);
      if (verdict !== undefined) unbound[id] = verdict;
      if (verdict === "foreign" || verdict === "suggest" || (!isExecution && plan.foreignNames.has(call.name))) continue;
      const wanted =
        (isExecution ? undefined : this.#judgeRequest(call, ours, plan.view, run)) ??
        (await this.#judge(call, verdict === "repair", plan.view, run));
      if (wanted === undefined) continue;
      const { decision, operation } = wanted;
      // A name that is not the tool's own is mended only where nobody has to be asked.
      if (verdict === "repair" && decision.kind !== "allow") unbound[id] = "suggest";
      else if (decision.kind === "ask" && twice.has(id)) unbound[id] = "ambiguous";
      else if (decision.kind === "ask") {
        asked[id] = askedCall(wanted, order);
        this.#parts.hub.permits.audit(operation, decision, { ...run, toolCallId: id });
      }
    }
    const update: McpStateUpdate = {
      ...replaced("_mcpUnbound", unbound, state._mcpUnbound),
      ...replaced("_mcpAsked", asked, state._mcpAsked),
      // Answers of an earlier step are for calls of that step.
      ...replaced("_mcpDecisions", {}, state._mcpDecisions),
    };
    return Object.keys(update).length === 0 ? undefined : update;
  }

  /** Asks a person about the calls that were written down. Never works out anew who is asked about what. */
  async ask(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    interrupt: Interrupt | undefined,
    run: RunContext,
  ): Promise<McpStateUpdate | undefined> {
    if (Object.keys(state._mcpAsked ?? {}).length === 0) return undefined;
    const asked = stillOpen(state._mcpAsked ?? {}, messages);
    if (Object.keys(asked).length === 0) return undefined;
    const { hub, onAsk } = this.#parts;
    return { _mcpDecisions: await askPeople(asked, { interrupt, onAsk, events: hub.events }, run) };
  }

  /** How a call is to be taken whose name was not bound. */
  #verdict(name: string, { foreignNames, view }: ReviewedPlan): McpUnbound[string] | undefined {
    const isKnown = view.tool(name) !== undefined;
    const namesakes = namesakesOf(view, name);
    if (foreignNames.has(name)) return isKnown || namesakes.length > 0 || isOurPrefix(name) ? "foreign" : undefined;
    if (isKnown || namesakes.length === 0) return undefined;
    return namesakes.length === 1 ? "repair" : "suggest";
  }

  /** What the policy says of the request that one of our own tools makes; `undefined` for other calls. */
  #judgeRequest(call: ToolCallLike, ours: ReadonlySet<string>, view: View, run: RunContext): Wanted | undefined {
    const operation = ours.has(call.name) ? resourceOperation(call.name, call.args) : undefined;
    if (operation === undefined || !view.serverNames.includes(operation.serverName)) return undefined;
    return { operation, decision: this.#parts.hub.permits.decide(operation, run), name: permissionOf(operation) };
  }

  /** What the policy says of a call; `undefined` for one that is not ours or cannot be run: it will say why. */
  async #judge(call: ToolCallLike, isRepaired: boolean, view: View, run: RunContext): Promise<Wanted | undefined> {
    const { hub, lookUp } = this.#parts;
    if (!hub.settings.canAsk) return undefined;
    const entry = isRepaired
      ? namesakesOf(view, call.name)[0]
      : await lookUp(view, call.name, isOurPrefix(call.name), run.signal);
    if (entry === undefined || hub.permits.isFree(callOf(entry, call.args), run)) return undefined;
    const { serverName, toolName } = entry;
    try {
      const judged = await hub.judge({ ...run, serverName, toolName, arguments: call.args, toolCallId: call.id });
      // Nobody is asked about a call that cannot be sent.
      if (judged.decision.kind === "ask") checked(judged.entry, judged.operation.arguments);
      const { operation, decision } = judged;
      return { operation, decision, name: judged.entry.boundName, toolHash: judged.entry.hash };
    } catch {
      // A tool that is gone, arguments that do not fit, a hook that failed: the call itself will say so.
      run.signal?.throwIfAborted();
      return undefined;
    }
  }
}

/** The asked calls that are calls of the last answer, and that nobody has answered meanwhile. */
function stillOpen(asked: McpAsked, messages: readonly BaseMessage[]): McpAsked {
  const open = new Set(openCalls(messages).map(({ id }) => id));
  return Object.fromEntries(Object.entries(asked).filter(([callId]) => open.has(callId)));
}

/** A write that replaces what an earlier step left; none when both are empty. */
function replaced<Key extends "_mcpUnbound" | "_mcpAsked" | "_mcpDecisions">(
  key: Key,
  next: NonNullable<McpStateUpdate[Key]>,
  before: object | undefined,
): McpStateUpdate {
  return Object.keys(next).length + Object.keys(before ?? {}).length === 0 ? {} : { [key]: next };
}
