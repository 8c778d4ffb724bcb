import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";

import { askPeople, type Interrupt } from "./call/askPeople.js";
import { contextOf, originOf } from "./call/boundTool.js";
import { callOf, checked } from "./call/callArguments.js";
import { errorMessage } from "./call/errorMessage.js";
import { approvalOf, askedCall, type Asker, type Wanted } from "./call/permits.js";
import { executeTool, readExecution, runExecution, type Execution } from "./call/executeTool.js";
import type { GatedTool, GatedToolParts } from "./catalog/gatedTool.js";
import { oneLine } from "./catalog/text.js";
import type { ToolEntry } from "./catalog/toolEntry.js";
import type { OnAsk } from "./config/askSchema.js";
import { activationOf } from "./disclose/promotion.js";
import { unknownToolText } from "./disclose/search.js";
import { EXECUTE_TOOL_NAME } from "./disclose/thread.js";
import type { View } from "./disclose/view.js";
import type { McpHub } from "./hub.js";
import { resourceOperation } from "./input/resourceTools.js";
import { permissionOf, type Operation } from "./policy/operation.js";
import type { McpAsked, McpDecisions, McpStateUpdate, McpThreadState, McpUnbound } from "./state.js";

/** What a hook runs in. */
export interface RunInfo extends Pick<Asker, "origin" | "signal" | "context"> {
  /** Run configuration, for the adapter's hooks. */
  readonly config?: RunnableConfig | undefined;
}

/**
 * What a hook or a node runs in. Taken from the run's configuration: what `createAgent` hands to a hook as
 * `runtime.context` is only the part that the middleware's own `contextSchema` names.
 */
export function runInfoOf(config: RunnableConfig | undefined): RunInfo {
  return { origin: originOf(config ?? {}), signal: config?.signal, context: contextOf(config), config };
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
  /** Arguments to run it with in place of the model's: a person edited them. */
  readonly args?: Record<string, unknown>;
  readonly after: (message: ToolMessage) => McpStateUpdate | undefined;
}

/** What is known of a call before it goes to the gate. */
type CallVerdict =
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "run"; readonly asker?: Asker; readonly edited?: Record<string, unknown> };

/** A tool call as LangChain hands it on. */
export interface ToolCallLike {
  readonly id?: string | undefined;
  readonly name: string;
  readonly args?: unknown;
}

/** What a router is made of. */
export interface CallRouterParts {
  readonly hub: McpHub;
  readonly onAsk: OnAsk | undefined;
  /** Whether bound names may lack our prefix. */
  readonly usesOwnNames: boolean;
  /** Waits for every server, so that a name can be told from an unknown one in a process that has just started. */
  readonly loadAll: (view: View, signal: AbortSignal | undefined) => Promise<void>;
  /** What it changes in the state that tools were found or called. */
  readonly promotion: (view: View, found: readonly ToolEntry[], state: McpThreadState) => McpStateUpdate | undefined;
}

/** What {@link CallRouter.review} needs of a model call. */
export interface ReviewedPlan {
  readonly tools: readonly GatedTool[];
  readonly foreignNames: ReadonlySet<string>;
  readonly view: View;
}

const AMBIGUOUS =
  "This call was not run: another call of the same step has the same id, and a person has to approve one of them. Call them again.";

/** From the model's answer to the tool node: which calls are ours, who is asked about them, what becomes of each. */
export class CallRouter {
  readonly #parts: CallRouterParts;

  constructor(parts: CallRouterParts) {
    this.#parts = parts;
  }

  /** Looks at the model's answer once, and writes down what later hooks must not work out anew. */
  async review(answer: AIMessage, plan: ReviewedPlan, state: McpThreadState, run: RunInfo): Promise<McpStateUpdate | undefined> {
    const unbound: McpUnbound = {};
    const asked: McpAsked = {};
    const ours = new Set(plan.tools.map(({ name }) => name));
    const calls = (answer.tool_calls ?? []).filter((call) => call.id !== undefined);
    const seen = new Set<string>();
    const twice = new Set(calls.flatMap(({ id }) => (seen.size === seen.add(id!).size ? [id!] : [])));
    for (const [order, sent] of calls.entries()) {
      const id = sent.id!;
      const isExecution = sent.name === EXECUTE_TOOL_NAME && ours.has(sent.name);
      const inner = isExecution ? readExecution(sent.args) : undefined;
      const call: ToolCallLike = inner === undefined ? sent : { id, ...inner };
      const verdict = isExecution || ours.has(call.name) ? undefined : this.#verdict(call.name, plan);
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
      // Answers of an earlier hop are for calls of that hop.
      ...replaced("_mcpDecisions", {}, state._mcpDecisions),
    };
    return Object.keys(update).length === 0 ? undefined : update;
  }

  /** Asks a person about the calls that were written down. Never works out anew who is asked about what. */
  async ask(
    state: McpThreadState,
    messages: readonly BaseMessage[],
    interrupt: Interrupt | undefined,
    run: RunInfo,
  ): Promise<McpStateUpdate | undefined> {
    if (Object.keys(state._mcpAsked ?? {}).length === 0) return undefined;
    const asked = stillOpen(state._mcpAsked ?? {}, messages);
    if (Object.keys(asked).length === 0) return undefined;
    const { hub, onAsk } = this.#parts;
    return { _mcpDecisions: await askPeople(asked, { interrupt, onAsk, events: hub.events }, run) };
  }

  /** True for a call of another's tool, as far as the model's answer said. */
  isForeign({ id }: ToolCallLike, state: McpThreadState): boolean {
    return ownValue(state._mcpUnbound, id) === "foreign";
  }

  /**
   * What becomes of a call of one of our own tools that makes a request of a server.
   *
   * @param toolFor - Makes the tool for who calls it, with what a person has said.
   */
  routeRequest(
    call: ToolCallLike,
    state: McpThreadState,
    run: RunInfo,
    toolFor: (asker: Asker) => GatedTool,
  ): RunRoute | AnswerRoute {
    if (ownValue(state._mcpUnbound, call.id) === "ambiguous") return answer(call, AMBIGUOUS);
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
    return { kind: "run", tool: toolFor({ ...askerOf(run), ...approvalOf(decided) }), after: () => undefined };
  }

  /** What becomes of a call of `execute_mcp_tool`: that of the call inside. */
  async routeExecution(call: ToolCallLike, view: View, state: McpThreadState, run: RunInfo): Promise<RunRoute | AnswerRoute> {
    if (ownValue(state._mcpUnbound, call.id) === "ambiguous") return answer(call, AMBIGUOUS);
    const found = await this.#executed(call.args, view, run.signal);
    if (typeof found === "string") return answer(call, found);
    const { entry, execution } = found;
    const verdict = this.#verdictOn({ ...call, args: execution.args }, entry, view, state, run);
    if (verdict.kind === "answer") return answer(call, verdict.text);
    const runInner = this.#parts.hub.tools.runner(entry, verdict.asker);
    return {
      kind: "run",
      tool: executeTool(runExecution(entry, runInner, verdict.edited ?? execution.args)),
      after: () => undefined,
    };
  }

  /** Runs `execute_mcp_tool` where it is called without a route. */
  async runExecution(args: unknown, call: Parameters<GatedToolParts["run"]>[1], view: View): Promise<ToolMessage> {
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
    const { usesOwnNames, loadAll } = this.#parts;
    if (view.tool(name) === undefined && (isOurPrefix(name) || usesOwnNames)) await loadAll(view, signal);
    const entry = view.tool(name);
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
    run: RunInfo,
  ): Promise<ToolCallRoute> {
    const verdict = ownValue(state._mcpUnbound, call.id);
    if (isRegistered || verdict === "foreign") return { kind: "pass" };
    if (verdict === "ambiguous") return answer(call, AMBIGUOUS);
    const mayBeOurs = isOurPrefix(call.name) || verdict !== undefined || Object.hasOwn(activationOf(state).promoted, call.name);
    const { usesOwnNames, loadAll } = this.#parts;
    if (view.tool(call.name) === undefined && (mayBeOurs || usesOwnNames)) await loadAll(view, run.signal);
    const entry = view.tool(call.name);
    if (entry !== undefined) return this.#callRoute(call, entry, view, state, run);
    const namesakes = verdict === undefined ? [] : namesakesOf(view, call.name);
    if (namesakes.length > 0) {
      return { kind: "unbound", otherwise: this.#unboundRoute(call, verdict === "repair", namesakes, view, state, run) };
    }
    if (isOurPrefix(call.name)) return answer(call, unknownToolText(view, call.name));
    return { kind: "pass" };
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
  #judgeRequest(call: ToolCallLike, ours: ReadonlySet<string>, view: View, run: RunInfo): Wanted | undefined {
    const operation = ours.has(call.name) ? resourceOperation(call.name, call.args) : undefined;
    if (operation === undefined || !view.serverNames.includes(operation.serverName)) return undefined;
    return { operation, decision: this.#parts.hub.permits.decide(operation, run), name: permissionOf(operation) };
  }

  /** What the policy says of a call; `undefined` for one that is not ours or cannot be run: it will say why. */
  async #judge(call: ToolCallLike, isRepaired: boolean, view: View, run: RunInfo): Promise<Wanted | undefined> {
    const { hub, loadAll, usesOwnNames } = this.#parts;
    if (!hub.settings.isGoverned) return undefined;
    const mayBeOurs = isOurPrefix(call.name) || usesOwnNames;
    if (!isRepaired && view.tool(call.name) === undefined && mayBeOurs) await loadAll(view, run.signal);
    const entry = isRepaired ? namesakesOf(view, call.name)[0] : view.tool(call.name);
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

  #unboundRoute(
    call: ToolCallLike,
    mayRepair: boolean,
    namesakes: readonly ToolEntry[],
    view: View,
    state: McpThreadState,
    run: RunInfo,
  ): RunRoute | AnswerRoute {
    if (mayRepair && namesakes.length === 1) return this.#callRoute(call, namesakes[0]!, view, state, run);
    const names = namesakes.map(({ boundName }) => boundName);
    return answer(call, namesakesText(call.name, names));
  }

  #callRoute(call: ToolCallLike, entry: ToolEntry, view: View, state: McpThreadState, run: RunInfo): RunRoute | AnswerRoute {
    const { hub, promotion } = this.#parts;
    const after = (message: ToolMessage): McpStateUpdate | undefined =>
      message.status === "error" ? undefined : promotion(view, [entry], state);
    const verdict = this.#verdictOn(call, entry, view, state, run);
    if (verdict.kind === "answer") return answer(call, verdict.text);
    const { asker, edited } = verdict;
    const tool = asker === undefined ? hub.tools.of(entry) : hub.tools.for(entry, asker);
    return { kind: "run", tool, after, ...(edited === undefined ? {} : { args: edited }) };
  }

  /** Whether a call may go to the gate, with what a person said of it; or what the model is told in its place. */
  #verdictOn(call: ToolCallLike, entry: ToolEntry, view: View, state: McpThreadState, run: RunInfo): CallVerdict {
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
    const asker = { ...askerOf(run), ...approvalOf(decided) };
    return { kind: "run", asker, ...(decided.type === "edit" ? { edited: decided.editedArguments ?? {} } : {}) };
  }

  #auditRefusal(operation: Operation, call: ToolCallLike, run: RunInfo, decided: McpDecisions[string]): void {
    const { permits } = this.#parts.hub;
    permits.audit(operation, permits.decide(operation, run), { ...run, toolCallId: call.id }, decided);
  }
}

/** True for a name that only one of ours can have. */
export function isOurPrefix(name: string): boolean {
  return name.startsWith("mcp__");
}

function answer(call: ToolCallLike, text: string): AnswerRoute {
  return { kind: "answer", message: errorMessage(call, text) };
}

/** Tools of any server with this raw name that may be shown. */
function namesakesOf(view: View, name: string): ToolEntry[] {
  return view.catalog.toolsNamed(name).filter((entry) => view.shows(entry));
}

/** Who a call is for that the router hands on. */
function askerOf({ origin, context = {} }: RunInfo): Asker {
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

/** The asked calls that are calls of the last answer, and that nobody has answered meanwhile. */
function stillOpen(asked: McpAsked, messages: readonly BaseMessage[]): McpAsked {
  const last = messages.findLastIndex((message) => AIMessage.isInstance(message));
  const calls = last < 0 ? [] : ((messages[last] as AIMessage).tool_calls ?? []);
  const answered = new Set(
    messages.slice(last + 1).flatMap((message) => (ToolMessage.isInstance(message) ? message.tool_call_id : [])),
  );
  const open = new Set(calls.flatMap(({ id }) => (id === undefined || answered.has(id) ? [] : [id])));
  return Object.fromEntries(Object.entries(asked).filter(([callId]) => open.has(callId)));
}

/** A write that replaces what an earlier hop left; none when both are empty. */
function replaced<Key extends "_mcpUnbound" | "_mcpAsked" | "_mcpDecisions">(
  key: Key,
  next: NonNullable<McpStateUpdate[Key]>,
  before: object | undefined,
): McpStateUpdate {
  return Object.keys(next).length + Object.keys(before ?? {}).length === 0 ? {} : { [key]: next };
}

function ownValue<Value>(record: Readonly<Record<string, Value>> | undefined, key: string | undefined): Value | undefined {
  return record !== undefined && key !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
