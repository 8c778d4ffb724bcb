import { randomUUID } from "node:crypto";

import type { RunnableConfig } from "@langchain/core/runnables";
import * as z from "zod";

import type { Catalog } from "../catalog/catalog.js";
import { cut } from "../catalog/text.js";
import { withinMs } from "../catalog/withinMs.js";
import { repairArguments } from "../catalog/repairArguments.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { HubSettings, ServerSettings } from "../config/settings.js";
import type { Connection } from "../connect/connection.js";
import type { RawList } from "../connect/listPages.js";
import type { SideKey } from "../connect/sideLists.js";
import { rejectOnAbort } from "../connect/abort.js";
import type { Session } from "../connect/session.js";
import { McpNotFoundError, messageOf } from "../errors.js";
import type { HubEvents } from "../events.js";
import { permissionOf, type Operation } from "../policy/operation.js";
import { moreRestrictive, type Decision } from "../policy/policy.js";
import { callBefore, replaceResult, tellProgress } from "./adapterHooks.js";
import { callOf, checked, repaired } from "./callArguments.js";
import { callError, type FailedRequest } from "./callError.js";
import type { AskedNow, Asker, Permits } from "./permits.js";
import { send } from "./send.js";
import { toOutcome, type CallOutcome, type RawCallResult } from "./result.js";

/** A call that someone wants to make. */
export interface CallRequest extends Asker {
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
}

/** What the gate is made of. */
export interface GateParts {
  readonly settings: HubSettings;
  readonly catalog: Catalog;
  readonly connectionOf: (serverName: string) => Connection | undefined;
  readonly permits: Permits;
  readonly events: HubEvents;
}

const STORE_WAIT_MS = 10_000;
const MAX_NOTICE_CHARS = 1_000;

/* Tolerant on purpose: what is in them is read block by block. */
const anyResult = z.custom<Readonly<Record<string, unknown>>>((value) => typeof value === "object" && value !== null);
const callResultSchema = z.custom<RawCallResult>((value) => typeof value === "object" && value !== null);

/**
 * The one way to a server.
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
    const changed = await callBefore(beforeToolCall, entry, operation.arguments, request);
    if (changed === undefined) return { entry, operation, decision };
    operation = callOf(entry, repairArguments(entry.inputSchema, changed));
    decision = moreRestrictive(decision, permits.decide(operation, request));
    return { entry, operation, decision };
  }

  /**
   * Gets a prompt, as the server sends it.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or it was not answered.
   */
  async getPrompt(
    request: Asker & {
      readonly serverName: string;
      readonly promptName: string;
      readonly arguments: Readonly<Record<string, string>>;
    },
  ): Promise<Readonly<Record<string, unknown>>> {
    const { serverName, promptName } = request;
    const args = { ...request.arguments };
    const operation: Operation = { kind: "invoke", serverName, promptName, arguments: args };
    return this.#exchange(operation, `prompt "${promptName}"`, request, (session, options) =>
      session.client.request({ method: "prompts/get", params: { name: promptName, arguments: args } }, anyResult, options),
    );
  }

  /**
   * Reads a resource, as the server sends it.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or it was not answered.
   */
  async readResource(
    request: Asker & { readonly serverName: string; readonly uri: string },
  ): Promise<Readonly<Record<string, unknown>>> {
    const { serverName, uri } = request;
    return this.#exchange({ kind: "read", serverName, uri }, `resource "${uri}"`, request, (session, options) =>
      session.client.request({ method: "resources/read", params: { uri } }, anyResult, options),
    );
  }

  /**
   * Lists prompts, resources or resource templates, unread.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or it was not answered.
   */
  async list(request: Asker & { readonly serverName: string; readonly key: SideKey }): Promise<readonly unknown[]> {
    const { serverName, key } = request;
    const { server, connection } = this.#server(serverName);
    await this.#permit({ kind: "list", serverName }, request);
    let list: RawList;
    try {
      list = await rejectOnAbort(connection.lists.get(key), request.signal);
    } catch (cause) {
      request.signal?.throwIfAborted();
      throw callError(cause, failedRequest(server, `the list of ${key}`), undefined);
    }
    const { elements, cutBecause } = list;
    if (cutBecause !== undefined) {
      const message = `The list of ${key} of server "${serverName}" was ended early: ${cutBecause}.`;
      this.#parts.events.warn("LIST_CUT", message, serverName);
    }
    return elements;
  }

  /** Everything but calls: policy → live session → request → answer. */
  async #exchange<Result>(
    operation: Exclude<Operation, { kind: "call" }>,
    subject: string,
    request: Asker,
    exchange: (session: Session, options: { readonly signal?: AbortSignal; readonly timeout: number }) => Promise<Result>,
  ): Promise<Result> {
    const { server, connection } = this.#server(operation.serverName);
    await this.#permit(operation, request);
    // Getting and reading change nothing.
    return send(connection, failedRequest(server, subject), true, request.signal, (session, signal) =>
      exchange(session, { ...(signal === undefined ? {} : { signal }), timeout: server.requestTimeoutMs }),
    );
  }

  /** Asks the policy, and a person where it says so. */
  async #permit(operation: Exclude<Operation, { kind: "call" }>, request: Asker): Promise<void> {
    const { permits } = this.#parts;
    const name = permissionOf(operation);
    const answer = await permits.pass({ operation, decision: permits.decide(operation, request), name }, request);
    if (answer !== undefined) {
      // The policy may have changed while a person was asked.
      const decision = permits.decide(operation, request);
      await permits.pass({ operation, decision, name }, { ...request, onAsk: undefined, approval: answer.approval });
    }
  }

  async #run(request: CallRequest, startedAt: number): Promise<CallOutcome> {
    const { settings, events, permits } = this.#parts;
    const { entry, operation, decision } = await this.judge(request);
    const wanted = { operation, decision, name: entry.boundName, toolHash: entry.hash, given: request.arguments };
    // Nobody is asked about a call that cannot be sent; one that is denied learns nothing about its arguments.
    const sent = decision.kind === "deny" ? {} : checked(entry, operation.arguments);
    const answer = permits.passesFreely(wanted) ? undefined : await permits.pass(wanted, request);
    // While a person was asked, policy, tool and arguments may have changed.
    if (answer !== undefined) return this.#run(answered(request, answer), startedAt);

    const { server, connection } = this.#server(entry.serverName);
    const raw = await this.#call(connection, server, entry, sent, request);
    const outcome = await this.#outcome(server, entry.toolName, raw, performance.now() - startedAt);
    const { afterToolCall } = settings.callbacks;
    const final = afterToolCall === undefined ? outcome : await replaceResult(afterToolCall, outcome, sent, request, events);
    return request.approval?.type === "edit" ? { ...final, content: `${editNotice(sent)}\n${final.content}` } : final;
  }

  #server(serverName: string): { readonly server: ServerSettings; readonly connection: Connection } {
    const server = this.#parts.settings.servers.get(serverName);
    const connection = this.#parts.connectionOf(serverName);
    if (server === undefined || connection === undefined) throw this.#unknownServer(serverName);
    return { server, connection };
  }

  /** The tool, when it need not be waited for. */
  #known({ serverName, toolName }: CallRequest): ToolEntry | undefined {
    const { catalog } = this.#parts;
    return catalog.server(serverName)?.isRemembered === false ? catalog.toolOf(serverName, toolName) : undefined;
  }

  async #lookUp(request: CallRequest): Promise<ToolEntry> {
    const { serverName, toolName, signal } = request;
    const { connection } = this.#server(serverName);
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
      await withinMs(resultStore.mset([[storeKey, { serverName, toolName, ...raw }]]), STORE_WAIT_MS, "resultStore");
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
    { toolCallId, signal, origin }: CallRequest,
  ): Promise<RawCallResult> {
    const { events, settings } = this.#parts;
    const { toolTimeoutMs: timeout, maxToolTimeoutMs: maxTotalTimeout } = server;
    const failed: FailedRequest = {
      serverName,
      toolName,
      subject: `the call of "${toolName}"`,
      timeout: { ms: timeout, option: "toolTimeoutMs" },
      maxTimeout: { ms: maxTotalTimeout, option: "maxToolTimeoutMs" },
    };
    const isRepeatable = server.isIdempotent(toolName) || (server.govern.trustAnnotations && saysRepeatable(annotations));
    return send(connection, failed, isRepeatable, signal, ({ client }, linked) =>
      client.request({ method: "tools/call", params: { name: toolName, arguments: args } }, callResultSchema, {
        ...(linked === undefined ? {} : { signal: linked }),
        timeout,
        maxTotalTimeout,
        resetTimeoutOnProgress: true,
        onprogress: (progress) => {
          events.emit("progress", { ...origin, serverName, toolName, toolCallId, ...progress });
          tellProgress(settings.callbacks, progress, { serverName, toolName, args }, events);
        },
      }),
    );
  }

  #unknownServer(serverName: string): McpNotFoundError {
    const known = [...this.#parts.settings.servers.keys()].join(", ");
    return new McpNotFoundError(`There is no server "${serverName}". Known servers: ${known}.`, { serverName });
  }

  #unknownTool(serverName: string, toolName: string, known: readonly ToolEntry[]): McpNotFoundError {
    const names = known.slice(0, 20).map((tool) => tool.toolName);
    const list =
      names.length === 0 ? "" : ` It has ${known.length}: ${names.join(", ")}${known.length > names.length ? ", …" : ""}.`;
    return new McpNotFoundError(`Server "${serverName}" has no tool "${toolName}".${list}`, { serverName, toolName });
  }
}

/** How a request besides a call is spoken of when it fails. */
function failedRequest({ serverName, requestTimeoutMs: ms }: ServerSettings, subject: string): FailedRequest {
  return { serverName, subject, timeout: { ms, option: "requestTimeoutMs" } };
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
