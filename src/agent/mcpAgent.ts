import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";

import { askPeople, type Interrupt } from "../ask/people.js";
import { settleConsents, waitingPrograms } from "../ask/programs.js";
import { callerOf, type Caller } from "../call/caller.js";
import type { McpTool } from "../call/mcpTool.js";
import { PROFILES, type SchemaProfile } from "../catalog/schema/profiles.js";
import type { agentOptionsSchema } from "../config/agentOptions.js";
import type { OnAsk } from "../config/askSchema.js";
import { DEFAULTS } from "../config/defaults.js";
import { budgetsOf } from "../config/settings.js";
import { modelClientOf, type ModelClient } from "../disclose/modelClient.js";
import { isOurPrefix } from "../disclose/namesakes.js";
import { withNotes } from "../disclose/notes.js";
import { activationOf, toolsToBind, type SizeOf } from "../disclose/promotion.js";
import { toolsForProvider, type ProviderTool } from "../disclose/providerTools.js";
import { SEARCH_TOOL_NAME, showThread, type ThreadSettings } from "../disclose/thread.js";
import type { Views } from "../disclose/views.js";
import type { McpHub } from "../hub/mcpHub.js";
import { partsOf, type HubParts } from "../hub/hubParts.js";
import { placeResources, type PlacedResources } from "../input/placeResources.js";
import { shownResources } from "../input/threadResources.js";
import { TurnInput, type TurnOutcome } from "../input/turnInput.js";
import { withoutAnswered } from "../input/typed.js";
import {
  EMPTY_ACTIVATION,
  mergeActivation,
  type McpAsked,
  type McpStateUpdate,
  type McpThreadState,
} from "../state.js";
import type * as z from "zod";
import { openCalls } from "./openCalls.js";
import { withOrphansAnswered } from "./orphans.js";
import { toRequestMessages } from "./requestMessages.js";
import { CallReview } from "./review.js";
import { ToolRouter, type ToolCallRoute } from "./router.js";
import { isInsideOfTool, type RunContext, type ToolCall } from "./runContext.js";
import { AgentServers } from "./servers.js";
import { SyntheticTools } from "./syntheticTools.js";

/** Additions to a model call. */
export interface ModelCallPlan {
  /** Text for the end of the system message, or `""`. */
  readonly listing: string;
  /** Texts for the system message behind the listing, one per mentioned resource. */
  readonly resources: readonly string[];
  /** Tools to bind behind the agent's own, in stable order. */
  readonly tools: readonly McpTool[];
  /** Tools for the provider's own search, followed by that search tool. */
  readonly providerTools: readonly ProviderTool[];
  /** The thread's messages, with notes between them. */
  readonly messages: BaseMessage[];
  readonly update: McpStateUpdate | undefined;
  /** Names of the request's tools that are not ours. */
  readonly foreignNames: ReadonlySet<string>;
}

export interface ModelCall {
  readonly messages: readonly BaseMessage[];
  /** Messages of the thread, if the request has others. */
  readonly threadMessages?: readonly BaseMessage[] | undefined;
  /** Names of the request's tools that are not ours. */
  readonly foreignNames: ReadonlySet<string>;
  /** Model client, if known; schemas, descriptions and images follow its format. */
  readonly model?: unknown;
  /** True when no model will be called. */
  readonly isPreview?: boolean;
}

/**
 * One agent's use of a hub, for all faces and threads; holds no conversation. A run calls {@link
 * start}, {@link answerTyped}, {@link prepare}, {@link review}, {@link ask} and {@link route}, in
 * this order.
 */
export class McpAgent {
  readonly #hub: HubParts;
  readonly #views: Views;
  readonly #settings: ThreadSettings;
  readonly #servers: AgentServers;
  readonly #review: CallReview;
  readonly #router: ToolRouter;
  readonly #input: TurnInput;
  readonly #onAsk: OnAsk | undefined;
  readonly #placement: "system" | "message";
  readonly #synthetic: SyntheticTools;
  readonly #maxProviderTools: number;
  /** Of the model client that was called last; `undefined` before the first call. */
  #profile: SchemaProfile | undefined;

  /** @throws {McpConfigError} when `servers` names a server that the hub does not have. */
  constructor(hub: McpHub, options: z.output<typeof agentOptionsSchema> = {}) {
    const parts = partsOf(hub);
    const {
      servers,
      tools,
      strategy = "promote",
      listing = true,
      search = true,
      resourceTools = true,
    } = options;
    const {
      mentions = true,
      commands = true,
      chatCommands = "thread",
      placement = "system",
    } = options;
    const budgets = budgetsOf(options, parts.settings.budgets);
    this.#hub = parts;
    this.#views = parts.views({ servers, tools });
    this.#settings = {
      budgets,
      names: parts.settings.names,
      strategy,
      listing,
      search,
      resourceTools,
      sizeOf: (entry) => parts.tools.sizeOf(entry, this.#profile ?? PROFILES.generic),
    };
    this.#onAsk = options.onAsk;
    this.#placement = placement;
    this.#maxProviderTools = options.maxProviderTools ?? DEFAULTS.maxProviderTools;
    this.#input = new TurnInput(parts, { ...budgets, mentions, commands, chatCommands });
    this.#servers = new AgentServers(parts, this.#settings);
    this.#review = new CallReview(parts, this.#servers);
    this.#synthetic = new SyntheticTools(parts, this.#servers, this.#settings, this.#views);
    this.#router = new ToolRouter(parts, this.#servers, this.#settings, this.#synthetic);
    for (const serverName of this.#views.serverNames) parts.usedServers.add(serverName);
  }

  /** Whether anything can ask a person; otherwise an agent needs no hook for it. */
  get canAsk(): boolean {
    return this.#hub.settings.canAsk;
  }

  /** The context of one step. @param config - Of the run. */
  runOf(state: McpThreadState, config: RunnableConfig | undefined, own: Caller = {}): RunContext {
    const caller = { ...callerOf(config), ...own };
    return { view: this.#views.of(caller.context ?? {}, state.disabledMcpServers), state, caller };
  }

  /**
   * Begins a run: connects servers, takes typed input, lists. Input that needs approval waits for
   * {@link answerTyped}.
   */
  async start(run: RunContext, messages: readonly BaseMessage[]): Promise<TurnOutcome> {
    const { view, state, caller } = run;
    await this.#servers.ready(run);
    const waiting = waitingPrograms(this.#hub.consents, view.serverNames, state);
    // A sub-agent's task was written by a model: do not read it as typed input.
    const taken = await this.#input.take({
      state,
      messages,
      view,
      caller,
      isTyped: !isInsideOfTool(caller),
    });
    const turn = { ...taken, update: { ...withoutOldStep(state), ...taken.update, ...waiting } };
    // The listing of a new thread waits until it is known which programs may start.
    // What is deferred depends on how the model client takes tools, which the first call tells.
    const isEarly = this.#profile === undefined || "_mcpConsents" in waiting;
    if (turn.isAnswered || (state._mcpSent === undefined && isEarly)) return turn;
    const { update } = showThread(view, state, messages, this.#settings, "turn");
    return { ...turn, update: { ...turn.update, ...update } };
  }

  /**
   * Asks a person about typed input and programs, by `interrupt` or `onAsk`.
   * @returns `undefined` when nothing waits.
   */
  async answerTyped(
    run: RunContext,
    messages: readonly BaseMessage[],
    interrupt: Interrupt | undefined,
  ): Promise<TurnOutcome | undefined> {
    const { view, state, caller } = run;
    if (!isWaiting(state)) return undefined;
    const consented = await this.#askConsents(run, interrupt);
    const typed = state._mcpTyped ?? undefined;
    if (typed === undefined) return { update: consented, messages: [], isAnswered: false };
    const decisions = await this.#askPeople(typed.asked, interrupt, caller);
    const turn = await this.#input.answered(typed, decisions, { state, messages, view, caller });
    return { ...turn, update: { ...turn.update, ...consented } };
  }

  /** Prepares a model call: listing, tools, notes. */
  async prepare(run: RunContext, call: ModelCall): Promise<ModelCallPlan> {
    const { view, state, caller } = run;
    const { messages, threadMessages = messages, foreignNames, isPreview = false } = call;
    await this.#servers.ready(run);
    const client = modelClientOf(call.model);
    if (!isPreview || call.model !== undefined) this.#profile = client.profile;
    const { sent, update } = showThread(view, state, messages, this.#settings, "step");
    const promoted = update?.mcpActivation ?? EMPTY_ACTIVATION;
    const activation = mergeActivation(activationOf(state), promoted);
    const { strategy, budgets } = this.#settings;
    const bound = toolsToBind(
      view,
      sent,
      strategy === "execute" ? EMPTY_ACTIVATION : activation,
      budgets,
      this.#settings.sizeOf,
    );
    const entries = bound.flatMap((tool) => (tool.kind === "mcp" ? [tool.entry] : []));
    const { providerTools, isSearchNeeded } = toolsForProvider({
      search: strategy === "provider" ? client.search : undefined,
      view,
      boundEntries: new Set(entries),
      foreignNames,
      maxTools: this.#maxProviderTools,
      toolOf: (entry) => this.#hub.tools.of(entry, client.profile),
    });
    const tools = bound.flatMap((tool) => {
      if (tool.kind === "synthetic" && tool.name === SEARCH_TOOL_NAME && !isSearchNeeded) return [];
      const made =
        tool.kind === "mcp"
          ? this.#hub.tools.of(tool.entry, client.profile)
          : this.#synthetic.get(tool.name);
      return made === undefined || foreignNames.has(made.name) ? [] : [made];
    });
    const sum = (sizeOf: SizeOf): number => entries.reduce((all, entry) => all + sizeOf(entry), 0);
    const boundChars = sum(this.#settings.sizeOf);
    const withheldChars = view.definitionChars - sum(({ definitionChars }) => definitionChars);
    const listingChars = sent.listing.length;
    if (!isPreview)
      this.#hub.events.emit("context", {
        ...caller.origin,
        withheldChars,
        boundChars,
        listingChars,
      });
    const isOurs = (name: string): boolean =>
      !foreignNames.has(name) &&
      (this.#synthetic.get(name) !== undefined ||
        isOurPrefix(name) ||
        view.catalog.tool(name) !== undefined);
    const answered = withNotes(withOrphansAnswered(withoutAnswered(messages), isOurs), sent.notes);
    const shown = toRequestMessages(answered, {
      images: client.images,
      maxStepResultChars: budgets.maxStepResultChars,
    });
    const placed = this.#placeResources(run, shown, threadMessages, client);
    return {
      listing: sent.listing,
      resources: placed.system,
      tools,
      providerTools,
      messages: placed.messages,
      update,
      foreignNames,
    };
  }

  /**
   * Reviews the model's answer once: finds calls of unbound tools, and calls that need approval.
   */
  review(
    run: RunContext,
    answer: AIMessage,
    plan: ModelCallPlan,
  ): Promise<McpStateUpdate | undefined> {
    return this.#review.review(run, answer, plan);
  }

  /**
   * Asks a person about all calls that {@link review} recorded, by `interrupt` or `onAsk`, without
   * deciding again.
   */
  async ask(
    { state, caller }: RunContext,
    messages: readonly BaseMessage[],
    interrupt: Interrupt | undefined,
  ): Promise<McpStateUpdate | undefined> {
    const all = Object.entries(state._mcpAsked ?? {});
    if (all.length === 0) return undefined;
    // Calls that are not answered yet.
    const open = new Set(openCalls(messages).map(({ id }) => id));
    const asked = Object.fromEntries(all.filter(([callId]) => open.has(callId)));
    if (Object.keys(asked).length === 0) return undefined;
    return { _mcpDecisions: await this.#askPeople(asked, interrupt, caller) };
  }

  /**
   * Decides where a tool call goes.
   * @param isOwn - Whether the agent has its own tool of that name.
   */
  route(run: RunContext, call: ToolCall, isOwn: boolean): Promise<ToolCallRoute> {
    return this.#router.route(run, call, isOwn);
  }

  /** Asks about programs, starts the approved ones, and waits for them until the deadline. */
  async #askConsents(
    { view, state, caller }: RunContext,
    interrupt: Interrupt | undefined,
  ): Promise<McpStateUpdate> {
    const asked = state._mcpConsents ?? undefined;
    const { consents, pool } = this.#hub;
    if (asked === undefined || consents === undefined) return {};
    await settleConsents(consents, asked, await this.#askPeople(asked, interrupt, caller));
    await pool.settle(
      view.serverNames,
      this.#settings.budgets.startupDeadlineMs,
      "now",
      caller.signal,
    );
    return { _mcpConsents: null };
  }

  #askPeople(asked: McpAsked, interrupt: Interrupt | undefined, caller: Caller) {
    return askPeople(asked, { interrupt, onAsk: this.#onAsk, events: this.#hub.events }, caller);
  }

  /** Puts the thread's resources that this run may still see into a request. */
  #placeResources(
    { view, state, caller }: RunContext,
    messages: BaseMessage[],
    threadMessages: readonly BaseMessage[],
    { images }: ModelClient,
  ): PlacedResources {
    const kept = shownResources(state._mcpResources?.read ?? [], view, ({ serverName, uri }) => {
      return this.#hub.permits.decide({ kind: "read", serverName, uri }, caller).kind === "deny";
    });
    if (kept.length === 0) return { system: [], messages };
    const threadIds = new Set(threadMessages.flatMap(({ id }) => id ?? []));
    return placeResources(kept, messages, threadIds, this.#placement, images);
  }
}

/** Clears an abandoned step, so that its decisions do not apply to later calls. */
function withoutOldStep({ _mcpUnbound, _mcpAsked, _mcpDecisions }: McpThreadState): McpStateUpdate {
  const isEmpty = (record: object | undefined): boolean => Object.keys(record ?? {}).length === 0;
  return {
    ...(isEmpty(_mcpUnbound) ? {} : { _mcpUnbound: {} }),
    ...(isEmpty(_mcpAsked) ? {} : { _mcpAsked: {} }),
    ...(isEmpty(_mcpDecisions) ? {} : { _mcpDecisions: {} }),
  };
}

/** True when a person has to be asked about typed input or programs before the model call. */
export function isWaiting({ _mcpTyped, _mcpConsents }: McpThreadState): boolean {
  return (_mcpTyped ?? undefined) !== undefined || (_mcpConsents ?? undefined) !== undefined;
}
