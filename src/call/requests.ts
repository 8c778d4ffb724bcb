import * as z from "zod";

import { rejectOnAbort } from "../text/abort.js";
import type { RawList } from "../connect/lists/listPages.js";
import type { SideKey } from "../connect/lists/sideLists.js";
import type { Session } from "../connect/peer.js";
import type { HubEvents } from "../events.js";
import { permissionOf, type Operation } from "../policy/operation.js";
import { callError, type FailedRequest } from "./callError.js";
import type { Caller, Permits } from "./permits.js";
import { send } from "./send.js";
import { serverOf, type ServersParts } from "./serverOf.js";
import type { ServerSettings } from "../config/settings.js";

/** What {@link Requests} is made of. */
export interface RequestsParts extends ServersParts {
  readonly permits: Permits;
  readonly events: HubEvents;
}

/* Tolerant on purpose: what is in them is read piece by piece. */
const anyResult = z.custom<Readonly<Record<string, unknown>>>((value) => typeof value === "object" && value !== null);

/** The one way to a server for everything but tool calls: policy → live session → request → answer. */
export class Requests {
  readonly #parts: RequestsParts;

  constructor(parts: RequestsParts) {
    this.#parts = parts;
  }

  /**
   * Gets a prompt, as the server sends it.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or it was not answered.
   */
  async getPrompt(
    request: Caller & {
      readonly serverName: string;
      readonly promptName: string;
      readonly arguments: Readonly<Record<string, string>>;
    },
  ): Promise<Readonly<Record<string, unknown>>> {
    const { serverName, promptName, signal } = request;
    const args = { ...request.arguments };
    await this.#permit({ kind: "invoke", serverName, promptName, arguments: args }, request);
    return this.#send(serverName, `prompt "${promptName}"`, signal, (session, options) =>
      session.client.request({ method: "prompts/get", params: { name: promptName, arguments: args } }, anyResult, options),
    );
  }

  /**
   * Reads a resource, as the server sends it.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or it was not answered.
   */
  async readResource(
    request: Caller & { readonly serverName: string; readonly uri: string },
  ): Promise<Readonly<Record<string, unknown>>> {
    const { serverName, uri } = request;
    await this.#permit({ kind: "read", serverName, uri }, request);
    return this.#read(request);
  }

  /**
   * Lists prompts, resources or resource templates, unread.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or it was not answered.
   */
  async list(request: Caller & { readonly serverName: string; readonly key: SideKey }): Promise<readonly unknown[]> {
    const { serverName, key, signal } = request;
    await this.#permit({ kind: "list", serverName }, request);
    return this.lookUp(serverName, key, signal);
  }

  /**
   * Lists without asking the policy, to look up what a person named. What else is found must not be shown.
   *
   * @throws {McpMiddlewareError} when it was not answered.
   */
  async lookUp(serverName: string, key: SideKey, signal?: AbortSignal): Promise<readonly unknown[]> {
    const { server, connection } = serverOf(this.#parts, serverName);
    let list: RawList;
    try {
      list = await rejectOnAbort(connection.lists.get(key), signal);
    } catch (cause) {
      signal?.throwIfAborted();
      throw callError(cause, failedRequest(server, `the list of ${key}`), undefined, connection.mask);
    }
    const { elements, cutBecause } = list;
    if (cutBecause !== undefined) {
      const message = `The list of ${key} of server "${serverName}" was ended early: ${cutBecause}.`;
      this.#parts.events.warn("LIST_CUT", message, serverName);
    }
    return elements;
  }

  /**
   * Asks a server how an argument of a prompt, or of a resource template, could go on. A server that does not offer this
   * has no suggestions.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or it was not answered.
   */
  async complete(
    request: Caller & {
      readonly serverName: string;
      readonly params: Readonly<Record<string, unknown>>;
      /** The prompt that is completed: where it may not be invoked, it may not be known either. */
      readonly promptName?: string | undefined;
    },
  ): Promise<Readonly<Record<string, unknown>>> {
    const { serverName, promptName, params, signal } = request;
    await this.#permit({ kind: "list", serverName }, request);
    if (promptName !== undefined) {
      const operation: Operation = { kind: "invoke", serverName, promptName, arguments: undefined };
      const decision = this.#parts.permits.decide(operation, request);
      // Nobody is asked for what is only typed so far.
      if (decision.kind === "deny") await this.#permit(operation, request);
    }
    return this.#send(serverName, "the completion", signal, async (session, options) =>
      session.client.getServerCapabilities()?.completions === undefined
        ? {}
        : session.client.request({ method: "completion/complete", params }, anyResult, options),
    );
  }

  /**
   * Subscribes to a resource, or ends that. The permission is that of reading it.
   *
   * @throws {McpMiddlewareError} when the policy refuses it, or the server does.
   */
  async subscription(
    request: Caller & { readonly serverName: string; readonly uri: string; readonly change: "subscribe" | "unsubscribe" },
  ): Promise<void> {
    const { serverName, uri, change, signal } = request;
    const { server, connection } = serverOf(this.#parts, serverName);
    if (change === "subscribe") await this.#permit({ kind: "read", serverName, uri }, request);
    try {
      await rejectOnAbort(connection.subscriptions[change](uri), signal);
    } catch (cause) {
      signal?.throwIfAborted();
      throw callError(cause, failedRequest(server, `the ${change} request for resource "${uri}"`), undefined, connection.mask);
    }
  }

  /**
   * Reads a resource and has the server tell of its changes, where it offers that.
   *
   * @returns With the result, the mark by which it can be told later whether the resource changed.
   */
  async readWatched(
    request: Caller & { readonly serverName: string; readonly uri: string },
  ): Promise<{ readonly result: Readonly<Record<string, unknown>>; readonly mark: string }> {
    const { serverName, uri, signal } = request;
    const { connection } = serverOf(this.#parts, serverName);
    const { subscriptions } = connection;
    await this.#permit({ kind: "read", serverName, uri }, request);
    // What fails here fails below, and says why.
    const watching = connection.session().then(
      () => subscriptions.watch(uri),
      () => undefined,
    );
    await rejectOnAbort(watching, signal);
    const mark = subscriptions.mark(uri);
    return { result: await this.#read(request), mark };
  }

  /** The mark of a resource now. */
  markOf(serverName: string, uri: string): string {
    return serverOf(this.#parts, serverName).connection.subscriptions.mark(uri);
  }

  /** What is known about a resource that was read under a mark. */
  freshness(serverName: string, uri: string, mark: string): "changed" | "unchanged" | "unknown" {
    const { subscriptions } = serverOf(this.#parts, serverName).connection;
    if (subscriptions.isMarked(uri, mark)) return "changed";
    return subscriptions.isWatched(uri) ? "unchanged" : "unknown";
  }

  #read({ serverName, uri, signal }: Caller & { readonly serverName: string; readonly uri: string }) {
    return this.#send(serverName, `resource "${uri}"`, signal, (session, options) =>
      session.client.request({ method: "resources/read", params: { uri } }, anyResult, options),
    );
  }

  /** Sends what changes nothing, so that it may be sent twice. */
  async #send<Result>(
    serverName: string,
    subject: string,
    signal: AbortSignal | undefined,
    exchange: (session: Session, options: { readonly signal?: AbortSignal; readonly timeout: number }) => Promise<Result>,
  ): Promise<Result> {
    const { server, connection } = serverOf(this.#parts, serverName);
    return send(connection, failedRequest(server, subject), true, signal, (session, linked) =>
      exchange(session, { ...(linked === undefined ? {} : { signal: linked }), timeout: server.requestTimeoutMs }),
    );
  }

  /** Asks the policy, and a person where it says so. */
  async #permit(operation: Exclude<Operation, { kind: "call" }>, request: Caller): Promise<void> {
    const { permits } = this.#parts;
    serverOf(this.#parts, operation.serverName);
    const name = permissionOf(operation);
    const answer = await permits.pass({ operation, decision: permits.decide(operation, request), name }, request);
    if (answer !== undefined) {
      // The policy may have changed while a person was asked.
      const decision = permits.decide(operation, request);
      await permits.pass({ operation, decision, name }, { ...request, onAsk: undefined, approval: answer.approval });
    }
  }
}

/** How a request is spoken of when it fails. */
function failedRequest({ serverName, requestTimeoutMs: ms }: ServerSettings, subject: string): FailedRequest {
  return { serverName, subject, timeout: { ms, option: "requestTimeoutMs" } };
}
