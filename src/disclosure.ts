import type { AIMessage, BaseMessage } from "@langchain/core/messages";

import { contextOf } from "./call/boundTool.js";
import { withOrphansAnswered } from "./call/orphans.js";
import { toRequestMessages } from "./call/requestMessages.js";
import { searchTool } from "./call/searchTool.js";
import { CallRouter, isOurPrefix, type RunInfo, type ToolCallLike, type ToolCallRoute } from "./callRouter.js";
import type { GatedTool } from "./catalog/gatedTool.js";
import { profileOf } from "./catalog/profiles.js";
import type { ToolEntry } from "./catalog/toolEntry.js";
import type { AskRequest, OnAsk } from "./config/askSchema.js";
import { resolveBudgets, type Budgets } from "./config/settings.js";
import { withNotes } from "./disclose/notes.js";
import { activationOf, boundTools, promote, type BoundTool } from "./disclose/promotion.js";
import {
  answerSearch,
  isAnsweredByName,
  parseSearchArguments,
  SEARCH_TOOL_DESCRIPTION,
  SEARCH_TOOL_SCHEMA,
  searchedServers,
} from "./disclose/search.js";
import { SEARCH_TOOL_NAME, showThread, type ThreadSettings } from "./disclose/thread.js";
import type { View, ViewOptions } from "./disclose/view.js";
import type { Views } from "./disclose/views.js";
import type { McpHub } from "./hub.js";
import { mergeActivation, type McpActivation, type McpStateUpdate, type McpThreadState } from "./state.js";

/** How one agent is shown the tools of a hub. */
export interface DisclosureOptions extends ViewOptions {
  /** `false`: no listing in the system prompt. Default true. */
  readonly listing?: boolean | undefined;
  /** `false`: no `search_mcp_tools`. Default true. */
  readonly search?: boolean | undefined;
  /** Asks a person where a run cannot be interrupted. */
  readonly onAsk?: OnAsk | undefined;
  /** Budgets that differ from the hub's. */
  readonly budgets?: { readonly [Key in keyof Budgets]?: Budgets[Key] | undefined };
}

/** What a model call gets from us. */
export interface ModelCallPlan {
  /** Text for the end of the system message; `""` when there is none. */
  readonly listing: string;
  /** Tools to bind behind the agent's own, in stable order. */
  readonly tools: readonly GatedTool[];
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
export interface ModelCallInfo extends RunInfo {
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
export class Disclosure {
  readonly #hub: McpHub;
  readonly #views: Views;
  readonly #settings: ThreadSettings;
  readonly #router: CallRouter;
  #boundSearchTool: GatedTool | undefined;

  /** @throws {McpConfigError} when `servers` names one that the hub does not have. */
  constructor(hub: McpHub, options: DisclosureOptions = {}) {
    this.#hub = hub;
    this.#views = hub.views(options);
    this.#settings = {
      budgets: resolveBudgets(options.budgets ?? {}, hub.settings.budgets),
      names: hub.settings.names,
      listing: options.listing ?? true,
      search: options.search ?? true,
    };
    this.#router = new CallRouter({
      hub,
      onAsk: options.onAsk,
      usesOwnNames: this.#settings.names !== "mcp",
      loadAll: (view, signal) => this.#load(view, view.serverNames, signal),
      promotion: (view, found, state) => this.#promotion(view, found, state),
    });
    hub.name(this.#views.serverNames);
  }

  /**
   * Begins a run: opens servers, waits for slow ones until the deadline, makes the listing of a new thread.
   *
   * @returns What changes in the state of the thread.
   */
  async start(state: McpThreadState, messages: readonly BaseMessage[], run: RunInfo = {}): Promise<McpStateUpdate | undefined> {
    const view = this.#views.of(run.context ?? {});
    await this.#ready(view, state, run.signal);
    return showThread(view, state, messages, this.#settings, "turn").update;
  }

  /** Prepares a model call: listing, tools, notes. */
  async prepare(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    foreignNames: ReadonlySet<string>,
    { origin = {}, signal, context = {}, model, isPreview = false }: ModelCallInfo = {},
  ): Promise<ModelCallPlan> {
    const view = this.#views.of(context);
    await this.#ready(view, state, signal);
    const profile = profileOf(model);
    const { sent, update } = showThread(view, state, messages, this.#settings, "hop");
    const activation = afterUpdate(state, update);
    const bound = boundTools(view, sent, activation, this.#settings.budgets);
    const tools = bound.flatMap((tool) => {
      const made = tool.kind === "mcp" ? this.#hub.tools.of(tool.entry, profile) : this.#unboundSearchTool();
      return foreignNames.has(made.name) ? [] : [made];
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
      !foreignNames.has(name) && (name === SEARCH_TOOL_NAME || isOurPrefix(name) || view.catalog.tool(name) !== undefined);
    const placement = {
      images: takesImages(model) ? (profile.name === "anthropic" ? ("tool" as const) : ("human" as const)) : ("none" as const),
      maxHopResultChars: this.#settings.budgets.maxHopResultChars,
    };
    const shown = toRequestMessages(withNotes(withOrphansAnswered(messages, isOurs), sent.notes), placement);
    return { listing: sent.listing, tools, messages: shown, update, foreignNames, view };
  }

  /**
   * Looks at the model's answer once: for calls of tools that were not bound, whose meaning depends on what was in the
   * request, and for calls a person has to be asked about.
   *
   * @returns What changes in the state of the thread.
   */
  review(answer: AIMessage, plan: ModelCallPlan, state: McpThreadState, run: RunInfo = {}): Promise<McpStateUpdate | undefined> {
    return this.#router.review(answer, plan, state, run);
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
    interrupt: (request: AskRequest) => unknown,
    run: RunInfo = {},
  ): Promise<McpStateUpdate | undefined> {
    return this.#router.ask(state, messages, interrupt, run);
  }

  /**
   * Decides what becomes of a tool call.
   *
   * @param isRegistered - Whether the agent has a tool of its own by that name; such a call is never ours.
   */
  async route(call: ToolCallLike, isRegistered: boolean, state: McpThreadState, run: RunInfo = {}): Promise<ToolCallRoute> {
    const view = this.#views.of(run.context ?? {});
    const isSearch = call.name === SEARCH_TOOL_NAME && this.#settings.search;
    if (isSearch && !isRegistered && !this.#router.isForeign(call, state)) return this.#searchRoute(view, state, run.signal);
    return this.#router.route(call, isRegistered, view, state, run);
  }

  #searchRoute(view: View, state: McpThreadState, signal?: AbortSignal): ToolCallRoute {
    let found: readonly ToolEntry[] = [];
    const tool = this.#searchTool(view, signal, (matches) => {
      found = matches;
    });
    return { kind: "run", tool, after: () => this.#promotion(view, found, state) };
  }

  /** The search tool as it is bound. Run outside of a route it searches, and promotes nothing. */
  #unboundSearchTool(): GatedTool {
    this.#boundSearchTool ??= this.#searchTool(undefined, undefined, () => undefined);
    return this.#boundSearchTool;
  }

  /** @param known - What may be found. Default: what the context of the run may see that the tool is called in. */
  #searchTool(
    known: View | undefined,
    signal: AbortSignal | undefined,
    onFound: (matches: readonly ToolEntry[]) => void,
  ): GatedTool {
    return searchTool({
      name: SEARCH_TOOL_NAME,
      description: SEARCH_TOOL_DESCRIPTION,
      schema: SEARCH_TOOL_SCHEMA,
      events: this.#hub.events,
      search: async (args, config) => {
        const view = known ?? this.#views.of(contextOf(config));
        const wanted = parseSearchArguments(args);
        if (!isAnsweredByName(view, wanted)) await this.#load(view, searchedServers(view, wanted.server), signal);
        const answer = await answerSearch(view, wanted, (query) => this.#hub.find(query));
        onFound(answer.matches);
        return { ...answer, query: wanted.queries.join(" | ") };
      },
    });
  }

  #promotion(view: View, found: readonly ToolEntry[], state: McpThreadState): McpStateUpdate | undefined {
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

  /** Opens servers that a search or a call may mean, and waits for them. */
  async #load(view: View, serverNames: readonly string[], signal?: AbortSignal): Promise<void> {
    // What is remembered of a server is enough to find its tools; a call opens it.
    this.#hub.pool.open(serverNames.filter((serverName) => view.server(serverName) === undefined));
    await this.#hub.pool.settle(serverNames, this.#settings.budgets.searchWaitMs, "now", signal);
  }
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
