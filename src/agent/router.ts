import type { ToolMessage } from "@langchain/core/messages";

import { callOf } from "../call/callArguments.js";
import { approvalOf, type Caller } from "../call/caller.js";
import { errorMessage } from "../call/failureText.js";
import type { McpTool } from "../call/mcpTool.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import { isOurPrefix, namesakesOf } from "../disclose/namesakes.js";
import { activationOf, promotionOf } from "../disclose/promotion.js";
import { unknownToolText } from "../disclose/search.js";
import {
  EXECUTE_TOOL_NAME,
  RESOURCE_TOOL_NAMES,
  SEARCH_TOOL_NAME,
  type ThreadSettings,
} from "../disclose/thread.js";
import type { HubParts } from "../hub/hubParts.js";
import { resourceOperation, type ResourceToolName } from "../input/resourceTools.js";
import { permissionOf, type Operation } from "../policy/operation.js";
import type { McpDecisions, McpStateUpdate } from "../state.js";
import { oneLine } from "../text/clean.js";
import { executeTool, innerCall, withSchema } from "./executeTool.js";
import { ofCall, type RunContext, type ToolCall } from "./runContext.js";
import type { AgentServers } from "./servers.js";
import type { SyntheticTools } from "./syntheticTools.js";
import { entryToExecute, namesakesText } from "./unknownTools.js";

/** Where a tool call goes. */
export type ToolCallRoute =
  | { readonly kind: "pass" }
  /** A raw name outside of the request: `otherwise` applies if no other tool has that name. */
  | { readonly kind: "unbound"; readonly otherwise: RunRoute | AnswerRoute }
  | AnswerRoute
  | RunRoute;

export interface AnswerRoute {
  readonly kind: "answer";
  readonly message: ToolMessage;
}

/** Runs a tool; `after` returns the state update for its answer. */
export interface RunRoute {
  readonly kind: "run";
  readonly tool: McpTool;
  /** Arguments that a person edited. */
  readonly args?: Record<string, unknown>;
  readonly after: (message: ToolMessage) => McpStateUpdate | undefined;
}

/** Applies the person's decision: run the call, or answer it. */
type Verdict =
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "run"; readonly caller?: Caller; readonly edited?: Record<string, unknown> };

const AMBIGUOUS =
  "This call was not run: another call of the same step has the same id, and a person has to approve one of them. Call them again.";

/**
 * Decides whether a tool call is ours, applies a person's decision, and returns the tool that runs
 * it.
 */
export class ToolRouter {
  readonly #hub: HubParts;
  readonly #servers: AgentServers;
  readonly #settings: ThreadSettings;
  readonly #synthetic: SyntheticTools;

  constructor(
    hub: HubParts,
    servers: AgentServers,
    settings: ThreadSettings,
    synthetic: SyntheticTools,
  ) {
    this.#hub = hub;
    this.#servers = servers;
    this.#settings = settings;
    this.#synthetic = synthetic;
  }

  async route(run: RunContext, call: ToolCall, isOwn: boolean): Promise<ToolCallRoute> {
    const verdict = ofCall(run.state._mcpUnbound, call);
    if (verdict === "broken") return answer(call, brokenText(call.name));
    if (isOwn || verdict === "foreign") return { kind: "pass" };
    if (verdict === "ambiguous") return answer(call, AMBIGUOUS);
    const synthetic = await this.#syntheticRoute(run, call);
    if (synthetic !== undefined) return synthetic;
    const { view, state } = run;
    const mayBeOurs =
      isOurPrefix(call.name) ||
      verdict !== undefined ||
      Object.hasOwn(activationOf(state).promoted, call.name);
    const entry = await this.#servers.lookUp(run, call.name, mayBeOurs);
    // A tool of the provider's search stays deferred: binding it would change the request.
    if (entry !== undefined) return this.#callRoute(run, call, entry, verdict === "deferred");
    const namesakes =
      verdict === undefined || verdict === "deferred" ? [] : namesakesOf(view, call.name);
    const [only, ...others] = namesakes;
    if (only === undefined)
      return isOurPrefix(call.name)
        ? answer(call, unknownToolText(view, call.name))
        : { kind: "pass" };
    const isRepaired = verdict === "repair" && others.length === 0;
    const otherwise = isRepaired
      ? this.#callRoute(run, call, only, false)
      : answer(call, namesakesText(call.name, namesakes));
    return { kind: "unbound", otherwise };
  }

  async #syntheticRoute(
    run: RunContext,
    call: ToolCall,
  ): Promise<RunRoute | AnswerRoute | undefined> {
    const { search, strategy, resourceTools } = this.#settings;
    if (call.name === SEARCH_TOOL_NAME && search) return this.#searchRoute(run);
    if (call.name === EXECUTE_TOOL_NAME && strategy === "execute")
      return this.#executeRoute(run, call);
    const name = resourceTools
      ? RESOURCE_TOOL_NAMES.find((known) => known === call.name)
      : undefined;
    return name === undefined ? undefined : this.#resourceRoute(run, call, name);
  }

  #searchRoute(run: RunContext): RunRoute {
    const { view } = run;
    const after = ({ artifact }: ToolMessage): McpStateUpdate | undefined => {
      const { matches = [] } = (artifact ?? {}) as { readonly matches?: readonly string[] };
      return this.#promotion(
        run,
        matches.flatMap((name) => view.tool(name) ?? []),
      );
    };
    return { kind: "run", tool: this.#synthetic.searchFor(run), after };
  }

  #resourceRoute(run: RunContext, call: ToolCall, name: ResourceToolName): RunRoute | AnswerRoute {
    const decided = ofCall(run.state._mcpDecisions, call);
    const operation = resourceOperation(call.name, call.args);
    if (decided !== undefined) {
      // The decision applies to this exact request only.
      const permission = operation === undefined ? "" : permissionOf(operation);
      if (decided.boundName !== permission) return answer(call, changedText(call.name));
      if (isRefusal(decided)) {
        this.#audit(run, call, operation!, decided);
        return answer(call, refusalText(permission, decided));
      }
    }
    const { context, origin } = run.caller;
    const caller = { context, origin, ...approvalOf(decided) };
    return {
      kind: "run",
      tool: this.#synthetic.resourcesFor(name, run, caller),
      after: () => undefined,
    };
  }

  async #executeRoute(run: RunContext, call: ToolCall): Promise<RunRoute | AnswerRoute> {
    const inner = innerCall(call);
    const entry = await entryToExecute(inner, run, this.#servers);
    if (typeof entry === "string") return answer(call, entry);
    const verdict = this.#verdict(run, inner!, entry);
    if (verdict.kind === "answer") return answer(call, verdict.text);
    const runInner = this.#hub.tools.runner(entry, verdict.caller);
    const args = verdict.edited ?? inner!.args;
    const tool = executeTool(
      async (_outer, outerCall) => withSchema(await runInner(args, outerCall), entry),
      entry,
    );
    return { kind: "run", tool, after: () => undefined };
  }

  #callRoute(
    run: RunContext,
    call: ToolCall,
    entry: ToolEntry,
    staysDeferred: boolean,
  ): RunRoute | AnswerRoute {
    const verdict = this.#verdict(run, call, entry);
    if (verdict.kind === "answer") return answer(call, verdict.text);
    const { tools } = this.#hub;
    const after = ({ status, artifact }: ToolMessage): McpStateUpdate | undefined => {
      // Wrong arguments: bound, the model sees the schema.
      const { errorCode } = (artifact ?? {}) as { readonly errorCode?: string };
      const isUseful = status !== "error" || errorCode === "INVALID_ARGUMENTS";
      return isUseful && !staysDeferred ? this.#promotion(run, [entry]) : undefined;
    };
    const tool = verdict.caller === undefined ? tools.of(entry) : tools.for(entry, verdict.caller);
    return {
      kind: "run",
      tool,
      after,
      ...(verdict.edited === undefined ? {} : { args: verdict.edited }),
    };
  }

  #verdict(run: RunContext, call: ToolCall, entry: ToolEntry): Verdict {
    if (!run.view.mayShow(entry))
      return { kind: "answer", text: unknownToolText(run.view, entry.boundName) };
    const decided = ofCall(run.state._mcpDecisions, call);
    if (decided === undefined) return { kind: "run" };
    if (isRefusal(decided)) {
      this.#audit(run, call, callOf(entry, call.args), decided);
      return { kind: "answer", text: refusalText(entry.boundName, decided) };
    }
    if (decided.boundName !== entry.boundName || decided.toolHash !== entry.hash) {
      return { kind: "answer", text: changedText(entry.boundName) };
    }
    const { context, origin } = run.caller;
    const caller = { context, origin, ...approvalOf(decided) };
    return {
      kind: "run",
      caller,
      ...(decided.type === "edit" ? { edited: decided.editedArguments ?? {} } : {}),
    };
  }

  #promotion(run: RunContext, found: readonly ToolEntry[]): McpStateUpdate | undefined {
    return promotionOf(run.view, found, run.state, this.#settings);
  }

  #audit(
    { caller }: RunContext,
    call: ToolCall,
    operation: Operation,
    decided: McpDecisions[string],
  ): void {
    const { permits } = this.#hub;
    permits.audit(
      operation,
      permits.decide(operation, caller),
      { ...caller, toolCallId: call.id },
      decided,
    );
  }
}

function answer(call: ToolCall, text: string): AnswerRoute {
  return { kind: "answer", message: errorMessage(call, text) };
}

function isRefusal({ type }: McpDecisions[string]): boolean {
  return type === "reject" || type === "refuse";
}

function brokenText(name: string): string {
  return `The call of ${oneLine(name, 80)} was not run: its arguments are not valid JSON. Call it again with one JSON object as arguments.`;
}

function changedText(name: string): string {
  return `${name} changed since a person was asked, and was not run. Call it again if it is still needed.`;
}

function refusalText(boundName: string, { type, message }: McpDecisions[string]): string {
  if (type === "refuse") return `${boundName} was not run: ${message ?? "it was not approved"}.`;
  const words = message === undefined || message === "" ? "" : ` They said: ${message}`;
  return `A person rejected this call of ${boundName}; it was not run. Do not repeat it.${words}`;
}
