import { randomUUID } from "node:crypto";

import type { RunnableConfig } from "@langchain/core/runnables";
import type { ProgressCallback } from "@modelcontextprotocol/sdk/shared/protocol.js";
import * as z from "zod";

import type { Catalog } from "../catalog/catalog.js";
import { cut } from "../text/clean.js";
import { rejectAfter } from "../text/rejectAfter.js";
import { repairArguments } from "../catalog/schema/repairArguments.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { HubSettings, ServerSettings } from "../config/settings.js";
import { withCallHeaders } from "../connect/http/callHeaders.js";
import type { Connection } from "../connect/connection.js";
import { rejectOnAbort } from "../text/abort.js";
import { McpNotFoundError, messageOf } from "../errors.js";
import type { HubEvents } from "../events.js";
import type { Operation } from "../policy/operation.js";
import { moreRestrictive, type Decision } from "../policy/policy.js";
import { callBefore, replaceResult, tellProgress } from "./adapterHooks.js";
import { callOf, checked, repaired } from "./callArguments.js";
import type { FailedRequest } from "./callError.js";
import type { AskedNow, Caller, Permits } from "./permits.js";
import { tellRun } from "./runStream.js";
import { send } from "./send.js";
import { serverOf, type ServersParts } from "./serverOf.js";
import { toOutcome, type CallOutcome, type RawCallResult } from "./result.js";

/** A call that someone wants to make. */
export interface CallRequest extends Caller {
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  /** As the model sent them. */
  readonly arguments: unknown;
  /** Run configuration, for the adapter's hooks. */
  readonly config?: RunnableConfig | undefined;
}

/** A call with what would be sent and what the policy says of that. */
export interface JudgedCall {
  readonly entry: ToolEntry;
  /** Repaired, and changed by the adapter's hook. */
  readonly operation: Extract<Operation, { kind: "call" }>;
  readonly decision: Decision;
  /** HTTP headers of this call alone. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** What the gate is made of. */
export interface GateParts extends ServersParts {
  readonly settings: HubSettings;
  readonly catalog: Catalog;
  readonly permits: Permits;
  readonly events: HubEvents;
}

type Progress = Parameters<ProgressCallback>[0];

/** What a call needs besides its arguments. */
interface CallExtras {
  /** HTTP headers of this call alone. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Asked when it is about to be sent. */
  readonly isStale: () => boolean;
}

/** In place of a result: nothing was sent. */
const STALE = Symbol("stale");
/** So often a call is looked at again because something changed while it waited. */
const MAX_LOOKS = 3;
const STORE_WAIT_MS = 10_000;
const MAX_NOTICE_CHARS = 1_000;

/* Tolerant on purpose: what is in it is read block by block. */
const callResultSchema = z.custom<RawCallResult>((value) => typeof value === "object" && value !== null);

/**
 * The one way to a server for tool calls.
 *
 * Look up → repair arguments → policy, which sees exactly what would be sent → check → live session → call → result →
 * events. Whatever face a call comes from, it comes through here.
 */
export class Gate {
  readonly #parts: GateParts;

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  /**
   * Runs a call.
   *
   * @throws {McpMiddlewareError} when the call could not be made or was not answered. A tool that answers with
   * `isError` is no error here: the outcome says so.
   * @throws the abort reason when the signal aborts.
   */
  async call(request: CallRequest): Promise<CallOutcome> {
    const { serverName, toolName, toolCallId, origin } = request;
    const startedAt = performance.now();
    const { events } = this.#parts;
    const report = (status: "success" | "error", chars: number): void => {
      if (!events.has("call")) return;
      events.emit("call", {
        ...origin,
        serverName,
        toolName,
        toolCallId,
        latencyMs: performance.now() - startedAt,
        status,
        chars,
      });
    };
    try {
      const outcome = await this.#run(request, startedAt);
      report(outcome.status, outcome.content.length);
      return outcome;
    } catch (error) {
      report("error", 0);
      throw error;
    }
  }

  /**
   * What would be sent for a call, and what the policy says of it.
   *
   * The adapter's `beforeToolCall` is run: what it makes of the arguments is what would be sent.
   *
   * @throws {McpMiddlewareError} when the server or the tool is not there.
   */
  async judge(request: CallRequest): Promise<JudgedCall> {
    const entry = this.#known(request) ?? (await this.#lookUp(request));
    const { permits, settings } = this.#parts;
    let operation = callOf(entry, repaired(entry, request.arguments));
    let decision = permits.decide(operation, request);
    const { beforeToolCall } = settings.callbacks;
    if (decision.kind === "deny" || beforeToolCall === undefined) return { entry, operation, decision };
    const { args, headers } = await callBefore(beforeToolCall, entry, operation.arguments, request);
    if (args === undefined) return { entry, operation, decision, headers };
    operation = callOf(entry, repairArguments(entry.inputSchema, args));
    decision = moreRestrictive(decision, permits.decide(operation, request));
    return { entry, operation, decision, headers };
  }

  async #run(request: CallRequest, startedAt: number, looks = MAX_LOOKS): Promise<CallOutcome> {
    const { settings, events, permits, catalog } = this.#parts;
    const { policy, version } = permits;
    const listed = catalog.version;
    const { entry, operation, decision, headers } = await this.judge(request);
    const wanted = { operation, decision, name: entry.boundName, toolHash: entry.hash, given: request.arguments };
    // Nobody is asked about a call that cannot be sent; one that is denied learns nothing about its arguments.
    const sent = decision.kind === "deny" ? {} : checked(entry, operation.arguments);
    const answer = permits.passesFreely(wanted) ? undefined : await permits.pass(wanted, request);
    // While a person was asked, policy, tool and arguments may have changed.
    if (answer !== undefined) return this.#run(answered(request, answer), startedAt);

    const { server, connection } = serverOf(this.#parts, entry.serverName);
    const isStale = (): boolean =>
      (listed !== catalog.version || policy !== permits.policy || version !== permits.version) &&
      this.#isStale(entry, operation, decision, request);
    const raw = await this.#call(connection, server, entry, sent, request, { headers, isStale });
    // While it waited for its turn, or for a session, tool or policy changed: it is looked at again as it is now.
    if (raw === STALE) {
      if (looks > 0) return this.#run(request, startedAt, looks - 1);
      throw new McpNotFoundError(`Tool "${entry.toolName}" keeps changing.`, { serverName: entry.serverName });
    }
    const outcome = await this.#outcome(server, entry.toolName, raw, performance.now() - startedAt);
    const { afterToolCall } = settings.callbacks;
    const final = afterToolCall === undefined ? outcome : await replaceResult(afterToolCall, outcome, sent, request, events);
    return request.approval?.type === "edit" ? { ...final, content: `${editNotice(sent)}\n${final.content}` } : final;
  }

  /** The tool, when it need not be waited for. */
  #known({ serverName, toolName }: CallRequest): ToolEntry | undefined {
    const { catalog } = this.#parts;
    return catalog.server(serverName)?.isRemembered === false ? catalog.toolOf(serverName, toolName) : undefined;
  }

  async #lookUp(request: CallRequest): Promise<ToolEntry> {
    const { serverName, toolName, signal } = request;
    const { connection } = serverOf(this.#parts, serverName);
    const { catalog, permits } = this.#parts;
    // A server that is opened on demand has no entries yet, or remembered ones; any other that is not there says why.
    if (catalog.server(serverName)?.isRemembered !== false) await rejectOnAbort(connection.session(), signal);
    const entry = catalog.toolOf(serverName, toolName);
    if (entry !== undefined) return entry;
    // Which tools there are is told to nobody who may not know.
    const isKnown = (other: ToolEntry): boolean => !permits.decide(callOf(other, undefined), request).isHidden;
    throw this.#unknownTool(serverName, toolName, (catalog.server(serverName)?.tools ?? []).filter(isKnown));
  }

  /** The result for the model; one that is too large goes to the result store whole. */
  async #outcome(server: ServerSettings, toolName: string, raw: RawCallResult, durationMs: number): Promise<CallOutcome> {
    const { settings, events } = this.#parts;
    const { resultStore, envelope, maxArtifactChars } = settings;
    const { serverName, maxResultChars } = server;
    const make = (storeKey: string | undefined): CallOutcome =>
      toOutcome(serverName, toolName, raw, durationMs, { envelope, maxArtifactChars, maxResultChars, storeKey });
    const outcome = make(resultStore === undefined ? undefined : `mcp-result:${randomUUID()}`);
    const storeKey = outcome.artifact.truncated?.storeKey;
    if (resultStore === undefined || storeKey === undefined) return outcome;
    try {
      await rejectAfter(resultStore.mset([[storeKey, { serverName, toolName, ...raw }]]), STORE_WAIT_MS, "resultStore");
      return outcome;
    } catch (error) {
      events.warn("RESULT_NOT_STORED", `A result of "${toolName}" could not be stored: ${messageOf(error)}`, serverName);
      return make(undefined);
    }
  }

  async #call(
    connection: Connection,
    server: ServerSettings,
    { serverName, toolName, annotations }: ToolEntry,
    args: Record<string, unknown>,
    { toolCallId = "", signal, origin, config }: CallRequest,
    { headers, isStale }: CallExtras,
  ): Promise<RawCallResult | typeof STALE> {
    const { events, settings } = this.#parts;
    if (headers !== undefined && !takesHeaders(server)) {
      const message = `beforeToolCall gave headers for "${toolName}"; they have no effect, for the server is not reached over HTTP by this hub.`;
      events.warn("CALLBACK_FAILED", message, serverName);
    }
    const { toolTimeoutMs: timeout, maxToolTimeoutMs: maxTotalTimeout } = server;
    const failed: FailedRequest = {
      serverName,
      toolName,
      subject: `the call of "${toolName}"`,
      timeout: { ms: timeout, option: "toolTimeoutMs" },
      maxTimeout: { ms: maxTotalTimeout, option: "maxToolTimeoutMs" },
    };
    const isRepeatable = server.isIdempotent(toolName) || (server.govern.trustAnnotations && saysRepeatable(annotations));
    const onprogress = (given: Progress): void => {
      // What else a server puts beside these stays out.
      const { progress, total, message } = given;
      const report = { serverName, toolName, toolCallId, progress, total, message };
      events.emit("progress", { ...origin, ...report });
      void tellRun(config, { type: "mcp_progress", ...report });
      tellProgress(settings.callbacks, given, { serverName, toolName, args }, events);
    };
    const params = { name: toolName, arguments: args };
    return send(
      connection,
      failed,
      isRepeatable,
      signal,
      ({ client, maskContent }, linked): Promise<RawCallResult | typeof STALE> => {
        if (isStale()) return Promise.resolve(STALE);
        const options = {
          timeout,
          maxTotalTimeout,
          resetTimeoutOnProgress: true,
          onprogress: (given: Progress) => onprogress(maskContent?.(given) ?? given),
        };
        const request = (): Promise<RawCallResult> =>
          client.request({ method: "tools/call", params }, callResultSchema, {
            ...options,
            ...(linked === undefined ? {} : { signal: linked }),
          });
        return withCallHeaders(headers, request);
      },
    );
  }

  /** True when what was decided about is no longer what would run. */
  #isStale(entry: ToolEntry, operation: JudgedCall["operation"], decision: Decision, request: CallRequest): boolean {
    const { catalog, permits } = this.#parts;
    if (catalog.toolOf(entry.serverName, entry.toolName)?.hash !== entry.hash) return true;
    const now = permits.decide(operation, request);
    return moreRestrictive(decision, now) !== decision;
  }

  #unknownTool(serverName: string, toolName: string, known: readonly ToolEntry[]): McpNotFoundError {
    if (this.#parts.permits.isWithheld(serverName, toolName)) {
      const message = `Tool "${toolName}" of server "${serverName}" is withheld: it is not what it was when it was seen first. hub.toolChanges() shows the difference, hub.acceptTools("${serverName}", ["${toolName}"]) accepts it.`;
      return new McpNotFoundError(message, { serverName, toolName });
    }
    const names = known.slice(0, 20).map((tool) => tool.toolName);
    const list =
      names.length === 0 ? "" : ` It has ${known.length}: ${names.join(", ")}${known.length > names.length ? ", …" : ""}.`;
    return new McpNotFoundError(`Server "${serverName}" has no tool "${toolName}".${list}`, { serverName, toolName });
  }
}

/** True for a server whose requests are made over HTTP by this hub. */
function takesHeaders({ transport }: ServerSettings): boolean {
  return transport?.kind === "http" || transport?.kind === "sse";
}

/** What a server says of a tool that may run twice. */
function saysRepeatable(annotations: ToolEntry["annotations"]): boolean {
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

/** The request with what a person said who was asked about it just now. */
function answered(request: CallRequest, { approval, edited }: AskedNow): CallRequest {
  return { ...request, onAsk: undefined, approval, ...(edited === undefined ? {} : { arguments: edited }) };
}

/** Tells the model that its arguments are not what ran. */
function editNotice(sent: Readonly<Record<string, unknown>>): string {
  return `[A person changed the arguments of this call. It ran with: ${cut(JSON.stringify(sent), MAX_NOTICE_CHARS)}]`;
}
