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
import { Approvals } from "./approvals.js";
import { callBefore, replaceResult, tellProgress } from "./adapterHooks.js";
import { callOf, checked, repaired } from "./callArguments.js";
import type { Caller } from "./caller.js";
import type { Permits } from "./permits.js";
import { toOutcome, type CallOutcome, type RawCallResult } from "./result.js";
import { tellRun } from "./runStream.js";

export interface GateCall extends Caller {
  readonly serverName: string;
  /** The tool's name on its server. */
  readonly toolName: string;
  /** As the model sent them. */
  readonly arguments: unknown;
}

/** A call as it would be sent, with the decision about it. */
export interface JudgedCall {
  readonly entry: ToolEntry;
  /** Has the arguments after repair and `beforeToolCall`. */
  readonly operation: Extract<Operation, { kind: "call" }>;
  readonly decision: Decision;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Thrown before sending when the tool or the policy changed while the call waited. */
const STALE = Symbol("stale");
/** How often a stale call is decided again. */
const MAX_LOOKS = 3;
const STORE_WAIT_MS = 10_000;
const MAX_NOTICE_CHARS = 1_000;

/**
 * Runs tool calls: look up → repair → policy, on exactly what would be sent → check → send → result
 * → events.
 */
export class Gate {
  readonly #settings: HubSettings;
  readonly #catalog: Catalog;
  readonly #permits: Permits;
  readonly #events: HubEvents;
  readonly #pool: ConnectionPool;
  readonly #approvals: Approvals;

  constructor(
    settings: HubSettings,
    catalog: Catalog,
    permits: Permits,
    events: HubEvents,
    pool: ConnectionPool,
    approvals = new Approvals(undefined),
  ) {
    this.#settings = settings;
    this.#catalog = catalog;
    this.#permits = permits;
    this.#events = events;
    this.#pool = pool;
    this.#approvals = approvals;
  }

  /**
   * Runs a call. A result with `isError` is returned, not thrown.
   * @throws {McpMiddlewareError} when the call could not be sent or was not answered.
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
   * Decides about a call without sending it. Runs `beforeToolCall`, whose arguments replace those
   * of the call.
   * @throws {McpMiddlewareError} when the server or the tool is not available.
   */
  async judge(call: GateCall): Promise<JudgedCall> {
    const entry = this.#known(call) ?? (await this.#lookUp(call));
    const operation = callOf(entry, repaired(entry, call.arguments));
    const decision = this.#permits.decide(operation, call);
    const { beforeToolCall } = this.#settings.callbacks;
    if (decision.kind === "deny" || beforeToolCall === undefined)
      return { entry, operation, decision };
    const { args, headers } = await callBefore(beforeToolCall, entry, operation.arguments, call);
    if (args === undefined) return { entry, operation, decision, headers };
    const changed = callOf(entry, repairArguments(entry.inputSchema, args));
    return {
      entry,
      operation: changed,
      decision: moreRestrictive(decision, this.#permits.decide(changed, call)),
      headers,
    };
  }

  async #run(call: GateCall, startedAt: number, looks: number): Promise<CallOutcome> {
    const seen = this.#versions();
    const judged = await this.judge(call);
    const { entry, operation, decision } = judged;
    const wanted = {
      operation,
      decision,
      name: entry.boundName,
      toolHash: entry.hash,
      given: call.arguments,
    };
    // A call that cannot be sent is refused before a person is asked. A denied call reveals no
    // schema errors.
    const args = decision.kind === "deny" ? {} : checked(entry, operation.arguments);
    const answer = this.#permits.passesFreely(wanted)
      ? undefined
      : await this.#permits.pass(wanted, call);
    if (answer !== undefined) {
      // Decides again with the answer: policy, tool and arguments may have changed meanwhile.
      const { approval, edited = call.arguments } = answer;
      return this.#run({ ...call, ask: undefined, approval, arguments: edited }, startedAt, looks);
    }
    // Once for a call, also when it is decided again.
    if (decision.kind === "ask" && looks === MAX_LOOKS) await this.#approvals.use(call, entry);
    let raw: RawCallResult;
    try {
      raw = await this.#send(call, judged, args, seen);
    } catch (error) {
      if (error !== STALE) throw error;
      if (looks > 0) return this.#run(call, startedAt, looks - 1);
      throw new McpNotFoundError(`Tool "${entry.toolName}" keeps changing.`, {
        serverName: entry.serverName,
      });
    }
    const { settings: server } = this.#pool.connection(entry.serverName);
    const outcome = await this.#outcome(server, entry.toolName, raw, performance.now() - startedAt);
    const { afterToolCall } = this.#settings.callbacks;
    const final =
      afterToolCall === undefined
        ? outcome
        : await replaceResult(afterToolCall, outcome, args, call, this.#events);
    return call.approval?.type === "edit"
      ? { ...final, content: `${editNotice(args)}\n${final.content}` }
      : final;
  }

  async #send(
    call: GateCall,
    judged: JudgedCall,
    args: Record<string, unknown>,
    seen: string,
  ): Promise<RawCallResult> {
    const { serverName, toolName, annotations } = judged.entry;
    const connection = this.#pool.connection(serverName);
    const {
      toolTimeoutMs: timeoutMs,
      maxToolTimeoutMs: maxTimeoutMs,
      policy,
      isIdempotent,
    } = connection.settings;
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
      isRepeatable:
        isIdempotent(toolName) || (policy.trustAnnotations && saysRepeatable(annotations)),
      onProgress: (progress) => this.#onProgress(call, args, progress),
      beforeSend: () => {
        if (seen !== this.#versions() && this.#isStale(judged, call)) throw STALE;
        // Only now is the approved tool surely the one that runs.
        if (call.approval !== undefined) this.#permits.accept(judged.entry);
      },
    });
  }

  #onProgress(call: GateCall, args: unknown, { progress, total, message }: Progress): void {
    const { serverName, toolName, toolCallId = "", origin, config } = call;
    const report = { serverName, toolName, toolCallId, progress, total, message };
    this.#events.emit("progress", { ...origin, ...report });
    void tellRun(config, { type: "mcp_progress", ...report });
    tellProgress(
      this.#settings.callbacks,
      { progress, total, message },
      { serverName, toolName, args },
      this.#events,
    );
  }

  /** A new value means that decisions may differ: policy, accepted tools or catalog changed. */
  #versions(): string {
    return `${this.#permits.version}/${this.#catalog.version}`;
  }

  /** True when the tool changed or the policy became more restrictive. */
  #isStale({ entry, operation, decision }: JudgedCall, call: GateCall): boolean {
    if (this.#catalog.toolOf(entry.serverName, entry.toolName)?.hash !== entry.hash) return true;
    return moreRestrictive(decision, this.#permits.decide(operation, call)) !== decision;
  }

  /** The tool, unless its server has yet to send its tool list. */
  #known({ serverName, toolName }: GateCall): ToolEntry | undefined {
    return this.#catalog.server(serverName)?.isRemembered === false
      ? this.#catalog.toolOf(serverName, toolName)
      : undefined;
  }

  async #lookUp(call: GateCall): Promise<ToolEntry> {
    const { serverName, toolName, signal } = call;
    const connection = this.#pool.connection(serverName);
    // Connects a server that has no tool list yet, or only a remembered one. A failed connection
    // throws its reason.
    if (this.#catalog.server(serverName)?.isRemembered !== false)
      await rejectOnAbort(connection.peer(), signal);
    const entry = this.#catalog.toolOf(serverName, toolName);
    if (entry !== undefined) return entry;
    if (this.#permits.isWithheld(serverName, toolName)) {
      const message = `Tool "${toolName}" of server "${serverName}" is withheld: it changed since it was first seen. hub.toolChanges() shows it, hub.acceptTools("${serverName}", ["${toolName}"]) accepts it.`;
      throw new McpNotFoundError(message, { serverName, toolName });
    }
    const tools = this.#catalog.server(serverName)?.tools ?? [];
    const names = tools
      .filter((other) => !this.#permits.decide(callOf(other, undefined), call).isHidden)
      .map((tool) => tool.toolName);
    const shown = names.slice(0, 20).join(", ") + (names.length > 20 ? ", …" : "");
    const list = names.length === 0 ? "" : ` It has ${names.length}: ${shown}.`;
    throw new McpNotFoundError(`Server "${serverName}" has no tool "${toolName}".${list}`, {
      serverName,
      toolName,
    });
  }

  /** Makes the result for the model. The result store keeps a result that is too large. */
  async #outcome(
    server: ServerSettings,
    toolName: string,
    raw: RawCallResult,
    durationMs: number,
  ): Promise<CallOutcome> {
    const { resultStore, envelope, budgets } = this.#settings;
    const { serverName, maxResultChars } = server;
    const form = { envelope, maxArtifactChars: budgets.maxArtifactChars, maxResultChars };
    const storeKey = resultStore === undefined ? undefined : `mcp-result:${randomUUID()}`;
    const outcome = toOutcome(serverName, toolName, raw, durationMs, { ...form, storeKey });
    const usedKey = outcome.artifact.truncated?.storeKey;
    if (resultStore === undefined || usedKey === undefined) return outcome;
    try {
      await rejectAfter(
        resultStore.mset([[usedKey, { serverName, toolName, ...raw }]]),
        STORE_WAIT_MS,
        "resultStore",
      );
      return outcome;
    } catch (error) {
      this.#events.warn(
        "RESULT_NOT_STORED",
        `A result of "${toolName}" could not be stored: ${messageOf(error)}`,
        serverName,
      );
      return toOutcome(serverName, toolName, raw, durationMs, form);
    }
  }

  #report(call: GateCall, startedAt: number, status: "success" | "error", chars: number): void {
    if (!this.#events.has("call")) return;
    const { serverName, toolName, toolCallId, origin } = call;
    const latencyMs = performance.now() - startedAt;
    this.#events.emit("call", {
      ...origin,
      serverName,
      toolName,
      toolCallId,
      latencyMs,
      status,
      chars,
    });
  }

  #warnAboutHeaders({ settings: { serverName, transport } }: Connection, toolName: string): void {
    if (transport?.kind === "http" || transport?.kind === "sse") return;
    const message = `beforeToolCall gave headers for "${toolName}"; they have no effect, for the server is not reached over HTTP by this hub.`;
    this.#events.warn("CALLBACK_FAILED", message, serverName);
  }
}

function saysRepeatable(annotations: ToolEntry["annotations"]): boolean {
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

function editNotice(sent: Readonly<Record<string, unknown>>): string {
  return `[A person changed the arguments of this call. It ran with: ${cut(JSON.stringify(sent), MAX_NOTICE_CHARS)}]`;
}
