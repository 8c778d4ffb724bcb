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
import { takeListing } from "./catalog/takeListing.js";
import type { ToolEntry } from "./catalog/toolEntry.js";
import type { McpHubOptions, McpWrapOptions } from "./config/hubSchema.js";
import type { McpServerEntry } from "./config/serverSchema.js";
import { resolveHubOptions, resolveWrapOptions, type HubSettings, type ServerSettings } from "./config/settings.js";
import type { State } from "./connect/connection.js";
import { openManaged } from "./connect/openManaged.js";
import { isWrappableClient, openWrapped, type WrappableClient } from "./connect/openWrapped.js";
import { ConnectionPool } from "./connect/pool.js";
import type { OpenSession } from "./connect/session.js";
import { statusOf, type ServerStatus } from "./connect/status.js";
import { View, type ViewOptions } from "./disclose/view.js";
import { McpConfigError, McpConnectionError, McpMiddlewareError, messageOf } from "./errors.js";
import { HubEvents, type McpEventName, type McpEvents } from "./events.js";
import { allowAll } from "./policy/decide.js";
import { tellCallbacks } from "./call/adapterCallbacks.js";

/** What `connect()` achieved. */
export interface ConnectReport {
  /** Names of the servers that are connected now. */
  readonly connected: readonly string[];
  /** The servers that are not, each with its error. */
  readonly failed: readonly { readonly serverName: string; readonly error: McpMiddlewareError }[];
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
  readonly #pool: ConnectionPool;
  readonly #gate: Gate;
  readonly #search: ToolSearch;
  readonly #tools = new WeakMap<ToolEntry, Map<string, GatedTool>>();
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
      connectionOf: (serverName) => this.#pool.connections.get(serverName),
      decide: allowAll,
      events: this.#events,
    });
    this.#search = new ToolSearch({
      catalog: this.#catalog,
      embeddings: this.#settings.embeddings,
      rerank: this.#settings.rerank,
      onError: (error) => this.#events.warn("SEARCH_MODEL_FAILED", `Searching goes on by words alone: ${messageOf(error)}`),
    });
    this.#pool = new ConnectionPool({
      settings: this.#settings,
      open: wrapped?.open ?? ((settings) => openManaged(settings, this.#settings.secretResolver)),
      isWrapped: wrapped !== undefined,
      events: {
        onState: (serverName, state) => this.#stateChanged(serverName, state),
        onListed: (settings, listing) => {
          if (takeListing(this.#catalog, this.#events, settings, listing)) this.#search.update();
        },
        onRefreshFailed: (serverName, error) => this.#events.warn("REFRESH_FAILED", messageOf(error), serverName),
        onNotification: (serverName, method, params) => this.#notified(serverName, method, params),
      },
    });
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
      open: ({ serverName }) => openWrapped(client, serverName, (task) => lock(task)),
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
    const names = serverNames ?? (this.#named.size > 0 ? [...this.#named] : [...this.#pool.connections.keys()]);
    const wanted = names.map((serverName) => [serverName, this.#pool.connection(serverName)] as const);
    const enabled = wanted.filter(([, connection]) => connection.state.kind !== "disabled");
    const results = await Promise.allSettled(enabled.map(([serverName]) => this.#pool.start(serverName)));
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
    await this.#pool.connection(serverName).reconnect();
  }

  /**
   * Lists the tools of a server, or of all connected ones, again.
   *
   * @throws when a listing fails; the last good list stays.
   */
  async refresh(serverName?: string): Promise<void> {
    const connections = serverName === undefined ? [...this.#pool.connections.values()] : [this.#pool.connection(serverName)];
    const connected = serverName === undefined ? connections.filter(({ state }) => state.kind === "connected") : connections;
    await Promise.all(connected.map((connection) => connection.refresh()));
  }

  /** Ends everything within `closeTimeoutMs`: sessions, processes with all they started, timers. Safe to call again. */
  close(): Promise<void> {
    this.#wrapped?.onClose();
    this.#closing ??= this.#pool.close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** State of every server, in the order of the configuration. JSON-safe, without secrets. */
  status(): ServerStatus[] {
    return [...this.#pool.connections].map(([serverName, { state }]) =>
      statusOf(this.#settings.servers.get(serverName)!, state, this.#catalog.server(serverName)?.tools.length),
    );
  }

  /**
   * What a server listed last, or `undefined` when it has not been listed.
   *
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  snapshot(serverName: string): ServerSnapshot | undefined {
    this.#pool.connection(serverName);
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
    return (await this.#pool.connection(serverName).session()).client;
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
      if (this.#pool.connections.has(serverName)) continue;
      throw new McpConfigError(
        `"servers" names "${serverName}", which is not configured. Servers: ${[...this.#pool.connections.keys()].join(", ")}.`,
      );
    }
    return new View(
      this.#catalog,
      this.#settings.servers,
      (serverName) => this.#pool.connections.get(serverName)!.state.kind,
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

  /** @internal The connections, for the faces. */
  get pool(): ConnectionPool {
    return this.#pool;
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

  #notified(serverName: string, method: string, params: Readonly<Record<string, unknown>>): void {
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
  readonly open: (settings: ServerSettings) => OpenSession;
  /** The hub was closed: the next wrap of the client makes a new one. */
  readonly onClose: () => void;
}
