import { randomUUID } from "node:crypto";

import type { RunnableConfig } from "@langchain/core/runnables";
import type { ProgressNotification } from "@modelcontextprotocol/sdk/types.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";

import { checkArguments, describeParameters } from "../catalog/checkArguments.js";
import type { Catalog } from "../catalog/catalog.js";
import { withinMs } from "../catalog/withinMs.js";
import { withOwnKeys } from "../catalog/legalKeys.js";
import { repairArguments } from "../catalog/repairArguments.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { AdapterCallbacks, HubSettings, ServerSettings } from "../config/settings.js";
import type { Connection } from "../connect/connection.js";
import { isUnauthorized, rejectOnAbort } from "../connect/openManaged.js";
import type { Session } from "../connect/session.js";
import {
  McpAuthRequiredError,
  McpConnectionError,
  McpMiddlewareError,
  McpNotFoundError,
  McpProtocolError,
  messageOf,
} from "../errors.js";
import type { HubEvents, RunOrigin } from "../events.js";
import type { Decide } from "../policy/decide.js";
import { replaceResult, stateOf } from "./adapterHooks.js";
import { toOutcome, type CallOutcome, type RawCallResult } from "./result.js";

/** A call that someone wants to make. */
export interface CallRequest {
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  /** As the model sent them. */
  readonly arguments: unknown;
  readonly toolCallId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly origin?: RunOrigin | undefined;
  /** Run configuration, for the adapter's hooks. */
  readonly config?: RunnableConfig | undefined;
}

/** What the gate is made of. */
export interface GateParts {
  readonly settings: HubSettings;
  readonly catalog: Catalog;
  readonly connectionOf: (serverName: string) => Connection | undefined;
  readonly decide: Decide;
  readonly events: HubEvents;
}

const STORE_WAIT_MS = 10_000;

/* Tolerant on purpose: what is in it is read block by block. */
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

  async #run(request: CallRequest, startedAt: number): Promise<CallOutcome> {
    const { serverName, toolName } = request;
    const { settings, events } = this.#parts;
    const server = settings.servers.get(serverName);
    const connection = this.#parts.connectionOf(serverName);
    if (server === undefined || connection === undefined) throw this.#unknownServer(serverName);
    // A server that is opened on demand has no entries yet; any other that is not there says why.
    if (this.#parts.catalog.server(serverName) === undefined) await rejectOnAbort(connection.session(), request.signal);
    const entry = this.#parts.catalog.toolOf(serverName, toolName);
    if (entry === undefined) throw this.#unknownTool(serverName, toolName);

    const sent = await this.#prepare(request, entry);
    const raw = await this.#send(connection, server, entry, sent, request);
    const outcome = await this.#outcome(server, toolName, raw, performance.now() - startedAt);
    const { afterToolCall } = settings.callbacks;
    return afterToolCall === undefined ? outcome : replaceResult(afterToolCall, outcome, sent, request, events);
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

  /** Arguments as they will be sent: repaired, changed by the adapter's hook, decided, checked. */
  async #prepare(request: CallRequest, entry: ToolEntry): Promise<Record<string, unknown>> {
    let args = withOwnKeys(entry.inputSchema, repairArguments(entry.inputSchema, request.arguments));
    if (args !== request.arguments) args = repairArguments(entry.inputSchema, args);
    this.#decide(entry, args);
    const { beforeToolCall } = this.#parts.settings.callbacks;
    if (beforeToolCall !== undefined) {
      const changed = await callBefore(beforeToolCall, entry, args, request);
      if (changed !== undefined) {
        args = repairArguments(entry.inputSchema, changed);
        this.#decide(entry, args);
      }
    }
    const problems = checkArguments(entry.inputSchema, args, entry.hash);
    if (problems.length > 0 || typeof args !== "object" || args === null || Array.isArray(args)) {
      const what = problems.length > 0 ? problems.join("; ") : "they are not an object";
      throw new McpProtocolError(
        "INVALID_ARGUMENTS",
        `The arguments of ${entry.boundName} do not fit: ${what}. Expected: ${describeParameters(entry.inputSchema)}.`,
        { serverName: entry.serverName, toolName: entry.toolName, rpcCode: ErrorCode.InvalidParams },
      );
    }
    return args as Record<string, unknown>;
  }

  #decide({ serverName, toolName }: ToolEntry, args: unknown): void {
    const decision = this.#parts.decide({ kind: "call", serverName, toolName, arguments: args });
    if (decision.kind === "deny") throw this.#unknownTool(serverName, toolName);
  }

  async #send(
    connection: Connection,
    server: ServerSettings,
    { serverName, toolName }: ToolEntry,
    args: Record<string, unknown>,
    { toolCallId, signal, origin }: CallRequest,
  ): Promise<RawCallResult> {
    const { events, settings } = this.#parts;
    let session: Session | undefined;
    // The SDK leaves its listener on the signal it is given; the caller's may live long.
    const linked = linkSignal(signal);
    try {
      return await connection.run(signal, (open) => {
        session = open;
        return open.client.request({ method: "tools/call", params: { name: toolName, arguments: args } }, callResultSchema, {
          ...(linked === undefined ? {} : { signal: linked.signal }),
          timeout: server.toolTimeoutMs,
          maxTotalTimeout: server.maxToolTimeoutMs,
          resetTimeoutOnProgress: true,
          onprogress: (progress) => {
            events.emit("progress", { ...origin, serverName, toolName, toolCallId, ...progress });
            tellProgress(settings.callbacks, progress, { serverName, toolName, args }, events);
          },
        });
      });
    } catch (cause) {
      if (signal?.aborted === true) throw signal.reason;
      if (session !== undefined && isTransportFailure(cause)) connection.reportFailure(session, cause);
      throw callError(cause, server, toolName, session);
    } finally {
      linked?.unlink();
    }
  }

  #unknownServer(serverName: string): McpNotFoundError {
    const known = [...this.#parts.settings.servers.keys()].join(", ");
    return new McpNotFoundError(`There is no server "${serverName}". Known servers: ${known}.`, { serverName });
  }

  #unknownTool(serverName: string, toolName: string): McpNotFoundError {
    const tools = this.#parts.catalog.server(serverName)?.tools ?? [];
    const known = tools.slice(0, 20).map((tool) => tool.toolName);
    return new McpNotFoundError(
      `Server "${serverName}" has no tool "${toolName}". It has ${tools.length}: ${known.join(", ")}${tools.length > known.length ? ", …" : ""}.`,
      { serverName, toolName },
    );
  }
}

async function callBefore(
  hook: NonNullable<AdapterCallbacks["beforeToolCall"]>,
  { serverName, toolName }: ToolEntry,
  args: unknown,
  { config }: CallRequest,
): Promise<unknown> {
  const call = hook as (request: unknown, state: unknown, config: unknown) => unknown;
  const answer = (await call({ serverName, name: toolName, args: structuredClone(args) }, stateOf(config), config ?? {})) as
    { readonly args?: unknown } | undefined;
  return answer?.args;
}

function tellProgress(
  { onProgress }: AdapterCallbacks,
  progress: Omit<ProgressNotification["params"], "progressToken">,
  { serverName, toolName, args }: { readonly serverName: string; readonly toolName: string; readonly args: unknown },
  events: HubEvents,
): void {
  const callback = onProgress as ((progress: unknown, source: unknown) => unknown) | undefined;
  if (callback === undefined) return;
  events.guard("onProgress", serverName, () => callback(progress, { type: "tool", name: toolName, args, server: serverName }));
}

/** What a failed request means to the caller. */
function callError(cause: unknown, server: ServerSettings, toolName: string, session: Session | undefined): McpMiddlewareError {
  if (McpMiddlewareError.isInstance(cause)) return cause;
  const { serverName, toolTimeoutMs, maxToolTimeoutMs } = server;
  const details = { serverName, toolName, cause };
  const mask = session?.mask ?? ((text: string) => text);
  const ended = session?.endReason();
  if (isUnauthorized(cause)) {
    return new McpAuthRequiredError(`Server "${serverName}" refused the call of "${toolName}" for want of credentials.`, details);
  }
  if (isRpcError(cause)) {
    if (isOwnTimeout(cause)) {
      const hard = (cause.data as { maxTotalTimeout?: unknown }).maxTotalTimeout !== undefined;
      return new McpConnectionError(
        "REQUEST_TIMEOUT",
        hard
          ? `"${toolName}" on server "${serverName}" did not end within ${maxToolTimeoutMs} ms. Raise maxToolTimeoutMs if it may take longer.`
          : `"${toolName}" on server "${serverName}" did not answer within ${toolTimeoutMs} ms. Raise toolTimeoutMs if it may take longer.`,
        details,
      );
    }
    if (ended === undefined) {
      const serverText = mask(cause.message);
      const message = `Server "${serverName}" refused the call of "${toolName}": ${serverText}`;
      return new McpProtocolError("SERVER_ERROR", message, { ...details, rpcCode: cause.code, serverText });
    }
  }
  return new McpConnectionError(
    ended === undefined ? "CONNECT_FAILED" : "SESSION_LOST",
    mask(`The call of "${toolName}" on server "${serverName}" was not answered: ${ended ?? messageOf(cause)}.`),
    details,
  );
}

/** A signal that aborts with another one, until it is unlinked. */
function linkSignal(signal: AbortSignal | undefined): { readonly signal: AbortSignal; readonly unlink: () => void } | undefined {
  if (signal === undefined) return undefined;
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return { signal: controller.signal, unlink: () => signal.removeEventListener("abort", onAbort) };
}

/** True for what says that the connection is gone, and not for what a server answered or a timeout. */
function isTransportFailure(cause: unknown): boolean {
  return !isRpcError(cause) && !isUnauthorized(cause) && !McpMiddlewareError.isInstance(cause);
}

/** A JSON-RPC error, also one of another copy of the SDK, which a wrapped client may bring. */
function isRpcError(error: unknown): error is McpError {
  if (error instanceof McpError) return true;
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "number" && code <= -32_000;
}

/** The SDK's own timeouts share their code with what servers send; only they carry the limit. */
function isOwnTimeout({ code, data }: McpError): boolean {
  if (code !== Number(ErrorCode.RequestTimeout) || typeof data !== "object" || data === null) return false;
  return "timeout" in data || "maxTotalTimeout" in data;
}
