import type { Connection } from "../connect/connection.js";
import { requestError } from "../connect/connectionErrors.js";
import type { SideKey } from "../connect/lists/sideLists.js";
import type { RawResult } from "../connect/peer.js";
import type { ConnectionPool } from "../connect/pool.js";
import type { HubEvents } from "../events.js";
import { permissionOf, type Operation } from "../policy/operation.js";
import { rejectOnAbort } from "../text/abort.js";
import { isRecord } from "../text/isRecord.js";
import type { Caller } from "./caller.js";
import type { Permits } from "./permits.js";

export interface ResourceRef {
  readonly serverName: string;
  readonly uri: string;
}

/**
 * Sends every request but tool calls: policy → request → result. Results are unchecked and
 * untrusted. Methods throw an {@link McpMiddlewareError} when the policy refuses or the server does
 * not answer, and the abort reason when the caller's signal aborts.
 */
export class ServerReads {
  readonly #pool: ConnectionPool;
  readonly #permits: Permits;
  readonly #events: HubEvents;

  constructor(pool: ConnectionPool, permits: Permits, events: HubEvents) {
    this.#pool = pool;
    this.#permits = permits;
    this.#events = events;
  }

  async getPrompt(
    serverName: string,
    promptName: string,
    given: Readonly<Record<string, string>>,
    caller: Caller,
  ): Promise<RawResult> {
    const args = { ...given };
    const connection = await this.#permit(
      { kind: "invoke", serverName, promptName, arguments: args },
      caller,
    );
    const params = { name: promptName, arguments: args };
    return this.#send(connection, "prompts/get", params, `prompt "${promptName}"`, caller);
  }

  async readResource({ serverName, uri }: ResourceRef, caller: Caller): Promise<RawResult> {
    const connection = await this.#permit({ kind: "read", serverName, uri }, caller);
    return this.#read(connection, uri, caller);
  }

  /** Lists prompts, resources or resource templates, when the policy allows it. */
  async list(serverName: string, key: SideKey, caller: Caller): Promise<readonly unknown[]> {
    await this.#permit({ kind: "list", serverName }, caller);
    const elements = await this.lookUp(serverName, key, caller.signal);
    return elements.filter((element) => !this.#isHidden(serverName, key, element, caller));
  }

  /**
   * Lists without asking the policy, to find something a person named. Do not show the other
   * elements.
   */
  async lookUp(
    serverName: string,
    key: SideKey,
    signal?: AbortSignal,
  ): Promise<readonly unknown[]> {
    const connection = this.#pool.connection(serverName);
    const subject = `the list of ${key}`;
    const { elements, cutBecause } = await this.#told(
      connection,
      subject,
      signal,
      connection.lists.get(key),
    );
    if (cutBecause !== undefined) {
      const message = `The list of ${key} of server "${serverName}" was ended early: ${cutBecause}.`;
      this.#events.warn("LIST_CUT", message, serverName);
    }
    return elements;
  }

  /**
   * Completes an argument of a prompt or a resource template. Returns `{}` when the server has no
   * completions.
   * @param promptName - The prompt to complete. The request is denied when invoking the prompt is.
   */
  async complete(
    serverName: string,
    params: RawResult,
    promptName: string | undefined,
    caller: Caller,
  ): Promise<RawResult> {
    const connection = await this.#permit({ kind: "list", serverName }, caller);
    if (promptName !== undefined) {
      const operation: Operation = { kind: "invoke", serverName, promptName, arguments: undefined };
      // A decision to ask does not count: the person is still typing.
      if (this.#permits.decide(operation, caller).kind === "deny")
        await this.#permit(operation, caller);
    }
    const template = (params["ref"] as { readonly uri?: unknown } | undefined)?.uri;
    if (
      typeof template === "string" &&
      this.#isHidden(serverName, "resourceTemplates", { uriTemplate: template }, caller)
    )
      return {};
    const { client } = await rejectOnAbort(connection.peer(), caller.signal);
    if (client.getServerCapabilities()?.completions === undefined) return {};
    return this.#send(connection, "completion/complete", params, "the completion", caller);
  }

  /** Subscribes to a resource or unsubscribes. Subscribing needs the permission to read. */
  async subscription(
    { serverName, uri }: ResourceRef,
    change: "subscribe" | "unsubscribe",
    caller: Caller,
  ): Promise<void> {
    const connection = this.#pool.connection(serverName);
    if (change === "subscribe") await this.#permit({ kind: "read", serverName, uri }, caller);
    const subject = `the ${change} request for resource "${uri}"`;
    await this.#told(connection, subject, caller.signal, connection.subscriptions[change](uri));
  }

  /**
   * Reads a resource and, where the server supports it, subscribes to it. Pass the `mark` to
   * `freshness` later.
   */
  async readWatched(
    { serverName, uri }: ResourceRef,
    caller: Caller,
  ): Promise<{ readonly result: RawResult; readonly mark: string }> {
    const connection = await this.#permit({ kind: "read", serverName, uri }, caller);
    const { subscriptions } = connection;
    const watching = connection.peer().then(
      () => subscriptions.watch(uri),
      // The read below fails with the same error and reports it.
      () => undefined,
    );
    await rejectOnAbort(watching, caller.signal);
    const mark = subscriptions.mark(uri);
    return { result: await this.#read(connection, uri, caller), mark };
  }

  markOf({ serverName, uri }: ResourceRef): string {
    return this.#pool.connection(serverName).subscriptions.mark(uri);
  }

  /**
   * Tells whether a resource changed since it had this mark; `"unknown"` without a subscription.
   */
  freshness({ serverName, uri }: ResourceRef, mark: string): "changed" | "unchanged" | "unknown" {
    const { subscriptions } = this.#pool.connection(serverName);
    if (subscriptions.isMarked(uri, mark)) return "changed";
    return subscriptions.isWatched(uri) ? "unchanged" : "unknown";
  }

  /**
   * True for a prompt, resource or template that the policy denies: it is invisible, as denied
   * tools are.
   */
  #isHidden(serverName: string, key: SideKey, element: unknown, caller: Caller): boolean {
    if (!isRecord(element)) return false;
    const { name, uri = element["uriTemplate"] } = element;
    const operation: Operation =
      key === "prompts"
        ? { kind: "invoke", serverName, promptName: String(name), arguments: undefined }
        : { kind: "read", serverName, uri: String(uri) };
    return this.#permits.decide(operation, caller).kind === "deny";
  }

  #read(connection: Connection, uri: string, caller: Caller): Promise<RawResult> {
    return this.#send(connection, "resources/read", { uri }, `resource "${uri}"`, caller);
  }

  /** Sends a read-only request, which may be repeated. */
  #send(
    connection: Connection,
    method: string,
    params: RawResult,
    subject: string,
    { signal }: Caller,
  ): Promise<RawResult> {
    return connection.send({ method, params, subject, signal, isRepeatable: true });
  }

  /**
   * Waits for a request of the connection itself and turns a failure into an {@link
   * McpMiddlewareError}.
   */
  async #told<Value>(
    { settings, current, mask }: Connection,
    subject: string,
    signal: AbortSignal | undefined,
    doing: Promise<Value>,
  ): Promise<Value> {
    try {
      return await rejectOnAbort(doing, signal);
    } catch (cause) {
      signal?.throwIfAborted();
      throw requestError(cause, { subject }, settings, current, mask);
    }
  }

  /** Asks the policy and, when it says so, a person. */
  async #permit(
    operation: Exclude<Operation, { kind: "call" }>,
    caller: Caller,
  ): Promise<Connection> {
    const connection = this.#pool.connection(operation.serverName);
    const name = permissionOf(operation);
    const wanted = { operation, decision: this.#permits.decide(operation, caller), name };
    const answer = await this.#permits.pass(wanted, caller);
    if (answer !== undefined) {
      // The policy may have changed while a person was asked.
      const decision = this.#permits.decide(operation, caller);
      await this.#permits.pass(
        { operation, decision, name },
        { ...caller, ask: undefined, approval: answer.approval },
      );
    }
    return connection;
  }
}
