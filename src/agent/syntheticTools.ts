import { ToolMessage } from "@langchain/core/messages";

import { callerOf, type Caller } from "../call/caller.js";
import { errorMessage } from "../call/failureText.js";
import { McpTool } from "../call/mcpTool.js";
import { tellRun } from "../call/runStream.js";
import {
  answerSearch,
  isAnsweredByName,
  parseSearchArguments,
  SEARCH_TOOL_SCHEMA,
  searchedServers,
  searchToolDescription,
} from "../disclose/search.js";
import {
  EXECUTE_TOOL_NAME,
  RESOURCE_TOOL_NAMES,
  SEARCH_TOOL_NAME,
  type ThreadSettings,
} from "../disclose/thread.js";
import type { Views } from "../disclose/views.js";
import type { HubParts } from "../hub/hubParts.js";
import { resourceTool, runResourceTool, type ResourceToolName } from "../input/resourceTools.js";
import { executeTool, innerCall, withSchema } from "./executeTool.js";
import type { RunContext, ToolCall } from "./runContext.js";
import type { AgentServers } from "./servers.js";
import { entryToExecute } from "./unknownTools.js";

/** Our own tools: search, the resource tools, and `execute_mcp_tool`. */
export class SyntheticTools {
  readonly #hub: HubParts;
  readonly #servers: AgentServers;
  readonly #settings: ThreadSettings;
  readonly #bound: ReadonlyMap<string, McpTool>;

  /** @param views - A call outside of a route uses the view of its config. */
  constructor(hub: HubParts, servers: AgentServers, settings: ThreadSettings, views: Views) {
    this.#hub = hub;
    this.#servers = servers;
    this.#settings = settings;
    const unrouted = (config: object): RunContext => {
      const caller = callerOf(config);
      return { view: views.of(caller.context ?? {}), state: {}, caller };
    };
    const search = new McpTool({
      name: SEARCH_TOOL_NAME,
      description: searchToolDescription(settings.strategy),
      schema: SEARCH_TOOL_SCHEMA,
      metadata: {},
      run: (args, { toolCallId, config }) => this.#search(args, toolCallId, unrouted(config)),
    });
    const execute = executeTool((args, call) =>
      this.#execute({ id: call.toolCallId, name: call.name, args }, unrouted(call.config)),
    );
    const resources = RESOURCE_TOOL_NAMES.map((name) =>
      resourceTool(name, (args, { toolCallId, config }) => {
        const run = unrouted(config);
        return this.#resources(name, args, run, { ...run.caller, toolCallId });
      }),
    );
    this.#bound = new Map([search, execute, ...resources].map((tool) => [tool.name, tool]));
  }

  /** A tool as it is bound. Run outside of a route, it promotes nothing and has no approvals. */
  get(name: string): McpTool | undefined {
    return this.#bound.get(name);
  }

  /** The search tool for a run; its artifact is `{ matches }`, bound names, best first. */
  searchFor(run: RunContext): McpTool {
    return this.#bound
      .get(SEARCH_TOOL_NAME)!
      .running((args, { toolCallId, config }) =>
        this.#search(args, toolCallId, { ...run, caller: { ...run.caller, config } }),
      );
  }

  /** A resource tool for a run, whose calls use the caller. */
  resourcesFor(name: ResourceToolName, run: RunContext, caller: Caller): McpTool {
    return this.#bound.get(name)!.running((args, { toolCallId, config }) =>
      this.#resources(name, args, run, {
        ...callerOf(config),
        ...caller,
        config,
        signal: config.signal,
        toolCallId,
      }),
    );
  }

  async #search(args: unknown, toolCallId: string, run: RunContext): Promise<ToolMessage> {
    const startedAt = performance.now();
    const { view, caller } = run;
    const wanted = parseSearchArguments(args);
    if (!isAnsweredByName(view, wanted))
      await this.#servers.load(run, searchedServers(view, wanted.server));
    const { text, matches: found } = await answerSearch(
      view,
      wanted,
      this.#hub.search,
      this.#settings.strategy,
    );
    const matches = found.map(({ boundName }) => boundName);
    const report = {
      query: wanted.queries.join(" | "),
      matches,
      latencyMs: performance.now() - startedAt,
    };
    this.#hub.events.emit("search", { ...caller.origin, ...report });
    await tellRun(caller.config, { type: "mcp_search", toolCallId, ...report });
    const base = { content: text, name: SEARCH_TOOL_NAME, tool_call_id: toolCallId };
    return new ToolMessage({ ...base, artifact: { matches }, status: "success" });
  }

  async #resources(
    name: ResourceToolName,
    args: unknown,
    run: RunContext,
    caller: Caller,
  ): Promise<ToolMessage> {
    const { reads, settings } = this.#hub;
    const isOfOneServer =
      typeof (args as { readonly server?: unknown } | null)?.server === "string";
    if (!isOfOneServer) await this.#servers.load(run, run.view.serverNames);
    const { maxResourceChars } = this.#settings.budgets;
    const context = {
      reads,
      view: run.view,
      maxResourceChars,
      maxArtifactChars: settings.budgets.maxArtifactChars,
    };
    return runResourceTool(name, args, context, caller);
  }

  async #execute(call: ToolCall, run: RunContext): Promise<ToolMessage> {
    const inner = innerCall(call);
    const found = await entryToExecute(inner, run, this.#servers);
    if (typeof found === "string")
      return errorMessage({ id: call.id, name: EXECUTE_TOOL_NAME }, found);
    const runInner = this.#hub.tools.runner(found);
    const outer = {
      toolCallId: call.id ?? "",
      name: EXECUTE_TOOL_NAME,
      config: run.caller.config ?? {},
    };
    return withSchema(await runInner(inner!.args, outer), found);
  }
}
