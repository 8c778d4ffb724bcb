import { randomUUID } from "node:crypto";

import type { Catalog } from "../catalog/catalog.js";
import { repairArguments } from "../catalog/schema/repairArguments.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { HubSettings, ServerSettings } from "../config/settings.js";
import type { Connection } from "../connect/connection.js";
import type { Progress } from "../connect/peer.js";
import type { ConnectionPool } from "../connect/pool.js";
import { McpNotFoundError, messageOf } from "../errors.js";
import type { HubEvents } from "../events.js";
import type { Operation } from "../policy/operation.js";
import { moreRestrictive, type Decision } from "../policy/policy.js";
import { rejectAfter, rejectOnAbort } from "../text/abort.js";
import { cut } from "../text/clean.js";
import { callBefore, replaceResult, tellProgress } from "./adapterHooks.js";
import { callOf, checked, repaired } from "./callArguments.js";
import type { Caller } from "./caller.js";
import type { Permits } from "./permits.js";
import { toOutcome, type CallOutcome, type RawCallResult } from "./result.js";
import { tellRun } from "./runStream.js";

/** A call of a tool. */
export interface GateCall extends Caller {
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  /** As the model sent them. */
  readonly arguments: unknown;
}

/** A call with the arguments that would be sent, and the decision about them. */
export interface JudgedCall {
  readonly entry: ToolEntry;
  /** Repaired, and changed by the adapter's hook. */
  readonly operation: Extract<Operation, { kind: "call" }>;
  readonly decision: Decision;
  /** HTTP headers of this call alone. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Thrown when tool or policy changed while a call waited: nothing was sent. */
const STALE = Symbol("stale");
/** How often a call is decided again because something changed while it waited. */
const MAX_LOOKS = 3;
const STORE_WAIT_MS = 10_000;
const MAX_NOTICE_CHARS = 1_000;

/**
 * The one way to a server for tool calls, whatever face they come from.
 *
 * Look up → repair arguments → policy, which sees exactly what would be sent → check → send → result → events.
 */
export class Gate {
  readonly #settings: HubSettings;
  readonly #catalog: Catalog;
  readonly #permits: Permits;
  readonly #events: HubEvents;
  readonly #pool: ConnectionPool;

  constructor(settings: HubSettings, catalog: Catalog, permits: Permits, events: HubEvents, pool: ConnectionPool) {
    this.#settings = settings;
    this.#catalog = catalog;
    this.#permits = permits;
    this.#events = events;
    this.#pool = pool;
  }

  /**
   * Runs a call.
   *
   * @throws {McpMiddlewareError} when the call could not be made or was not answered. A tool that answers with
   * `isError` is no error here: the outcome says so.
   * @throws the abort reason when the signal aborts.
   */
  async call(call: GateCall): Promise<CallOutcome> {
    const startedAt = performance.now();
    try {
      const outcome = await this.#run(call, startedAt, MAX_LOOKS);
      this.#report(call, startedAt, outcome.status, outcome.content.length);
      return outcome;
    } catch (error) {
      this.#report(call, startedAt, "error", 0);
      throw error;
    }
  }

  /**
   * Decides about a call without making it.
   *
   * The adapter's `beforeToolCall` runs: the arguments it returns are those that would be sent.
   *
   * @throws {McpMiddlewareError} when the server or the tool is not there.
   */
  async judge(call: GateCall): Promise<JudgedCall> {
    const entry = this.#known(call) ?? (await this.#lookUp(call));
    const operation = callOf(entry, repaired(entry, call.arguments));
    const decision = this.#permits.decide(operation, call);
    const { beforeToolCall } = this.#settings.callbacks;
    if (decision.kind === "deny" || beforeToolCall === undefined) return { entry, operation, decision };
    const { args, headers } = await callBefore(beforeToolCall, entry, operation.arguments, call);
    if (args === undefined) return { entry, operation, decision, headers };
    const changed = callOf(entry, repairArguments(entry.inputSchema, args));
    return { entry, operation: changed, decision: moreRestrictive(decision, this.#permits.decide(changed, call)), headers };
  }

  async #run(call: GateCall, startedAt: number, looks: number): Promise<CallOutcome> {
    const seen = this.#versions();
    const judged = await this.judge(call);
    const { entry, operation, decision } = judged;
    const wanted = { operation, decision, name: entry.boundName, toolHash: entry.hash, given: call.arguments };
    // Nobody is asked about a call that cannot be sent; one that is denied learns nothing about its arguments.
    const args = decision.kind === "deny" ? {} : checked(entry, operation.arguments);
    const answer = this.#permits.passesFreely(wanted) ? undefined : await this.#permits.pass(wanted, call);
    if (answer !== undefined) {
      // While a person was asked, policy, tool and arguments may have changed: decided again, with the answer.
      const { approval, edited = call.arguments } = answer;
      return this.#run({ ...call, ask: undefined, approval, arguments: edited }, startedAt, looks);
    }
    let raw: RawCallResult;
    try {
      raw = await this.#send(call, judged, args, seen);
    } catch (error) {
      if (error !== STALE) throw error;
      if (looks > 0) return this.#run(call, startedAt, looks - 1);
      throw new McpNotFoundError(`Tool "${entry.toolName}" keeps changing.`, { serverName: entry.serverName });
    }
    const { settings: server } = this.#pool.connection(entry.serverName);
    const outcome = await this.#outcome(server, entry.toolName, raw, performance.now() - startedAt);
    const { afterToolCall } = this.#settings.callbacks;
    const final = afterToolCall === undefined ? outcome : await replaceResult(afterToolCall, outcome, args, call, this.#events);
    return call.approval?.type === "edit" ? { ...final, content: `${editNotice(args)}\n${final.content}` } : final;
  }

  async #send(call: GateCall, judged: JudgedCall, args: Record<string, unknown>, seen: string): Promise<RawCallResult> {
    const { serverName, toolName, annotations } = judged.entry;
    const connection = this.#pool.connection(serverName);
    const { toolTimeoutMs: timeoutMs, maxToolTimeoutMs: maxTimeoutMs, policy, isIdempotent } = connection.settings;
    if (judged.headers !== undefined) this.#warnAboutHeaders(connection, toolName);
    return connection.send({
      method: "tools/call",
      params: { name: toolName, arguments: args },
      subject: `the call of "${toolName}"`,
      toolName,
      timeoutMs,
      maxTimeoutMs,
      headers: judged.headers,
      signal: call.signal,
      isRepeatable: isIdempotent(toolName) || (policy.trustAnnotations && saysRepeatable(annotations)),
      onProgress: (progress) => this.#onProgress(call, args, progress),
      beforeSend: () => {
        if (seen !== this.#versions() && this.#isStale(judged, call)) throw STALE;
      },
    });
  }

  #onProgress(call: GateCall, args: unknown, { progress, total, message }: Progress): void {
    const { serverName, toolName, toolCallId = "", origin, config } = call;
    const report = { serverName, toolName, toolCallId, progress, total, message };
    this.#events.emit("progress", { ...origin, ...report });
    void tellRun(config, { type: "mcp_progress", ...report });
    tellProgress(this.#settings.callbacks, { progress, total, message }, { serverName, toolName, args }, this.#events);
  }

  /** Changes with anything that may change a decision: the policy, accepted tools, the catalog. */
  #versions(): string {
    return `${this.#permits.version}/${this.#catalog.version}`;
  }

  /** True when a decided call is no longer the one that would run. */
  #isStale({ entry, operation, decision }: JudgedCall, call: GateCall): boolean {
    if (this.#catalog.toolOf(entry.serverName, entry.toolName)?.hash !== entry.hash) return true;
    return moreRestrictive(decision, this.#permits.decide(operation, call)) !== decision;
  }

  /** The tool, when it need not be waited for. */
  #known({ serverName, toolName }: GateCall): ToolEntry | undefined {
    return this.#catalog.server(serverName)?.isRemembered === false ? this.#catalog.toolOf(serverName, toolName) : undefined;
  }

  async #lookUp(call: GateCall): Promise<ToolEntry> {
    const { serverName, toolName, signal } = call;
    const connection = this.#pool.connection(serverName);
    // A server that is opened on demand has no entries yet, or remembered ones; any other that is not there says why.
    if (this.#catalog.server(serverName)?.isRemembered !== false) await rejectOnAbort(connection.peer(), signal);
    const entry = this.#catalog.toolOf(serverName, toolName);
    if (entry !== undefined) return entry;
    if (this.#permits.isWithheld(serverName, toolName)) {
      const message = `Tool "${toolName}" of server "${serverName}" is withheld: it changed since it was first seen. hub.toolChanges() shows it, hub.acceptTools("${serverName}", ["${toolName}"]) accepts it.`;
      throw new McpNotFoundError(message, { serverName, toolName });
    }
    // Only tools that the caller may know are named.
    const tools = this.#catalog.server(serverName)?.tools ?? [];
    const names = tools
      .filter((other) => !this.#permits.decide(callOf(other, undefined), call).isHidden)
      .map((tool) => tool.toolName);
    const shown = names.slice(0, 20).join(", ") + (names.length > 20 ? ", …" : "");
    const list = names.length === 0 ? "" : ` It has ${names.length}: ${shown}.`;
    throw new McpNotFoundError(`Server "${serverName}" has no tool "${toolName}".${list}`, { serverName, toolName });
  }

  /** The result for the model; one that is too large goes to the result store whole. */
  async #outcome(server: ServerSettings, toolName: string, raw: RawCallResult, durationMs: number): Promise<CallOutcome> {
    const { resultStore, envelope, budgets } = this.#settings;
    const { serverName, maxResultChars } = server;
    const form = { envelope, maxArtifactChars: budgets.maxArtifactChars, maxResultChars };
    const storeKey = resultStore === undefined ? undefined : `mcp-result:${randomUUID()}`;
    const outcome = toOutcome(serverName, toolName, raw, durationMs, { ...form, storeKey });
    const usedKey = outcome.artifact.truncated?.storeKey;
    if (resultStore === undefined || usedKey === undefined) return outcome;
    try {
      await rejectAfter(resultStore.mset([[usedKey, { serverName, toolName, ...raw }]]), STORE_WAIT_MS, "resultStore");
      return outcome;
    } catch (error) {
      this.#events.warn("RESULT_NOT_STORED", `A result of "${toolName}" could not be stored: ${messageOf(error)}`, serverName);
      return toOutcome(serverName, toolName, raw, durationMs, form);
    }
  }

  #report(call: GateCall, startedAt: number, status: "success" | "error", chars: number): void {
    if (!this.#events.has("call")) return;
    const { serverName, toolName, toolCallId, origin } = call;
    const latencyMs = performance.now() - startedAt;
    this.#events.emit("call", { ...origin, serverName, toolName, toolCallId, latencyMs, status, chars });
  }

  #warnAboutHeaders({ settings: { serverName, transport } }: Connection, toolName: string): void {
    if (transport?.kind === "http" || transport?.kind === "sse") return;
    const message = `beforeToolCall gave headers for "${toolName}"; they have no effect, for the server is not reached over HTTP by this hub.`;
    this.#events.warn("CALLBACK_FAILED", message, serverName);
  }
}

/** Whether the server's hints say that a tool may run twice. */
function saysRepeatable(annotations: ToolEntry["annotations"]): boolean {
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

/** Tells the model that its arguments are not those that ran. */
function editNotice(sent: Readonly<Record<string, unknown>>): string {
  return `[A person changed the arguments of this call. It ran with: ${cut(JSON.stringify(sent), MAX_NOTICE_CHARS)}]`;
}
