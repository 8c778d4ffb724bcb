import type { ServerSettings } from "../config/settings.js";
import { McpConnectionError, McpMiddlewareError, messageOf } from "../errors.js";
import { rejectOnAbort } from "../text/abort.js";
import { Breaker } from "./breaker.js";
import type { State } from "./connectionState.js";
import { Lifecycle, type LifecycleEvents, type LifecycleOptions } from "./lifecycle.js";
import { listPages, type RawList } from "./lists/listPages.js";
import { ListWatch } from "./lists/listWatch.js";
import { SideLists, type ListDiff, type SideKey } from "./lists/sideLists.js";
import { Subscriptions } from "./lists/subscriptions.js";
import { maskValue } from "./maskValue.js";
import type { Peer, RawResult, ServerInfo } from "./peer.js";
import { Requests, type ServerRequest } from "./requests.js";

/** A server's tool list, unparsed, and its handshake data. */
export interface ToolList extends RawList {
  readonly instructions: string | undefined;
  readonly serverInfo: ServerInfo | undefined;
  readonly capabilities: Readonly<Record<string, unknown>> | undefined;
}

export interface ConnectionEvents {
  readonly onState: (state: State) => void;
  /** Takes a tool list; true if anything changed. */
  readonly onListed: (list: ToolList) => Promise<boolean>;
  readonly onRefreshFailed: (error: unknown) => void;
  /** Prompts, resources or resource templates changed since they were last listed. */
  readonly onListChanged: (key: SideKey, diff: ListDiff) => void;
  readonly onNotification: (method: string, params: RawResult) => void;
}

export interface ConnectionOptions extends LifecycleOptions {
  readonly maxListPages: number;
  /** Age in milliseconds at which a list without change notifications is listed again. */
  readonly listTtlMs: number;
  readonly breakerFailures: number;
  readonly breakerOpenMs: number;
}

/** One server's connection: its state, its requests, its lists. */
export class Connection implements LifecycleEvents {
  /** Prompts, resources and resource templates. */
  readonly lists: SideLists;
  readonly subscriptions: Subscriptions;
  readonly #options: ConnectionOptions;
  readonly #events: ConnectionEvents;
  readonly #breaker: Breaker;
  readonly #lifecycle: Lifecycle;
  readonly #requests: Requests;
  readonly #tools: ListWatch;
  #isAnnouncedEarly = false;

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    const { settings, breakerFailures, breakerOpenMs } = options;
    this.#options = options;
    this.#events = events;
    this.#breaker = new Breaker(breakerFailures, breakerOpenMs);
    this.#lifecycle = new Lifecycle(options, this.#breaker, this);
    this.#requests = new Requests(settings, this.#lifecycle, this.#breaker);
    this.#tools = new ListWatch(this);
    this.lists = new SideLists(this);
    this.subscriptions = new Subscriptions(this);
  }

  get settings(): ServerSettings {
    return this.#options.settings;
  }

  /** State of the server, for status, search and calls. */
  get state(): State {
    return this.#lifecycle.state;
  }

  get current(): Peer | undefined {
    return this.#lifecycle.current;
  }

  /** Masks secrets in a text about this server, also while it is disconnected. */
  get mask(): (text: string) => string {
    return this.#lifecycle.mask;
  }

  /** Time until which the circuit breaker refuses requests, in milliseconds since 1970. */
  get unavailableUntilMs(): number | undefined {
    return this.#breaker.openUntilMs;
  }

  get listTtlMs(): number {
    return this.#options.listTtlMs;
  }

  connect(): Promise<void> {
    return this.#lifecycle.connect();
  }

  reconnect(): Promise<void> {
    return this.#lifecycle.reconnect();
  }

  allowed(): void {
    this.#lifecycle.allowed();
  }

  /** Ends a connection that is no longer allowed, until {@link reconnect}. */
  disable(error: McpMiddlewareError): void {
    this.#lifecycle.disable(error);
  }

  retryIfDue(): void {
    this.#lifecycle.retryIfDue();
  }

  peer(): Promise<Peer> {
    return this.#lifecycle.peer();
  }

  send(request: ServerRequest): Promise<RawResult> {
    return this.#requests.send(request);
  }

  /** Lists the tools again now, or joins a running listing. A failure keeps the last list. */
  async refresh(): Promise<void> {
    await this.#tools.refresh();
  }

  /** Lists old tools again in the background, if the server announces no changes. */
  refreshIfOld(): void {
    const { current } = this;
    if (current === undefined || (current.announces("tools") && !this.#tools.isOutdated)) return;
    this.#tools.refreshIfOlderThan(this.listTtlMs);
  }

  /**
   * Ends the connection.
   * @param drainMs - Milliseconds for requests in flight; new ones are refused at once.
   */
  async close(drainMs = 0): Promise<void> {
    await this.#requests.drain(drainMs);
    this.#tools.stop();
    this.lists.stop();
    await this.#lifecycle.close();
  }

  async listPages(key: SideKey): Promise<RawList> {
    const { maxListPages } = this.#options;
    const list = await listPages(key, maxListPages, (method, params) =>
      this.send({ method, params, subject: `the list of ${key}`, isRepeatable: true }),
    );
    return this.current?.maskList?.(list) ?? list;
  }

  /** @internal Lists the tools of a connection that was just opened. */
  async onOpened(peer: Peer, signal: AbortSignal): Promise<void> {
    const list = await this.#listTools(peer, signal, false);
    signal.throwIfAborted();
    await this.#events.onListed(list);
  }

  /** @internal */
  onState(state: State): void {
    this.#events.onState(state);
    if (state.kind !== "connected") return;
    this.lists.expire();
    this.subscriptions.expire();
    if (!this.#isAnnouncedEarly) return;
    this.#isAnnouncedEarly = false;
    this.#tools.announced();
  }

  /** @internal */
  onNotification(method: string, params: RawResult): void {
    if (method === "notifications/tools/list_changed") {
      if (this.state.kind === "connected") this.#tools.announced();
      else this.#isAnnouncedEarly = true;
    }
    this.lists.notified(method);
    this.subscriptions.notified(method, params);
    this.#events.onNotification(method, params);
  }

  /** @internal Lists the tools again; true if anything changed. */
  async list(): Promise<boolean> {
    const { settings } = this.#options;
    const peer = await this.peer();
    let list: ToolList;
    try {
      list = await this.#listTools(peer, AbortSignal.timeout(settings.requestTimeoutMs), true);
    } catch (cause) {
      if (McpMiddlewareError.isInstance(cause)) throw cause;
      const { serverName } = settings;
      const message = `The tools of server "${serverName}" could not be listed again: ${peer.mask(messageOf(cause))}. The last list stays.`;
      const code = peer.endReason() === undefined ? "CONNECT_FAILED" : "SESSION_LOST";
      throw new McpConnectionError(code, message, {
        serverName,
        cause: maskValue(cause, peer.mask),
      });
    }
    return this.state.kind === "connected" && this.#events.onListed(list);
  }

  /** @internal */
  canList(): boolean {
    return this.state.kind === "connected";
  }

  /** @internal */
  onFailed(error: unknown): void {
    if (this.state.kind !== "closed") this.#events.onRefreshFailed(error);
  }

  /** @internal */
  onChanged(key: SideKey, diff: ListDiff): void {
    this.#events.onListChanged(key, diff);
  }

  /** @param isCounted - Whether failures count for the breaker: not while connecting. */
  async #listTools(peer: Peer, signal: AbortSignal, isCounted: boolean): Promise<ToolList> {
    const { settings, maxListPages } = this.#options;
    const request = (method: string, params: RawResult): Promise<RawResult> => {
      const page = { method, params, signal, subject: "the list of tools", isRepeatable: true };
      return isCounted
        ? this.#requests.sendOn(peer, page)
        : peer.request({ ...page, timeoutMs: settings.requestTimeoutMs });
    };
    const list = await rejectOnAbort(listPages("tools", maxListPages, request), signal);
    this.#tools.listed();
    const { client } = peer;
    const all = {
      ...list,
      instructions: client.getInstructions(),
      serverInfo: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
    };
    return peer.maskList?.(all) ?? all;
  }
}
