import type { AIMessage, BaseMessage } from "@langchain/core/messages";

import { settleConsents, waitingPrograms } from "../ask/programs.js";
import { askPeople, type AskingParts, type Interrupt } from "../ask/people.js";
import { contextOf } from "../call/boundTool.js";
import { withOrphansAnswered } from "./orphans.js";
import { toRequestMessages, type ResultPlacement } from "./requestMessages.js";
import type { Caller } from "../call/permits.js";
import { CallReview } from "./review.js";
import { CallRouter, type ToolCallRoute } from "./router.js";
import type { McpTool } from "../call/mcpTool.js";
import { profileOf } from "../catalog/schema/profiles.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { Strategy } from "../config/agentOptions.js";
import type { OnAsk } from "../config/askSchema.js";
import { DEFAULTS } from "../config/defaults.js";
import type { McpRunContext } from "../config/policyOptions.js";
import { resolveBudgets, type Budgets } from "../config/settings.js";
import { isOurPrefix } from "../disclose/namesakes.js";
import { withNotes } from "../disclose/notes.js";
import { activationOf, boundTools, promote, type BoundTool } from "../disclose/promotion.js";
import { providerSearchOf, toolsForProvider, type ProviderTool } from "../disclose/providerTools.js";
import { SEARCH_TOOL_NAME, showThread, type ThreadSettings } from "../disclose/thread.js";
import type { View, ViewOptions } from "../disclose/view.js";
import type { Views } from "../disclose/views.js";
import type { McpHub } from "../hub/mcpHub.js";
import { isInsideOfTool, type LookUpTool, type RunContext, type ToolCallLike } from "./runContext.js";
import { shownResources } from "../input/threadResources.js";
import { placeResources, type PlacedResources } from "../input/placeResources.js";
import { withoutAnswered } from "../input/typed.js";
import { TurnInput, type InputSettings, type TurnOutcome } from "../input/turnInput.js";
import { EMPTY_ACTIVATION, mergeActivation, type McpActivation, type McpStateUpdate, type McpThreadState } from "../state.js";
import { SyntheticTools } from "./syntheticTools.js";

/** How one agent is shown the tools of a hub. */
export interface DisclosureOptions extends ViewOptions {
  /** How tools reach the model that are not always loaded. Default `"promote"`. */
  readonly strategy?: Strategy | undefined;
  /** Tools sent with `defer_loading` at the most. */
  readonly maxProviderTools?: number | undefined;
  /** `false`: no listing in the system prompt. Default true. */
  readonly listing?: boolean | undefined;
  /** `false`: no `search_mcp_tools`. Default true. */
  readonly search?: boolean | undefined;
  /** `false`: no `mcp_resources_list` and `mcp_resources_read`. Default true. */
  readonly resourceTools?: boolean | undefined;
  /** Whether `@server:uri` attaches a resource. Default: always. */
  readonly mentions?: InputSettings["mentions"] | undefined;
  /** Where the text of mentioned resources stands. Default `"system"`. */
  readonly placement?: "system" | "message" | undefined;
  /** `false`: prompts cannot be typed as commands. Default true. */
  readonly commands?: boolean | undefined;
  /** What `/mcp` can do. Default `"thread"`. */
  readonly chatCommands?: InputSettings["chatCommands"] | undefined;
  /** Asks a person where a run cannot be interrupted. */
  readonly onAsk?: OnAsk | undefined;
  /** Budgets that differ from the hub's. */
  readonly budgets?: { readonly [Key in keyof Budgets]?: Budgets[Key] | undefined };
}

/** What a model call gets from us. */
export interface ModelCallPlan {
  /** Text for the end of the system message; `""` when there is none. */
  readonly listing: string;
  /** Texts for the end of the system message behind the listing: one for each mentioned resource. */
  readonly resources: readonly string[];
  /** Tools to bind behind the agent's own, in stable order. */
  readonly tools: readonly McpTool[];
  /** What the provider takes besides, behind them: tools that its own search shows, and that search. */
  readonly providerTools: readonly ProviderTool[];
  /** The thread's messages with our notes between them. */
  readonly messages: BaseMessage[];
  /** What changes in the state of the thread. */
  readonly update: McpStateUpdate | undefined;
  /** Names of tools that are in the request and not ours. */
  readonly foreignNames: ReadonlySet<string>;
  /** What this run may see. */
  readonly view: View;
}

/** What a model call runs in. */
export interface ModelCallInfo extends RunContext {
  /** The messages of the thread, where the request has others. */
  readonly threadMessages?: readonly BaseMessage[] | undefined;
  /** The model client, when it is known: schemas, descriptions and images take the form that it takes. */
  readonly model?: unknown;
  /** True when no model is going to be called. */
  readonly isPreview?: boolean;
}

/**
 * One agent's use of a hub: what every face (createAgent, graph, chain) calls.
 *
 * Holds no conversation: state comes in, updates go out, so one object serves all threads.
 */
export class McpAgent {
  readonly #hub: McpHub;
  readonly #views: Views;
  readonly #settings: ThreadSettings;
  readonly #review: CallReview;
  readonly #router: CallRouter;
  readonly #input: TurnInput;
  readonly #onAsk: OnAsk | undefined;
  readonly #placement: "system" | "message";
  readonly #synthetic: SyntheticTools;
  readonly #maxProviderTools: number;

  /** @throws {McpConfigError} when `servers` names one that the hub does not have. */
  constructor(hub: McpHub, options: DisclosureOptions = {}) {
    this.#hub = hub;
    this.#views = hub.views(options);
    this.#settings = {
      budgets: resolveBudgets(options.budgets ?? {}, hub.settings.budgets),
      names: hub.settings.names,
      strategy: options.strategy ?? "promote",
      listing: options.listing ?? true,
      search: options.search ?? true,
      resourceTools: options.resourceTools ?? true,
    };
    this.#onAsk = options.onAsk;
    this.#placement = options.placement ?? "system";
    this.#maxProviderTools = options.maxProviderTools ?? DEFAULTS.maxProviderTools;
    this.#input = new TurnInput({
      settings: {
        ...this.#settings.budgets,
        mentions: options.mentions ?? true,
        commands: options.commands ?? true,
        chatCommands: options.chatCommands ?? "thread",
      },
      servers: hub.settings.servers,
      requests: hub.requests,
      permits: hub.permits,
      commands: hub.commands,
      reconnect: (serverName) => hub.reconnect(serverName),
      errorOf: (serverName) => hub.status().find((status) => status.serverName === serverName)?.error,
    });
    const lookUp: LookUpTool = (view, name, mayBeOurs, signal) => this.#lookUp(view, name, mayBeOurs, signal);
    this.#review = new CallReview({ hub, lookUp, onAsk: options.onAsk });
    this.#router = new CallRouter({ hub, lookUp, promotion: (view, found, state) => this.#promotion(view, found, state) });
    this.#synthetic = new SyntheticTools({
      hub,
      router: this.#router,
      settings: this.#settings,
      viewOf: (config) => this.#viewOf(contextOf(config), {}),
      load: (view, serverNames, signal) => this.#load(view, serverNames, signal),
      promotion: (view, found, state) => this.#promotion(view, found, state),
    });
    hub.name(this.#views.serverNames);
  }

  /**
   * Begins a run: opens servers, waits for slow ones until the deadline, takes what the person typed, makes the listing of
   * a new thread.
   *
   * What has to be asked of what was typed waits for {@link answered}, which comes before the model is called.
   */
  async start(state: McpThreadState, messages: readonly BaseMessage[], run: RunContext = {}): Promise<TurnOutcome> {
    const view = this.#viewOf(run.context, state);
    await this.#ready(view, state, run.signal);
    const waiting = waitingPrograms(this.#hub.programs, view.serverNames, state);
    // What a tool call hands to an agent is nobody's word.
    const isTyped = !isInsideOfTool(run);
    const taken = await this.#input.take({ state, messages, view, caller: run, isTyped });
    const turn = { ...taken, update: { ...withoutOldStep(state), ...taken.update, ...waiting } };
    // The listing of a new thread is made when it is known what may be started.
    if (turn.isAnswered || (state._mcpSent === undefined && "_mcpConsents" in waiting)) return turn;
    // A message that takes another's place has its id.
    const { update } = showThread(view, state, messages, this.#settings, "turn");
    return { ...turn, update: { ...turn.update, ...update } };
  }

  /**
   * Asks a person about what they typed, and carries it out.
   *
   * @param interrupt - LangGraph's; where it is not there or cannot be used, `onAsk` is asked.
   * @returns `undefined` when nothing waits for that.
   */
  async answered(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    interrupt: Interrupt | undefined,
    run: RunContext = {},
  ): Promise<TurnOutcome | undefined> {
    if (!isWaiting(state)) return undefined;
    const view = this.#viewOf(run.context, state);
    const asking = { interrupt, onAsk: this.#onAsk, events: this.#hub.events };
    const consented = await this.#askConsents(view, state, asking, run);
    const turn = await this.#input.answered({ state, messages, view, caller: run }, asking);
    return turn === undefined
      ? { update: consented, messages: [], isAnswered: false }
      : { ...turn, update: { ...turn.update, ...consented } };
  }

  /** Prepares a model call: listing, tools, notes. */
  async prepare(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    foreignNames: ReadonlySet<string>,
    { origin = {}, signal, context = {}, model, isPreview = false, threadMessages = messages }: ModelCallInfo = {},
  ): Promise<ModelCallPlan> {
    const view = this.#viewOf(context, state);
    await this.#ready(view, state, signal);
    const profile = profileOf(model);
    const { sent, update } = showThread(view, state, messages, this.#settings, "step");
    const activation = afterUpdate(state, update);
    const { strategy, budgets } = this.#settings;
    const bound = boundTools(view, sent, strategy === "execute" ? EMPTY_ACTIVATION : activation, budgets);
    const { providerTools, isSearchNeeded } = toolsForProvider({
      search: strategy === "provider" ? providerSearchOf(model) : undefined,
      view,
      boundEntries: new Set(bound.flatMap((tool) => (tool.kind === "mcp" ? [tool.entry] : []))),
      foreignNames,
      maxTools: this.#maxProviderTools,
      toolOf: (entry) => this.#hub.tools.of(entry, profile),
    });
    const tools = bound.flatMap((tool) => {
      if (tool.kind === "synthetic" && tool.name === SEARCH_TOOL_NAME && !isSearchNeeded) return [];
      const made = tool.kind === "mcp" ? this.#hub.tools.of(tool.entry, profile) : this.#synthetic.get(tool.name);
      return made === undefined || foreignNames.has(made.name) ? [] : [made];
    });
    const boundChars = bound.reduce((sum, tool) => sum + (tool.kind === "mcp" ? tool.entry.definitionChars : 0), 0);
    if (!isPreview)
      this.#hub.events.emit("context", {
        ...origin,
        withheldChars: view.definitionChars - boundChars,
        boundChars,
        listingChars: sent.listing.length,
      });
    const isOurs = (name: string): boolean =>
      !foreignNames.has(name) &&
      (this.#synthetic.get(name) !== undefined || isOurPrefix(name) || view.catalog.tool(name) !== undefined);
    const placement = {
      images: takesImages(model) ? (profile.name === "anthropic" ? ("tool" as const) : ("human" as const)) : ("none" as const),
      maxStepResultChars: this.#settings.budgets.maxStepResultChars,
    };
    const shown = toRequestMessages(withNotes(withOrphansAnswered(withoutAnswered(messages), isOurs), sent.notes), placement);
    const placed = this.#placeResources(view, state, { context }, shown, threadMessages, placement.images);
    const { system: resources, messages: sentMessages } = placed;
    return { listing: sent.listing, resources, tools, providerTools, messages: sentMessages, update, foreignNames, view };
  }

  /**
   * Looks at the model's answer once: for calls of tools that were not bound, whose meaning depends on what was in the
   * request, and for calls a person has to be asked about.
   *
   * @returns What changes in the state of the thread.
   */
  review(
    answer: AIMessage,
    plan: ModelCallPlan,
    state: McpThreadState,
    run: RunContext = {},
  ): Promise<McpStateUpdate | undefined> {
    return this.#review.review(answer, plan, state, run);
  }

  /**
   * Asks a person about the calls that {@link review} wrote down, all at once.
   *
   * @param interrupt - LangGraph's; where it cannot be used, `onAsk` is asked.
   * @returns What changes in the state of the thread.
   */
  ask(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    interrupt: Interrupt | undefined,
    run: RunContext = {},
  ): Promise<McpStateUpdate | undefined> {
    return this.#review.ask(state, messages, interrupt, run);
  }

  /**
   * Decides what becomes of a tool call.
   *
   * @param isRegistered - Whether the agent has a tool of its own by that name; such a call is never ours.
   */
  async route(call: ToolCallLike, isRegistered: boolean, state: McpThreadState, run: RunContext = {}): Promise<ToolCallRoute> {
    const view = this.#viewOf(run.context, state);
    if (!isRegistered && !this.#router.isForeign(call, state)) {
      const route = this.#router.ambiguous(call, state) ?? (await this.#synthetic.route(call, view, state, run));
      if (route !== undefined) return route;
    }
    return this.#router.route(call, isRegistered, view, state, run);
  }

  /** Asks about programs, starts what was approved, and waits for it as a run does when it begins. */
  async #askConsents(view: View, state: McpThreadState, asking: AskingParts, run: RunContext): Promise<McpStateUpdate> {
    const asked = state._mcpConsents ?? undefined;
    const { programs: consents, pool } = this.#hub;
    if (asked === undefined || consents === undefined) return {};
    await settleConsents(consents, asked, await askPeople(asked, asking, run));
    await pool.settle(view.serverNames, this.#settings.budgets.startupDeadlineMs, "now", run.signal);
    return { _mcpConsents: null };
  }

  /** What the run may see, without what its thread has disabled. */
  #viewOf(context: McpRunContext | undefined, { disabledMcpServers }: McpThreadState): View {
    return this.#views.of(context ?? {}, disabledMcpServers);
  }

  /** The resources of the thread that this run may still see, put into a request. */
  #placeResources(
    view: View,
    { _mcpResources }: McpThreadState,
    caller: Caller,
    messages: BaseMessage[],
    threadMessages: readonly BaseMessage[],
    images: ResultPlacement["images"],
  ): PlacedResources {
    const kept = shownResources(_mcpResources?.read ?? [], view, ({ serverName, uri }) => {
      return this.#hub.permits.decide({ kind: "read", serverName, uri }, caller).kind === "deny";
    });
    if (kept.length === 0) return { system: [], messages };
    const threadIds = new Set(threadMessages.flatMap(({ id }) => id ?? []));
    return placeResources(kept, messages, threadIds, this.#placement, images);
  }

  #promotion(view: View, found: readonly ToolEntry[], state: McpThreadState): McpStateUpdate | undefined {
    if (this.#settings.strategy === "execute") return undefined;
    const mcpActivation = promote(found, this.#bound(view, state), activationOf(state), state._mcpSent);
    return mcpActivation === undefined ? undefined : { mcpActivation };
  }

  #bound(view: View, state: McpThreadState): BoundTool[] {
    if (state._mcpSent === undefined) return [];
    return boundTools(view, state._mcpSent, activationOf(state), this.#settings.budgets);
  }

  /** Opens servers and waits until the deadline; longer for those whose tools this thread already has. */
  async #ready(view: View, state: McpThreadState, signal?: AbortSignal): Promise<void> {
    await this.#hub.recall();
    const { serverNames } = view;
    const { startupDeadlineMs, searchWaitMs } = this.#settings.budgets;
    this.#hub.pool.use(serverNames);
    const waitMs = this.#hub.settings.startup === "eager" ? MAX_WAIT_MS : startupDeadlineMs;
    await this.#hub.pool.settle(serverNames, waitMs, "start", signal);
    const known = Object.keys(state._mcpSent?.servers ?? {});
    const missing = known.filter((serverName) => serverNames.includes(serverName) && view.server(serverName) === undefined);
    if (missing.length === 0) return;
    this.#hub.pool.open(missing);
    await this.#hub.pool.settle(missing, searchWaitMs, "start", signal);
  }

  async #lookUp(view: View, name: string, mayBeOurs: boolean, signal: AbortSignal | undefined): Promise<ToolEntry | undefined> {
    // Names made otherwise may lack our prefix.
    const isLikely = mayBeOurs || this.#settings.names !== "mcp";
    if (view.tool(name) === undefined && isLikely) await this.#load(view, view.serverNames, signal);
    return view.tool(name);
  }

  /** Opens servers that a search or a call may mean, and waits for them. */
  async #load(view: View, serverNames: readonly string[], signal?: AbortSignal): Promise<void> {
    // What is remembered of a server is enough to find its tools; a call opens it.
    this.#hub.pool.open(serverNames.filter((serverName) => view.server(serverName) === undefined));
    await this.#hub.pool.settle(serverNames, this.#settings.budgets.searchWaitMs, "now", signal);
  }
}

/** What a run that was given up left of its last step is not of this one: no answer is for a later call. */
function withoutOldStep({ _mcpUnbound, _mcpAsked, _mcpDecisions }: McpThreadState): McpStateUpdate {
  const isEmpty = (record: object | undefined): boolean => Object.keys(record ?? {}).length === 0;
  return {
    ...(isEmpty(_mcpUnbound) ? {} : { _mcpUnbound: {} }),
    ...(isEmpty(_mcpAsked) ? {} : { _mcpAsked: {} }),
    ...(isEmpty(_mcpDecisions) ? {} : { _mcpDecisions: {} }),
  };
}

/** True when a person has to be asked about what was typed, or about programs, before the model is called. */
export function isWaiting({ _mcpTyped, _mcpConsents }: McpThreadState): boolean {
  return (_mcpTyped ?? undefined) !== undefined || (_mcpConsents ?? undefined) !== undefined;
}

/** The longest time a timer can wait. */
const MAX_WAIT_MS = 2 ** 31 - 1;

/** False for a model whose profile says that it takes no images. */
function takesImages(model: unknown): boolean {
  return (model as { readonly profile?: { readonly imageInputs?: boolean } } | undefined)?.profile?.imageInputs !== false;
}

function afterUpdate(state: McpThreadState, update: McpStateUpdate | undefined): McpActivation {
  const activation = activationOf(state);
  return update?.mcpActivation === undefined ? activation : mergeActivation(activation, update.mcpActivation);
}
