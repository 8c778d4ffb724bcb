import type { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";

import { errorMessage } from "./call/errorMessage.js";
import { toRequestMessages } from "./call/requestMessages.js";
import { GatedTool } from "./catalog/gatedTool.js";
import { profileOf } from "./catalog/profiles.js";
import type { ToolEntry } from "./catalog/toolEntry.js";
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
  unknownToolText,
} from "./disclose/search.js";
import { SEARCH_TOOL_NAME, showThread, type ThreadSettings } from "./disclose/thread.js";
import type { View, ViewOptions } from "./disclose/view.js";
import type { RunOrigin } from "./events.js";
import type { McpHub } from "./hub.js";
import { searchTool } from "./call/searchTool.js";
import { mergeActivation, type McpActivation, type McpStateUpdate, type McpThreadState } from "./state.js";

/** How one agent is shown the tools of a hub. */
export interface DisclosureOptions extends ViewOptions {
  /** `false`: no listing in the system prompt. Default true. */
  readonly listing?: boolean | undefined;
  /** `false`: no `search_mcp_tools`. Default true. */
  readonly search?: boolean | undefined;
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
}

/** What a model call runs in. */
export interface ModelCallContext {
  readonly origin?: RunOrigin;
  readonly signal?: AbortSignal | undefined;
  /** The model client, when it is known: schemas, descriptions and images take the form that it takes. */
  readonly model?: unknown;
  /** True when no model is going to be called. */
  readonly isPreview?: boolean;
}

/** What becomes of a tool call. */
export type ToolCallRoute =
  /** Not ours. */
  | { readonly kind: "pass" }
  /** A raw name that nothing in the request had. If nobody else has a tool of that name, `otherwise`. */
  | { readonly kind: "unbound"; readonly otherwise: RunRoute | AnswerRoute }
  | AnswerRoute
  | RunRoute;

/** Answered without running anything. */
export interface AnswerRoute {
  readonly kind: "answer";
  readonly message: ToolMessage;
}

/** Run this tool; `after` says what its answer changes in the state. */
export interface RunRoute {
  readonly kind: "run";
  readonly tool: GatedTool;
  readonly after: (message: ToolMessage) => McpStateUpdate | undefined;
}

/** A tool call as LangChain hands it on. */
export interface ToolCallLike {
  readonly id?: string | undefined;
  readonly name: string;
}

/**
 * One agent's use of a hub: what every face (createAgent, graph, chain) calls.
 *
 * Holds no conversation: state comes in, updates go out, so one object serves all threads.
 */
export class Disclosure {
  readonly #hub: McpHub;
  readonly #view: View;
  readonly #settings: ThreadSettings;

  /** @throws {McpConfigError} when `servers` names one that the hub does not have. */
  constructor(hub: McpHub, options: DisclosureOptions = {}) {
    this.#hub = hub;
    this.#view = hub.view(options);
    this.#settings = {
      budgets: resolveBudgets(options.budgets ?? {}, hub.settings.budgets),
      names: hub.settings.names,
      listing: options.listing ?? true,
      search: options.search ?? true,
    };
    hub.name(this.#view.serverNames);
  }

  /**
   * Begins a run: opens servers, waits for slow ones until the deadline, makes the listing of a new thread.
   *
   * @returns What changes in the state of the thread.
   */
  async start(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    signal?: AbortSignal,
  ): Promise<McpStateUpdate | undefined> {
    await this.#ready(state, signal);
    return showThread(this.#view, state, messages, this.#settings, "turn").update;
  }

  /** Prepares a model call: listing, tools, notes. */
  async prepare(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    foreignNames: ReadonlySet<string>,
    { origin = {}, signal, model, isPreview = false }: ModelCallContext = {},
  ): Promise<ModelCallPlan> {
    await this.#ready(state, signal);
    const profile = profileOf(model);
    const { sent, update } = showThread(this.#view, state, messages, this.#settings, "hop");
    const activation = afterUpdate(state, update);
    const bound = boundTools(this.#view, sent, activation, this.#settings.budgets);
    const tools = bound.flatMap((tool) => {
      const made = tool.kind === "mcp" ? this.#hub.toolOf(tool.entry, profile) : this.#unboundSearchTool();
      return foreignNames.has(made.name) ? [] : [made];
    });
    const boundChars = bound.reduce((sum, tool) => sum + (tool.kind === "mcp" ? tool.entry.definitionChars : 0), 0);
    if (!isPreview)
      this.#hub.events.emit("context", {
        ...origin,
        withheldChars: this.#view.definitionChars - boundChars,
        boundChars,
        listingChars: sent.listing.length,
      });
    const placement = {
      images: takesImages(model) ? (profile.name === "anthropic" ? ("tool" as const) : ("human" as const)) : ("none" as const),
      maxHopResultChars: this.#settings.budgets.maxHopResultChars,
    };
    const shown = toRequestMessages(withNotes(messages, sent.notes), placement);
    return { listing: sent.listing, tools, messages: shown, update, foreignNames };
  }

  /**
   * Looks at the model's answer for calls of tools that were not bound, whose meaning depends on what was in the request.
   *
   * @returns What changes in the state of the thread.
   */
  review(answer: AIMessage, plan: ModelCallPlan, state: McpThreadState): McpStateUpdate | undefined {
    const unbound: Record<string, "foreign" | "repair" | "suggest"> = {};
    const ours = new Set(plan.tools.map(({ name }) => name));
    for (const { id, name } of answer.tool_calls ?? []) {
      if (id === undefined || ours.has(name)) continue;
      const isKnown = this.#view.tool(name) !== undefined;
      const namesakes = this.#namesakes(name);
      if (plan.foreignNames.has(name)) {
        if (isKnown || namesakes.length > 0 || isOurPrefix(name)) unbound[id] = "foreign";
      } else if (!isKnown && namesakes.length > 0) {
        unbound[id] = namesakes.length === 1 ? "repair" : "suggest";
      }
    }
    const isEmpty = Object.keys(unbound).length === 0;
    return isEmpty && Object.keys(state._mcpUnbound ?? {}).length === 0 ? undefined : { _mcpUnbound: unbound };
  }

  /**
   * Decides what becomes of a tool call.
   *
   * @param isRegistered - Whether the agent has a tool of its own by that name; such a call is never ours.
   */
  async route(call: ToolCallLike, isRegistered: boolean, state: McpThreadState, signal?: AbortSignal): Promise<ToolCallRoute> {
    const verdict = call.id === undefined ? undefined : state._mcpUnbound?.[call.id];
    if (isRegistered || verdict === "foreign") return { kind: "pass" };
    if (call.name === SEARCH_TOOL_NAME && this.#settings.search) return this.#searchRoute(state, signal);
    const mayBeOurs = isOurPrefix(call.name) || verdict !== undefined || Object.hasOwn(activationOf(state).promoted, call.name);
    if (this.#view.tool(call.name) === undefined && (mayBeOurs || this.#settings.names !== "mcp")) await this.#loadAll(signal);
    const entry = this.#view.tool(call.name);
    if (entry !== undefined) return this.#callRoute(entry, state);
    const namesakes = verdict === undefined ? [] : this.#namesakes(call.name);
    if (namesakes.length > 0)
      return { kind: "unbound", otherwise: this.#unboundRoute(call, verdict === "repair", namesakes, state) };
    if (isOurPrefix(call.name)) return { kind: "answer", message: errorMessage(call, unknownToolText(this.#view, call.name)) };
    return { kind: "pass" };
  }

  #unboundRoute(
    call: ToolCallLike,
    mayRepair: boolean,
    namesakes: readonly ToolEntry[],
    state: McpThreadState,
  ): RunRoute | AnswerRoute {
    if (mayRepair && namesakes.length === 1) return this.#callRoute(namesakes[0]!, state);
    const names = namesakes.slice(0, 10).map(({ boundName }) => boundName);
    return { kind: "answer", message: errorMessage(call, `There is no tool "${call.name}". Use one of: ${names.join(", ")}.`) };
  }

  #callRoute(entry: ToolEntry, state: McpThreadState): RunRoute {
    return {
      kind: "run",
      tool: this.#hub.toolOf(entry),
      after: (message) => (message.status === "error" ? undefined : this.#promotion([entry], state)),
    };
  }

  #searchRoute(state: McpThreadState, signal?: AbortSignal): ToolCallRoute {
    let found: readonly ToolEntry[] = [];
    const tool = this.#searchTool(signal, (matches) => {
      found = matches;
    });
    return { kind: "run", tool, after: () => this.#promotion(found, state) };
  }

  /** The search tool as it is bound. Run outside of a route it searches, and promotes nothing. */
  #unboundSearchTool(): GatedTool {
    this.#boundSearchTool ??= this.#searchTool(undefined, () => undefined);
    return this.#boundSearchTool;
  }
  #boundSearchTool: GatedTool | undefined;

  #searchTool(signal: AbortSignal | undefined, onFound: (matches: readonly ToolEntry[]) => void): GatedTool {
    return searchTool({
      name: SEARCH_TOOL_NAME,
      description: SEARCH_TOOL_DESCRIPTION,
      schema: SEARCH_TOOL_SCHEMA,
      events: this.#hub.events,
      search: async (args) => {
        const wanted = parseSearchArguments(args);
        if (!isAnsweredByName(this.#view, wanted)) {
          const serverNames = searchedServers(this.#view, wanted.server);
          this.#hub.pool.open(serverNames);
          await this.#hub.pool.settle(serverNames, this.#settings.budgets.searchWaitMs, "now", signal);
        }
        const answer = await answerSearch(this.#view, wanted, (query) => this.#hub.find(query));
        onFound(answer.matches);
        return { ...answer, query: wanted.queries.join(" | ") };
      },
    });
  }

  #promotion(found: readonly ToolEntry[], state: McpThreadState): McpStateUpdate | undefined {
    const mcpActivation = promote(found, this.#bound(state), activationOf(state), state._mcpSent);
    return mcpActivation === undefined ? undefined : { mcpActivation };
  }

  #bound(state: McpThreadState): BoundTool[] {
    if (state._mcpSent === undefined) return [];
    return boundTools(this.#view, state._mcpSent, activationOf(state), this.#settings.budgets);
  }

  /** Visible tools of any server with this raw name. */
  #namesakes(name: string): ToolEntry[] {
    return this.#view.catalog.toolsNamed(name).filter((entry) => this.#view.isVisible(entry));
  }

  /** Opens servers and waits until the deadline; longer for those whose tools this thread already has. */
  async #ready(state: McpThreadState, signal?: AbortSignal): Promise<void> {
    const { serverNames } = this.#view;
    const { startupDeadlineMs, searchWaitMs } = this.#settings.budgets;
    this.#hub.pool.use(serverNames);
    const waitMs = this.#hub.settings.startup === "eager" ? MAX_WAIT_MS : startupDeadlineMs;
    await this.#hub.pool.settle(serverNames, waitMs, "start", signal);
    const known = Object.keys(state._mcpSent?.servers ?? {});
    const missing = known.filter((serverName) => serverNames.includes(serverName) && this.#view.server(serverName) === undefined);
    if (missing.length === 0) return;
    this.#hub.pool.open(missing);
    await this.#hub.pool.settle(missing, searchWaitMs, "start", signal);
  }

  /** Waits for every server, so that a name can be told from an unknown one in a process that has just started. */
  async #loadAll(signal?: AbortSignal): Promise<void> {
    const { serverNames } = this.#view;
    this.#hub.pool.open(serverNames);
    await this.#hub.pool.settle(serverNames, this.#settings.budgets.searchWaitMs, "now", signal);
  }
}

/** The longest time a timer can wait. */
const MAX_WAIT_MS = 2 ** 31 - 1;

/** False for a model whose profile says that it takes no images. */
function takesImages(model: unknown): boolean {
  return (model as { readonly profile?: { readonly imageInputs?: boolean } } | undefined)?.profile?.imageInputs !== false;
}

function isOurPrefix(name: string): boolean {
  return name.startsWith("mcp__");
}

function afterUpdate(state: McpThreadState, update: McpStateUpdate | undefined): McpActivation {
  const activation = activationOf(state);
  return update?.mcpActivation === undefined ? activation : mergeActivation(activation, update.mcpActivation);
}
