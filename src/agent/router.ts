import type { ToolMessage } from "@langchain/core/messages";

import { callOf } from "../call/callArguments.js";
import { errorMessage } from "../call/errorMessage.js";
import { executeTool, readExecution, runExecution, type Execution } from "./executeTool.js";
import { approvalOf, type Caller } from "../call/permits.js";
import type { McpTool, McpToolParts } from "../call/mcpTool.js";
import { oneLine } from "../text/clean.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import { isOurPrefix, namesakesOf } from "../disclose/namesakes.js";
import { activationOf } from "../disclose/promotion.js";
import { unknownToolText } from "../disclose/search.js";
import type { View } from "../disclose/view.js";
import type { McpHub } from "../hub/mcpHub.js";
import { resourceOperation } from "../input/resourceTools.js";
import { permissionOf, type Operation } from "../policy/operation.js";
import type { LookUpTool, RunContext, ToolCallLike } from "./runContext.js";
import type { McpDecisions, McpStateUpdate, McpThreadState } from "../state.js";

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
  readonly tool: McpTool;
  /** Arguments to run it with in place of the model's: a person edited them. */
  readonly args?: Record<string, unknown>;
  readonly after: (message: ToolMessage) => McpStateUpdate | undefined;
}

/** What is known of a call before it goes to the gate. */
type CallVerdict =
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "run"; readonly caller?: Caller; readonly edited?: Record<string, unknown> };

/** What a router is made of. */
export interface CallRouterParts {
  readonly hub: McpHub;
  readonly lookUp: LookUpTool;
  /** What it changes in the state that tools were found or called. */
  readonly promotion: (view: View, found: readonly ToolEntry[], state: McpThreadState) => McpStateUpdate | undefined;
}

const AMBIGUOUS =
  "This call was not run: another call of the same step has the same id, and a person has to approve one of them. Call them again.";

/** What becomes of each tool call: which are ours, what a person said of them, what the model is told in their place. */
export class CallRouter {
  readonly #parts: CallRouterParts;

  constructor(parts: CallRouterParts) {
    this.#parts = parts;
  }

  /** True for a call of another's tool, as far as the model's answer said. */
  isForeign({ id }: ToolCallLike, state: McpThreadState): boolean {
    return ownValue(state._mcpUnbound, id) === "foreign";
  }

  /** The answer to a call that cannot be told from another one of the same step; `undefined` for others. */
  ambiguous(call: ToolCallLike, state: McpThreadState): AnswerRoute | undefined {
    return ownValue(state._mcpUnbound, call.id) === "ambiguous" ? answer(call, AMBIGUOUS) : undefined;
  }

  /**
   * What becomes of a call of one of our own tools that makes a request of a server.
   *
   * @param toolFor - Makes the tool for who calls it, with what a person has said.
   */
  routeRequest(
    call: ToolCallLike,
    state: McpThreadState,
    run: RunContext,
    toolFor: (caller: Caller) => McpTool,
  ): RunRoute | AnswerRoute {
    const decided = ownValue(state._mcpDecisions, call.id);
    const operation = resourceOperation(call.name, call.args);
    if (decided !== undefined) {
      // What was asked about is this very request.
      const name = operation === undefined ? "" : permissionOf(operation);
      if (decided.boundName !== name) return answer(call, changedText(call.name));
      if (decided.type === "reject" || decided.type === "refuse") {
        this.#auditRefusal(operation!, call, run, decided);
        return answer(call, refusalText(name, decided));
      }
    }
    return { kind: "run", tool: toolFor({ ...callerOf(run), ...approvalOf(decided) }), after: () => undefined };
  }

  /** What becomes of a call of `execute_mcp_tool`: that of the call inside. */
  async routeExecution(call: ToolCallLike, view: View, state: McpThreadState, run: RunContext): Promise<RunRoute | AnswerRoute> {
    const found = await this.#executed(call.args, view, run.signal);
    if (typeof found === "string") return answer(call, found);
    const { entry, execution } = found;
    const verdict = this.#verdictOn({ ...call, args: execution.args }, entry, view, state, run);
    if (verdict.kind === "answer") return answer(call, verdict.text);
    const runInner = this.#parts.hub.tools.runner(entry, verdict.caller);
    return {
      kind: "run",
      tool: executeTool(runExecution(entry, runInner, verdict.edited ?? execution.args), entry),
      after: () => undefined,
    };
  }

  /** Runs `execute_mcp_tool` where it is called without a route. */
  async runExecution(args: unknown, call: Parameters<McpToolParts["run"]>[1], view: View): Promise<ToolMessage> {
    const found = await this.#executed(args, view, call.config.signal);
    if (typeof found === "string") return errorMessage({ id: call.toolCallId, name: call.name }, found);
    const { entry, execution } = found;
    return runExecution(entry, this.#parts.hub.tools.runner(entry), execution.args)(args, call);
  }

  /** The tool that a call of `execute_mcp_tool` means; text for the model when there is none. */
  async #executed(
    args: unknown,
    view: View,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly entry: ToolEntry; readonly execution: Execution } | string> {
    const execution = readExecution(args);
    if (execution === undefined) return 'Give the "name" of a tool and its "arguments". search_mcp_tools finds tools.';
    const { name } = execution;
    const entry = await this.#parts.lookUp(view, name, isOurPrefix(name), signal);
    if (entry !== undefined && view.mayShow(entry)) return { entry, execution };
    const names = namesakesOf(view, name).map(({ boundName }) => boundName);
    return names.length === 0 ? unknownToolText(view, name) : namesakesText(name, names);
  }

  /** Decides what becomes of a tool call. */
  async route(
    call: ToolCallLike,
    isRegistered: boolean,
    view: View,
    state: McpThreadState,
    run: RunContext,
  ): Promise<ToolCallRoute> {
    const verdict = ownValue(state._mcpUnbound, call.id);
    if (isRegistered || verdict === "foreign") return { kind: "pass" };
    const mayBeOurs = isOurPrefix(call.name) || verdict !== undefined || Object.hasOwn(activationOf(state).promoted, call.name);
    const entry = await this.#parts.lookUp(view, call.name, mayBeOurs, run.signal);
    if (entry !== undefined) return this.#callRoute(call, entry, view, state, run, verdict === "deferred");
    const namesakes = verdict === undefined || verdict === "deferred" ? [] : namesakesOf(view, call.name);
    if (namesakes.length > 0) {
      return { kind: "unbound", otherwise: this.#unboundRoute(call, verdict === "repair", namesakes, view, state, run) };
    }
    if (isOurPrefix(call.name)) return answer(call, unknownToolText(view, call.name));
    return { kind: "pass" };
  }

  #unboundRoute(
    call: ToolCallLike,
    mayRepair: boolean,
    namesakes: readonly ToolEntry[],
    view: View,
    state: McpThreadState,
    run: RunContext,
  ): RunRoute | AnswerRoute {
    if (mayRepair && namesakes.length === 1) return this.#callRoute(call, namesakes[0]!, view, state, run);
    const names = namesakes.map(({ boundName }) => boundName);
    return answer(call, namesakesText(call.name, names));
  }

  /** @param isDeferred - The provider's search showed the tool, and shows it on: bound, it would change the request. */
  #callRoute(
    call: ToolCallLike,
    entry: ToolEntry,
    view: View,
    state: McpThreadState,
    run: RunContext,
    isDeferred = false,
  ): RunRoute | AnswerRoute {
    const { hub, promotion } = this.#parts;
    const after = (message: ToolMessage): McpStateUpdate | undefined =>
      message.status === "error" || isDeferred ? undefined : promotion(view, [entry], state);
    const verdict = this.#verdictOn(call, entry, view, state, run);
    if (verdict.kind === "answer") return answer(call, verdict.text);
    const { caller, edited } = verdict;
    const tool = caller === undefined ? hub.tools.of(entry) : hub.tools.for(entry, caller);
    return { kind: "run", tool, after, ...(edited === undefined ? {} : { args: edited }) };
  }

  /** Whether a call may go to the gate, with what a person said of it; or what the model is told in its place. */
  #verdictOn(call: ToolCallLike, entry: ToolEntry, view: View, state: McpThreadState, run: RunContext): CallVerdict {
    if (!view.mayShow(entry)) return { kind: "answer", text: unknownToolText(view, entry.boundName) };
    const decided = ownValue(state._mcpDecisions, call.id);
    if (decided === undefined) return { kind: "run" };
    if (decided.type === "reject" || decided.type === "refuse") {
      this.#auditRefusal(callOf(entry, call.args), call, run, decided);
      return { kind: "answer", text: refusalText(entry.boundName, decided) };
    }
    if (decided.boundName !== entry.boundName || decided.toolHash !== entry.hash) {
      return { kind: "answer", text: changedText(entry.boundName) };
    }
    const caller = { ...callerOf(run), ...approvalOf(decided) };
    return { kind: "run", caller, ...(decided.type === "edit" ? { edited: decided.editedArguments ?? {} } : {}) };
  }

  #auditRefusal(operation: Operation, call: ToolCallLike, run: RunContext, decided: McpDecisions[string]): void {
    const { permits } = this.#parts.hub;
    permits.audit(operation, permits.decide(operation, run), { ...run, toolCallId: call.id }, decided);
  }
}

function answer(call: ToolCallLike, text: string): AnswerRoute {
  return { kind: "answer", message: errorMessage(call, text) };
}

/** Who a call is for that the router hands on. */
function callerOf({ origin, context = {} }: RunContext): Caller {
  return { context, ...(origin === undefined ? {} : { origin }) };
}

function namesakesText(name: string, boundNames: readonly string[]): string {
  return `There is no tool "${oneLine(name, 80)}". Use one of: ${boundNames.slice(0, 10).join(", ")}.`;
}

function changedText(name: string): string {
  return `${name} changed since a person was asked, and was not run. Call it again if it is still needed.`;
}

function refusalText(boundName: string, { type, message }: McpDecisions[string]): string {
  if (type === "refuse") return `${boundName} was not run: ${message ?? "it was not approved"}.`;
  const words = message === undefined || message === "" ? "" : ` They said: ${message}`;
  return `A person rejected this call of ${boundName}; it was not run. Do not repeat it.${words}`;
}

function ownValue<Value>(record: Readonly<Record<string, Value>> | undefined, key: string | undefined): Value | undefined {
  return record !== undefined && key !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
