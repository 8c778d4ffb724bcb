import { isDeepStrictEqual } from "node:util";

import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import pLimit from "p-limit";

import { boundTool } from "./call/boundTool.js";
import { Gate } from "./call/gate.js";
import type { CallOutcome } from "./call/result.js";
import { Catalog, type ServerSnapshot } from "./catalog/catalog.js";
import type { GatedTool } from "./catalog/gatedTool.js";
import { PROFILES, type SchemaProfile } from "./catalog/profiles.js";
import type { ToolMatches, ToolQuery } from "./catalog/searchTools.js";
import { ToolSearch } from "./catalog/toolSearch.js";
import { readTool, type RawTool, type ToolEntry } from "./catalog/toolEntry.js";
import { DEFAULTS } from "./config/defaults.js";
import type { McpHubOptions, McpWrapOptions } from "./config/hubSchema.js";
import type { McpServerEntry } from "./config/serverSchema.js";
import { resolveHubOptions, resolveWrapOptions, type HubSettings, type ServerSettings } from "./config/settings.js";
import { Connection, type Listing, type State } from "./connect/connection.js";
import { openManaged } from "./connect/openManaged.js";
import { isWrappableClient, openWrapped, type WrappableClient } from "./connect/openWrapped.js";
import type { OpenSession } from "./connect/session.js";
import { View, type ViewOptions } from "./disclose/view.js";
import { McpConfigError, McpConnectionError, McpMiddlewareError, McpNotFoundError, messageOf } from "./errors.js";
import { HubEvents, type ConnectionState, type McpEventName, type McpEvents } from "./events.js";
import { allowAll } from "./policy/decide.js";
import { tellCallbacks } from "./call/adapterCallbacks.js";

/** What `connect()` achieved. */
export interface ConnectReport {
  /** Names of the servers that are connected now. */
  readonly connected: readonly string[];
  /** The servers that are not, each with its error. */
  readonly failed: readonly { readonly serverName: string; readonly error: McpMiddlewareError }[];
}

/** State of one server. JSON-safe, without secrets. */
export interface ServerStatus {
  readonly serverName: string;
  readonly state: ConnectionState;
  readonly transport: "stdio" | "http" | "sse" | "wrapped";
  /** Number of its offered tools, when they are known. */
  readonly tools?: number;
  /** Why it is `failed` or `needs-auth`. */
  readonly error?: string;
  /** When it was connected or failed, as an ISO date. */
  readonly since?: string;
}

/** A tool found by `hub.search()`. */
export interface FoundTool {
  /** The name the model sees. */
  readonly name: string;
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  /** The server's own description. Untrusted. */
  readonly description: string;
}

/** Hubs of wrapped clients: one for each client object, however many agents are given it. */
const wrappedHubs = new WeakMap<WrappableClient, { readonly hub: McpHub; readonly options: McpWrapOptions }>();

/**
 * The one long-lived object: connections, catalog and events of a set of MCP servers.
 *
 * Made once per process and shared by every agent and thread; what belongs to a conversation is in graph state. The
 * constructor does no I/O: servers are opened by `connect()` or by first use (option `startup`). Close it with
 * `close()` or `await using`.
 *
 * @throws {McpConfigError} for wrong options.
 * @example
 * await using hub = new McpHub({ mcpServers: { files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] } } });
 * const { connected, failed } = await hub.connect();
 */
export class McpHub {
  readonly #settings: HubSettings;
  readonly #events: HubEvents;
  readonly #catalog: Catalog;
  readonly #connections = new Map<string, Connection>();
  readonly #gate: Gate;
  readonly #search: ToolSearch;
  readonly #tools = new WeakMap<ToolEntry, Map<string, GatedTool>>();
  readonly #startedAt = new Map<string, number>();
  readonly #named = new Set<string>();
  readonly #wrapped: WrappedParts | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: McpHubOptions | Record<string, McpServerEntry>);
  /** @internal A hub of a wrapped client, made by {@link McpHub.wrap}. */
  constructor(settings: HubSettings, wrapped: WrappedParts);
  constructor(options: McpHubOptions | Record<string, McpServerEntry> | HubSettings, wrapped?: WrappedParts) {
    this.#wrapped = wrapped;
    this.#settings = wrapped === undefined ? resolveHubOptions(options as McpHubOptions) : (options as HubSettings);
    this.#events = new HubEvents(this.#settings.warnings);
    this.#catalog = new Catalog(this.#settings);
    this.#gate = new Gate({
      settings: this.#settings,
      catalog: this.#catalog,
      connectionOf: (serverName) => this.#connections.get(serverName),
      decide: allowAll,
      events: this.#events,
    });
    this.#search = new ToolSearch({
      catalog: this.#catalog,
      embeddings: this.#settings.embeddings,
      rerank: this.#settings.rerank,
      onError: (error) => this.#events.warn("SEARCH_MODEL_FAILED", `Searching goes on by words alone: ${messageOf(error)}`),
    });
    const stdioLimit = pLimit(DEFAULTS.maxConcurrentStdioConnects);
    const remoteLimit = pLimit(DEFAULTS.maxConcurrentRemoteConnects);
    for (const [serverName, settings] of this.#settings.servers) {
      const connection = new Connection({
        settings,
        open: wrapped === undefined ? openManaged(settings, this.#settings.secretResolver) : wrapped.open(serverName),
        maxListPages: this.#settings.maxListPages,
        reopens: wrapped === undefined,
        retryAfterMs: this.#settings.retryFailedAfterMs,
        connectLimit: settings.transport?.kind === "stdio" ? stdioLimit : remoteLimit,
        remedy:
          wrapped === undefined
            ? `Call hub.reconnect("${serverName}") to open it again.`
            : `Its owner can open it again; then call hub.reconnect("${serverName}").`,
        events: {
          onState: (state) => this.#stateChanged(serverName, state),
          onListed: (listing) => this.#listed(settings, listing),
          onRefreshFailed: (error) => this.#events.warn("REFRESH_FAILED", messageOf(error), serverName),
          onNotification: (method, params) => this.#notified(settings, method, params),
        },
      });
      this.#connections.set(serverName, connection);
    }
    for (const { option, reason } of this.#settings.withoutEffect) {
      this.#events.warn("OPTION_WITHOUT_EFFECT", `The option "${option}" has no effect: ${reason}.`, option);
    }
  }

  /**
   * The hub of a `MultiServerMCPClient` that you have. The same client gives the same hub.
   *
   * The client stays yours: it is never closed, its servers are never restarted, its handlers never replaced. Nobody has
   * to close this hub.
   *
   * @throws {McpConfigError} for wrong options, and for other options than the client was wrapped with before.
   */
  static wrap(client: WrappableClient, options: McpWrapOptions = {}): McpHub {
    if (!isWrappableClient(client)) {
      throw new McpConfigError("McpHub.wrap expects a MultiServerMCPClient. For a configuration, use new McpHub(configuration).");
    }
    const known = wrappedHubs.get(client);
    if (known !== undefined) {
      if (isDeepStrictEqual(known.options, options)) return known.hub;
      throw new McpConfigError(
        "This client is already wrapped with other options. Wrap it once, keep the hub, and give that to every mcpMiddleware.",
      );
    }
    const { mcpServers, onConnectionError, defaultToolTimeout } = client.config;
    const settings = resolveWrapOptions(options, mcpServers, defaultToolTimeout);
    const lock = pLimit(1);
    const hub = new McpHub(settings, {
      open: (serverName) => openWrapped(client, serverName, (task) => lock(task)),
      onClose: () => wrappedHubs.delete(client),
    });
    hub.#events.on("connection", ({ state }) => {
      if (state === "failed" && onConnectionError === "throw" && settings.servers.size > 1) {
        hub.#events.warn(
          "WRAPPED_CLIENT_THROWS",
          'The wrapped client has onConnectionError "throw": one server that fails makes all fail. Set it to "ignore", or give the configuration to new McpHub(…).',
        );
      }
    });
    wrappedHubs.set(client, { hub, options });
    return hub;
  }

  /** The settings in force. */
  get settings(): HubSettings {
    return this.#settings;
  }

  /**
   * Opens servers and waits until each is connected or failed.
   *
   * @param serverNames - Default: those that the middleware of any agent names; all when there is none yet.
   * @param options - `onFailure: "throw"` throws the first error once all have settled. Default: the option `onConnectionError`.
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  async connect(
    serverNames?: readonly string[],
    options: { readonly onFailure?: "report" | "throw" } = {},
  ): Promise<ConnectReport> {
    if (this.#closing !== undefined) throw new McpConnectionError("CLOSED", "This hub was closed. Make a new one.");
    const names = serverNames ?? (this.#named.size > 0 ? [...this.#named] : [...this.#connections.keys()]);
    const wanted = names.map((serverName) => [serverName, this.#connection(serverName)] as const);
    const enabled = wanted.filter(([, connection]) => connection.state.kind !== "disabled");
    const results = await Promise.allSettled(enabled.map(([serverName]) => this.#start(serverName)));
    const connected: string[] = [];
    const failed: { serverName: string; error: McpMiddlewareError }[] = [];
    results.forEach((result, position) => {
      const serverName = enabled[position]![0];
      if (result.status === "fulfilled") connected.push(serverName);
      else failed.push({ serverName, error: result.reason as McpMiddlewareError });
    });
    const onFailure = options.onFailure ?? (this.#settings.onConnectionError === "throw" ? "throw" : "report");
    if (onFailure === "throw" && failed[0] !== undefined) throw failed[0].error;
    return { connected, failed };
  }

  /**
   * Opens a server anew, also one that failed.
   *
   * @throws {McpMiddlewareError} with the reason when it cannot be opened.
   */
  async reconnect(serverName: string): Promise<void> {
    await this.#connection(serverName).reconnect();
  }

  /**
   * Lists the tools of a server, or of all connected ones, again.
   *
   * @throws when a listing fails; the last good list stays.
   */
  async refresh(serverName?: string): Promise<void> {
    const connections = serverName === undefined ? [...this.#connections.values()] : [this.#connection(serverName)];
    const connected = serverName === undefined ? connections.filter(({ state }) => state.kind === "connected") : connections;
    await Promise.all(connected.map((connection) => connection.refresh()));
  }

  /** Ends everything within `closeTimeoutMs`: sessions, processes with all they started, timers. Safe to call again. */
  close(): Promise<void> {
    this.#wrapped?.onClose();
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** State of every server, in the order of the configuration. JSON-safe, without secrets. */
  status(): ServerStatus[] {
    return [...this.#connections].map(([serverName, connection]) => {
      const state = connection.state;
      const known = this.#catalog.server(serverName);
      const sinceMs = state.kind === "connected" ? state.connectedAtMs : "failedAtMs" in state ? state.failedAtMs : undefined;
      return {
        serverName,
        state: state.kind,
        transport: this.#settings.servers.get(serverName)!.transport?.kind ?? ("wrapped" as const),
        ...(known === undefined ? {} : { tools: known.tools.length }),
        ...("error" in state ? { error: state.error.message } : {}),
        ...(sinceMs === undefined ? {} : { since: new Date(sinceMs).toISOString() }),
      };
    });
  }

  /**
   * What a server listed last, or `undefined` when it has not been listed.
   *
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  snapshot(serverName: string): ServerSnapshot | undefined {
    this.#connection(serverName);
    return this.#catalog.server(serverName)?.snapshot;
  }

  /** Finds tools of the servers that are connected, best first. */
  async search(query: string, options: ViewOptions & { readonly limit?: number } = {}): Promise<FoundTool[]> {
    const view = this.view(options);
    const { tools } = await this.find({ query, limit: options.limit ?? 5, accepts: (entry) => view.isVisible(entry) });
    return tools.map(({ boundName, serverName, toolName, description }) => ({
      name: boundName,
      serverName,
      toolName,
      description,
    }));
  }

  /** @internal The search behind `search()` and `search_mcp_tools`. */
  find(query: ToolQuery): Promise<ToolMatches> {
    return this.#search.find(query);
  }

  /** LangChain tools of all servers, for code that binds them itself. Waits until every server is connected or failed. */
  async getTools(filter: ViewOptions = {}): Promise<GatedTool[]> {
    const view = this.view(filter);
    await this.connect(view.serverNames);
    return view.servers().flatMap(({ tools }) => tools.map((entry) => this.toolOf(entry)));
  }

  /**
   * Calls a tool through the gate.
   *
   * @param args - Repaired and checked as those of a model are.
   * @throws {McpNotFoundError} for an unknown server or tool.
   * @throws {McpProtocolError} when the arguments do not fit or the server refuses the call.
   * @throws {McpConnectionError} when the server cannot be reached or does not answer.
   */
  callTool(
    serverName: string,
    toolName: string,
    args: unknown = {},
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<CallOutcome> {
    return this.#gate.call({ serverName, toolName, arguments: args, signal: options.signal });
  }

  /**
   * The SDK client of a server, opened when it is not yet. What you do with it passes the gate by: no repair, no policy,
   * no events.
   */
  async getClient(serverName: string): Promise<Client> {
    return (await this.#connection(serverName).session()).client;
  }

  /** Calls `listener` at each event of that name. Returns a function that ends this. */
  on<Name extends McpEventName>(name: Name, listener: (payload: McpEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  /** @internal Events, for the faces. */
  get events(): HubEvents {
    return this.#events;
  }

  /** @internal What an agent may see. @throws {McpConfigError} for a server that is not configured. */
  view(options: ViewOptions): View {
    for (const serverName of options.servers ?? []) {
      if (this.#connections.has(serverName)) continue;
      throw new McpConfigError(
        `"servers" names "${serverName}", which is not configured. Servers: ${[...this.#connections.keys()].join(", ")}.`,
      );
    }
    return new View(
      this.#catalog,
      this.#settings.servers,
      (serverName) => this.#connections.get(serverName)!.state.kind,
      options,
    );
  }

  /** @internal The bound tool of an entry; the same object for the same entry and profile. */
  toolOf(entry: ToolEntry, profile: SchemaProfile = PROFILES.generic): GatedTool {
    let made = this.#tools.get(entry);
    if (made === undefined) this.#tools.set(entry, (made = new Map<string, GatedTool>()));
    let tool = made.get(profile.name);
    if (tool === undefined) {
      tool = boundTool(entry, this.#settings.servers.get(entry.serverName)!, this.#gate, profile);
      made.set(profile.name, tool);
    }
    return tool;
  }

  /** @internal A face names the servers it will use. */
  name(serverNames: readonly string[]): void {
    for (const serverName of serverNames) this.#named.add(serverName);
  }

  /** @internal Keeps servers in use: opens idle ones (unless `startup` is `"lazy"`), tries failed ones again, lists old ones anew. */
  use(serverNames: readonly string[]): void {
    for (const serverName of serverNames) {
      const connection = this.#connections.get(serverName)!;
      const { kind } = connection.state;
      if (kind === "idle" && this.#settings.startup !== "lazy") this.#start(serverName).catch(() => undefined);
      else if (kind === "failed") connection.retryIfDue();
      else if (kind === "connected") connection.refreshIfOld(this.#settings.toolListTtlMs);
    }
  }

  /** @internal Opens servers that are still idle, whatever `startup` says. */
  open(serverNames: readonly string[]): void {
    for (const serverName of serverNames) {
      if (this.#connections.get(serverName)!.state.kind === "idle") this.#start(serverName).catch(() => undefined);
    }
  }

  /**
   * @internal Waits until no server is connecting any more, or for the time given.
   *
   * @param since - `"start"`: the time counts from when each server's first connect was begun.
   */
  async settle(serverNames: readonly string[], waitMs: number, since: "now" | "start", signal?: AbortSignal): Promise<void> {
    const now = performance.now();
    const waits = serverNames.flatMap((serverName) => {
      const { state } = this.#connections.get(serverName)!;
      if (state.kind !== "connecting") return [];
      const leftMs = since === "now" ? waitMs : waitMs - (now - (this.#startedAt.get(serverName) ?? now));
      return leftMs > 0 ? [{ done: state.done, leftMs }] : [];
    });
    if (waits.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    let onAbort: (() => void) | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(...waits.map(({ leftMs }) => leftMs)));
      onAbort = resolve;
      signal?.addEventListener("abort", onAbort, { once: true });
    });
    await Promise.race([Promise.allSettled(waits.map(({ done }) => done)), limit]);
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort!);
    signal?.throwIfAborted();
  }

  #connection(serverName: string): Connection {
    const connection = this.#connections.get(serverName);
    if (connection !== undefined) return connection;
    throw new McpNotFoundError(
      `There is no server "${serverName}". Known servers: ${[...this.#connections.keys()].join(", ")}.`,
      { serverName },
    );
  }

  #start(serverName: string): Promise<void> {
    if (!this.#startedAt.has(serverName)) this.#startedAt.set(serverName, performance.now());
    return this.#connection(serverName).connect();
  }

  async #closeAll(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#settings.closeTimeoutMs);
    });
    await Promise.race([Promise.allSettled([...this.#connections.values()].map((connection) => connection.close())), limit]);
    clearTimeout(timer);
  }

  #stateChanged(serverName: string, state: State): void {
    this.#events.emit("connection", {
      serverName,
      state: state.kind,
      ...(state.kind === "connecting" ? { attempt: state.attempt } : {}),
      ...(state.kind === "connected" ? { latencyMs: state.latencyMs } : {}),
      ...("error" in state ? { error: state.error.message } : {}),
    });
    if (!("error" in state)) return;
    this.#events.warn("CONNECT_FAILED", state.error.message, serverName);
    const { error } = state;
    const { onConnectionError } = this.#settings;
    if (typeof onConnectionError === "function") {
      this.#events.guard("onConnectionError", serverName, () => onConnectionError({ serverName, error }));
    }
  }

  #listed({ serverName, defer }: ServerSettings, listing: Listing): void {
    const tools: RawTool[] = [];
    for (const value of listing.tools) {
      const reading = readTool(value);
      if (reading.kind === "dropped") {
        this.#events.warn("TOOL_DROPPED", `A tool of server "${serverName}" was left out: ${reading.problem}.`, serverName);
        continue;
      }
      if (reading.kind === "mended") {
        this.#events.warn(
          "TOOL_MENDED",
          `Tool "${reading.tool.name}" of server "${serverName}" is malformed and was mended: ${reading.problem}.`,
          serverName,
        );
      }
      tools.push(reading.tool);
    }
    const isFirst = this.#catalog.server(serverName) === undefined;
    const { diff, duplicates, dropped } = this.#catalog.setServer(serverName, {
      tools,
      instructions: listing.instructions,
      serverInfo: listing.serverInfo,
    });
    for (const toolName of dropped) {
      this.#events.warn(
        "TOOL_DROPPED",
        `Tool "${toolName}" of server "${serverName}" was left out: its schema is too deep to be read.`,
        serverName,
      );
    }
    if (isFirst && tools.length > 0 && this.#catalog.server(serverName)!.tools.length === 0) {
      this.#events.warn(
        "NO_TOOL_OFFERED",
        `None of the ${tools.length} tools of server "${serverName}" is offered: check its toolFilter and toolDeny.`,
        serverName,
      );
    }
    if (listing.cutBecause !== undefined) {
      this.#events.warn(
        "LIST_CUT",
        `The tool list of server "${serverName}" was ended early: ${listing.cutBecause}.`,
        serverName,
      );
    } else if (duplicates.length > 0) {
      this.#events.warn(
        "TOOL_DROPPED",
        `Server "${serverName}" lists these tools twice, the first of each stays: ${duplicates.slice(0, 10).join(", ")}.`,
        serverName,
      );
    }
    const known = this.#catalog.server(serverName)!;
    if (isFirst && defer === false && known.definitionChars > DEFAULTS.largePinnedServerChars) {
      this.#events.warn(
        "LARGE_PINNED_SERVER",
        `Server "${serverName}" is pinned ("defer": false) and adds ${known.definitionChars} characters to every model call.`,
        serverName,
      );
    }
    if (diff !== undefined) this.#search.update();
    if (diff !== undefined) this.#events.emit("catalog", { serverName, kind: "tools", ...diff });
  }

  #notified({ serverName }: ServerSettings, method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === "notifications/message") {
      const { level, logger, data } = params;
      this.#events.emit("log", {
        serverName,
        level: String(level),
        logger: typeof logger === "string" ? logger : undefined,
        data,
      });
    }
    tellCallbacks(this.#settings.callbacks, serverName, method, params, this.#events);
  }
}

/** What a wrapped hub needs in place of transports. */
interface WrappedParts {
  readonly open: (serverName: string) => OpenSession;
  /** The hub was closed: the next wrap of the client makes a new one. */
  readonly onClose: () => void;
}
