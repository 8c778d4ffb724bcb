import { executeTool } from "./executeTool.js";
import type { Caller } from "../call/permits.js";
import { searchTool } from "./searchTool.js";
import type { CallRouter, ToolCallRoute } from "./router.js";
import type { McpTool } from "../call/mcpTool.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import {
  answerSearch,
  isAnsweredByName,
  parseSearchArguments,
  SEARCH_TOOL_SCHEMA,
  searchedServers,
  searchToolDescription,
} from "../disclose/search.js";
import { EXECUTE_TOOL_NAME, RESOURCE_TOOL_NAMES, SEARCH_TOOL_NAME, type ThreadSettings } from "../disclose/thread.js";
import type { View } from "../disclose/view.js";
import type { McpHub } from "../hub/mcpHub.js";
import type { RunContext, ToolCallLike } from "./runContext.js";
import { resourceTool, type ResourceToolName } from "../input/resourceTools.js";
import type { McpStateUpdate, McpThreadState } from "../state.js";

/** What {@link SyntheticTools} is made of. */
export interface SyntheticToolsParts {
  readonly hub: McpHub;
  readonly router: CallRouter;
  readonly settings: ThreadSettings;
  /** What a run may see that is made in this context. */
  readonly viewOf: (config: object) => View;
  /** Opens servers that a search or a call may mean, and waits for them. */
  readonly load: (view: View, serverNames: readonly string[], signal: AbortSignal | undefined) => Promise<void>;
  /** The change of the state that binds tools which were found. */
  readonly promotion: (view: View, found: readonly ToolEntry[], state: McpThreadState) => McpStateUpdate | undefined;
}

/** Our own tools: search, the resource tools, and the one that runs others. */
export class SyntheticTools {
  readonly #parts: SyntheticToolsParts;
  readonly #bound: ReadonlyMap<string, McpTool>;

  constructor(parts: SyntheticToolsParts) {
    this.#parts = parts;
    // As they are bound. Run outside of a route they promote nothing, and nobody has approved anything.
    this.#bound = new Map([
      [SEARCH_TOOL_NAME, this.#searchTool(undefined, undefined, () => undefined)],
      [EXECUTE_TOOL_NAME, executeTool((args, call) => parts.router.runExecution(args, call, parts.viewOf(call.config)))],
      ...RESOURCE_TOOL_NAMES.map((name): [string, McpTool] => [name, this.#resourceTool(name)]),
    ]);
  }

  /** One of them as it is bound. */
  get(name: string): McpTool | undefined {
    return this.#bound.get(name);
  }

  /** Decides what becomes of a call of one of them; `undefined` for other tools. */
  async route(call: ToolCallLike, view: View, state: McpThreadState, run: RunContext): Promise<ToolCallRoute | undefined> {
    const { router, settings } = this.#parts;
    if (call.name === SEARCH_TOOL_NAME && settings.search) return this.#searchRoute(view, state, run.signal);
    if (call.name === EXECUTE_TOOL_NAME && settings.strategy === "execute") return router.routeExecution(call, view, state, run);
    const name = settings.resourceTools ? RESOURCE_TOOL_NAMES.find((known) => known === call.name) : undefined;
    if (name === undefined) return undefined;
    return router.routeRequest(call, state, run, (caller) => this.#resourceTool(name, view, caller));
  }

  #searchRoute(view: View, state: McpThreadState, signal?: AbortSignal): ToolCallRoute {
    let found: readonly ToolEntry[] = [];
    const tool = this.#searchTool(view, signal, (matches) => {
      found = matches;
    });
    return { kind: "run", tool, after: () => this.#parts.promotion(view, found, state) };
  }

  /** @param known - What may be found. Default: what the context of the run may see that the tool is called in. */
  #searchTool(
    known: View | undefined,
    signal: AbortSignal | undefined,
    onFound: (matches: readonly ToolEntry[]) => void,
  ): McpTool {
    const { hub, settings, viewOf, load } = this.#parts;
    return searchTool({
      name: SEARCH_TOOL_NAME,
      description: searchToolDescription(settings.strategy),
      schema: SEARCH_TOOL_SCHEMA,
      events: hub.events,
      search: async (args, config) => {
        const view = known ?? viewOf(config);
        const wanted = parseSearchArguments(args);
        if (!isAnsweredByName(view, wanted)) await load(view, searchedServers(view, wanted.server), signal);
        const answer = await answerSearch(view, wanted, (query) => hub.find(query), settings.strategy);
        onFound(answer.matches);
        return { ...answer, query: wanted.queries.join(" | ") };
      },
    });
  }

  /** @param known - What may be seen. Default: what the context of the run may see that the tool is called in. */
  #resourceTool(name: ResourceToolName, known?: View, caller?: Caller): McpTool {
    const { hub, settings, viewOf, load } = this.#parts;
    const parts = {
      requests: hub.requests,
      maxResourceChars: settings.budgets.maxResourceChars,
      maxArtifactChars: hub.settings.maxArtifactChars,
      viewOf: (config: object) => known ?? viewOf(config),
      load: (view: View, signal: AbortSignal | undefined) => load(view, view.serverNames, signal),
    };
    return resourceTool(name, parts, caller);
  }
}
