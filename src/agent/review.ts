import type { AIMessage } from "@langchain/core/messages";

import { callOf, checked } from "../call/callArguments.js";
import { askedCall, type Wanted } from "../call/permits.js";
import type { McpTool } from "../call/mcpTool.js";
import { isOurPrefix, namesakesOf } from "../disclose/namesakes.js";
import type { ProviderTool } from "../disclose/providerTools.js";
import { EXECUTE_TOOL_NAME } from "../disclose/thread.js";
import type { HubParts } from "../hub/hubParts.js";
import { resourceOperation } from "../input/resourceTools.js";
import { permissionOf } from "../policy/operation.js";
import type { McpAsked, McpStateUpdate, McpUnbound } from "../state.js";
import { innerCall } from "./executeTool.js";
import { mendCalls } from "./mendCalls.js";
import type { RunContext, ToolCall } from "./runContext.js";
import type { AgentServers } from "./servers.js";

/** The tools of the request that the model answered. */
export interface RequestTools {
  readonly tools: readonly McpTool[];
  readonly providerTools: readonly ProviderTool[];
  readonly foreignNames: ReadonlySet<string>;
}

/**
 * Finds the calls of an answer that are ours and that need approval. Runs once; later hooks read
 * the result from the state.
 */
export class CallReview {
  readonly #hub: HubParts;
  readonly #servers: AgentServers;

  constructor(hub: HubParts, servers: AgentServers) {
    this.#hub = hub;
    this.#servers = servers;
  }

  /** @returns The state update; `undefined` when there is none. */
  async review(
    run: RunContext,
    answer: AIMessage,
    request: RequestTools,
  ): Promise<McpStateUpdate | undefined> {
    const broken = mendCalls(answer);
    const unbound: McpUnbound = {};
    const asked: McpAsked = {};
    const ours = new Set(request.tools.map(({ name }) => name));
    const deferred = new Set(request.providerTools.map(({ name }) => name));
    const calls = answer.tool_calls ?? [];
    const twice = repeatedIds(calls);
    for (const [order, sent] of calls.entries()) {
      const id = sent.id!;
      if (broken.has(id)) {
        unbound[id] = "broken";
        continue;
      }
      const isExecution = sent.name === EXECUTE_TOOL_NAME && ours.has(sent.name);
      const call: ToolCall = (isExecution ? innerCall(sent) : undefined) ?? sent;
      const isBound = isExecution || ours.has(call.name);
      const verdict = isBound
        ? undefined
        : deferred.has(call.name)
          ? "deferred"
          : unboundVerdict(run, call.name, request);
      if (verdict !== undefined) unbound[id] = verdict;
      if (
        verdict === "foreign" ||
        verdict === "suggest" ||
        (!isExecution && request.foreignNames.has(call.name))
      )
        continue;
      const ofResources = isExecution ? undefined : this.#judgeResources(run, call, ours);
      const wanted = ofResources ?? (await this.#judge(run, call, verdict === "repair"));
      if (wanted === undefined) continue;
      const { decision, operation } = wanted;
      // A repaired name runs only if nobody has to be asked.
      if (verdict === "repair" && decision.kind !== "allow") unbound[id] = "suggest";
      else if (decision.kind === "ask" && twice.has(id)) unbound[id] = "ambiguous";
      else if (decision.kind === "ask") {
        asked[id] = askedCall(wanted, order);
        this.#hub.permits.audit(operation, decision, { ...run.caller, toolCallId: id });
      }
    }
    const { _mcpUnbound, _mcpAsked, _mcpDecisions } = run.state;
    const update: McpStateUpdate = {
      ...replaced("_mcpUnbound", unbound, _mcpUnbound),
      ...replaced("_mcpAsked", asked, _mcpAsked),
      // Clears decisions of an earlier step.
      ...replaced("_mcpDecisions", {}, _mcpDecisions),
    };
    return Object.keys(update).length === 0 ? undefined : update;
  }

  /** Judges the request of a resource tool; `undefined` for other calls. */
  #judgeResources(
    { view, caller }: RunContext,
    call: ToolCall,
    ours: ReadonlySet<string>,
  ): Wanted | undefined {
    const operation = ours.has(call.name) ? resourceOperation(call.name, call.args) : undefined;
    if (operation === undefined || !view.serverNames.includes(operation.serverName))
      return undefined;
    return {
      operation,
      decision: this.#hub.permits.decide(operation, caller),
      name: permissionOf(operation),
    };
  }

  /** Judges a call; `undefined` if it is not ours or cannot run: the call itself reports why. */
  async #judge(run: RunContext, call: ToolCall, isRepaired: boolean): Promise<Wanted | undefined> {
    const { settings, permits, gate } = this.#hub;
    const { view, caller } = run;
    if (!settings.canAsk) return undefined;
    const entry = isRepaired
      ? namesakesOf(view, call.name)[0]
      : await this.#servers.lookUp(run, call.name, isOurPrefix(call.name));
    if (entry === undefined || permits.isFree(callOf(entry, call.args), caller)) return undefined;
    const { serverName, toolName } = entry;
    try {
      const judged = await gate.judge({
        ...caller,
        serverName,
        toolName,
        arguments: call.args,
        toolCallId: call.id,
      });
      // Invalid arguments fail before anyone is asked.
      if (judged.decision.kind === "ask") checked(judged.entry, judged.operation.arguments);
      const { operation, decision } = judged;
      return { operation, decision, name: judged.entry.boundName, toolHash: judged.entry.hash };
    } catch {
      // A missing tool, invalid arguments or a failed hook: the call itself reports it.
      caller.signal?.throwIfAborted();
      return undefined;
    }
  }
}

function unboundVerdict(
  { view }: RunContext,
  name: string,
  { foreignNames }: RequestTools,
): McpUnbound[string] | undefined {
  const isKnown = view.tool(name) !== undefined;
  const namesakes = namesakesOf(view, name);
  if (foreignNames.has(name))
    return isKnown || namesakes.length > 0 || isOurPrefix(name) ? "foreign" : undefined;
  if (isKnown || namesakes.length === 0) return undefined;
  return namesakes.length === 1 ? "repair" : "suggest";
}

function repeatedIds(calls: readonly ToolCall[]): Set<string> {
  const ids = calls.map(({ id }) => id!);
  return new Set(ids.filter((id, index) => ids.indexOf(id) !== index));
}

/** Replaces the value of an earlier step; empty when both are empty. */
function replaced<Key extends "_mcpUnbound" | "_mcpAsked" | "_mcpDecisions">(
  key: Key,
  next: NonNullable<McpStateUpdate[Key]>,
  before: object | undefined,
): McpStateUpdate {
  return Object.keys(next).length + Object.keys(before ?? {}).length === 0 ? {} : { [key]: next };
}
