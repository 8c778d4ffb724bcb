import { isDeepStrictEqual } from "node:util";

import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import pLimit from "p-limit";

import type { McpTool } from "../call/mcpTool.js";
import type { ServerSnapshot } from "../catalog/catalog.js";
import type { McpHubOptions, McpWrapOptions } from "../config/hubOptions.js";
import { parseOptions } from "../config/parseOptions.js";
import { policySchema, type McpRunContext, type PolicyOptions } from "../config/policyOptions.js";
import type { McpServerEntry } from "../config/serverOptions.js";
import { resolveHubOptions, resolveWrapOptions, type HubSettings, type ServerSettings } from "../config/settings.js";
import { isWrappableClient, openWrapped, unguardedUrl, type WrappableClient } from "../connect/open/wrapped.js";
import type { OpenPeer } from "../connect/peer.js";
import type { ConnectReport } from "../connect/pool.js";
import { statusOf, type ServerStatus } from "../connect/status.js";
import { findShown } from "../disclose/search.js";
import type { ViewOptions } from "../disclose/view.js";
import { McpConfigError, McpConnectionError } from "../errors.js";
import type { McpEventName, McpEvents } from "../events.js";
import { Policy } from "../policy/policy.js";
import { warnAboutPolicy } from "../policy/warnings.js";
import { callerFor, HubOperations, type OperationOptions } from "./hubOperations.js";
import { HubParts, keepParts, partsOf } from "./hubParts.js";

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
export class McpHub extends HubOperations {
  readonly #wrapped: Wrapped | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: McpHubOptions);
  /** @internal A hub of a wrapped client, made by {@link McpHub.wrap}. */
  constructor(settings: HubSettings, wrapped: Wrapped);
  constructor(options: McpHubOptions | HubSettings, wrapped?: Wrapped) {
    super();
    const settings = wrapped === undefined ? resolveHubOptions(options as McpHubOptions) : (options as HubSettings);
    const { events, policy } = keepParts(this, new HubParts(settings, wrapped?.open));
    this.#wrapped = wrapped;
    for (const { option, reason } of settings.withoutEffect) {
      events.warn("OPTION_WITHOUT_EFFECT", `The option "${option}" has no effect: ${reason}.`, option);
    }
    warnAboutPolicy(policy, events);
  }

  /**
   * The hub of a bare record of servers, as `MultiServerMCPClient` takes it.
   *
   * @throws {McpConfigError} for wrong options.
   */
  static fromServers(mcpServers: Record<string, McpServerEntry>, options: Omit<McpHubOptions, "mcpServers"> = {}): McpHub {
    return new McpHub({ ...options, mcpServers });
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
      open: ({ serverName }) => {
        const open = openWrapped(client, serverName, (task) => lock(task));
        return async (signal, events) => {
          const refusal = await unguardedUrl(client, serverName, settings.urlGuard);
          if (refusal !== undefined) {
            partsOf(hub).events.warn(
              "URL_NOT_GUARDED",
              `${refusal.message} Its client is yours, so that is not prevented.`,
              serverName,
            );
          }
          return open(signal, events);
        };
      },
      onClose: () => wrappedHubs.delete(client),
    });
    const { events } = partsOf(hub);
    events.on("connection", ({ state }) => {
      if (state === "failed" && onConnectionError === "throw" && settings.servers.size > 1) {
        events.warn(
          "WRAPPED_CLIENT_THROWS",
          'The wrapped client has onConnectionError "throw": one server that fails makes all fail. Set it to "ignore", or give the configuration to new McpHub(…).',
        );
      }
    });
    wrappedHubs.set(client, { hub, options });
    return hub;
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
    const parts = partsOf(this);
    await parts.recall();
    const used = parts.usedServers.size > 0 ? parts.usedServers : parts.settings.servers.keys();
    const { connected, failed } = await parts.pool.startAll(serverNames ?? [...used]);
    const onFailure = options.onFailure ?? (parts.settings.onConnectionError === "throw" ? "throw" : "report");
    if (onFailure === "throw" && failed[0] !== undefined) throw failed[0].error;
    return { connected, failed };
  }

  /**
   * Opens a server anew, also one that failed.
   *
   * @throws {McpMiddlewareError} with the reason when it cannot be opened.
   */
  async reconnect(serverName: string): Promise<void> {
    const { consents, pool } = partsOf(this);
    consents?.forgetRefusal(serverName);
    await pool.connection(serverName).reconnect();
  }

  /**
   * Lists the tools of a server, or of all connected ones, again.
   *
   * @throws when a listing fails; the last good list stays.
   */
  async refresh(serverName?: string): Promise<void> {
    const { pool } = partsOf(this);
    const connections = serverName === undefined ? [...pool.connections.values()] : [pool.connection(serverName)];
    const connected = serverName === undefined ? connections.filter(({ state }) => state.kind === "connected") : connections;
    await Promise.all(connected.map((connection) => connection.refresh()));
  }

  /**
   * Ends everything within `closeTimeoutMs`: sessions, processes with all they started, timers. Safe to call again.
   *
   * @param options - `drainMs`: calls under way may go on so long; new ones are refused at once. Default 0.
   */
  close(options: { readonly drainMs?: number } = {}): Promise<void> {
    this.#wrapped?.onClose();
    this.#closing ??= partsOf(this).close(options.drainMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** State of every server, in the order of the configuration. JSON-safe, without secrets. */
  status(): ServerStatus[] {
    const { pool, catalog } = partsOf(this);
    return [...pool.connections].map(([serverName, connection]) =>
      statusOf(connection, catalog.server(serverName)?.tools.length),
    );
  }

  /**
   * What a server listed last, or `undefined` when it has not been listed.
   *
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  snapshot(serverName: string): ServerSnapshot | undefined {
    const { pool, catalog } = partsOf(this);
    pool.connection(serverName);
    return catalog.server(serverName)?.snapshot;
  }

  /**
   * Replaces the rules (option `policy`) from now on, also for threads that are under way: what is denied now is no
   * longer listed, found or bound, and a call that waits for a person is decided again when it was answered. Tiers and
   * overrides of servers stay.
   *
   * @throws {McpConfigError} for wrong rules, and when the hub was made without any `policy`, `permission` or
   * `overrides`: agents made with it have no hook that asks.
   */
  setPolicy(policy: PolicyOptions): void {
    const parts = partsOf(this);
    if (!parts.settings.canAsk) {
      throw new McpConfigError(
        'This hub was made without a policy, so its agents have no hook that asks. Make it with policy: { default: "allow" } to set rules later.',
      );
    }
    const parsed = typeof policy === "function" ? policy : parseOptions(policySchema, policy, "hub.setPolicy");
    parts.policy = new Policy(parts.settings, parsed);
    warnAboutPolicy(parts.policy, parts.events);
  }

  /** Finds tools of the servers that are connected, best first. */
  async search(
    query: string,
    options: ViewOptions & { readonly limit?: number; readonly context?: McpRunContext } = {},
  ): Promise<FoundTool[]> {
    const parts = partsOf(this);
    const view = parts.views(options).of(options.context ?? {});
    const { tools } = await findShown(view, parts.search, {
      query,
      limit: options.limit ?? 5,
      accepts: (entry) => view.isVisible(entry),
    });
    return tools.map(({ boundName, serverName, toolName, description }) => ({
      name: boundName,
      serverName,
      toolName,
      description,
    }));
  }

  /**
   * LangChain tools of all servers, for code that binds them itself. Waits until every server is connected or failed.
   *
   * Only what the policy lets `context` see is there, and every call is decided again, for that context.
   */
  async getTools(filter: ViewOptions & Omit<OperationOptions, "signal"> = {}): Promise<McpTool[]> {
    const { context, onAsk, ...options } = filter;
    const parts = partsOf(this);
    const view = parts.views(options).of(context ?? {});
    await this.connect(view.serverNames);
    const entries = view.servers().flatMap(({ tools }) => tools.filter(view.mayShow));
    if ((context ?? onAsk) === undefined) return entries.map((entry) => parts.tools.of(entry));
    const caller = callerFor({ ...(context === undefined ? {} : { context }), ...(onAsk === undefined ? {} : { onAsk }) });
    return entries.map((entry) => parts.tools.for(entry, caller));
  }

  /**
   * The SDK client of a server, opened when it is not yet. What you do with it passes the gate by: no repair, no policy,
   * no events.
   */
  async getClient(serverName: string): Promise<Client> {
    return (await partsOf(this).pool.connection(serverName).peer()).client;
  }

  /** Calls `listener` at each event of that name. Returns a function that ends this. */
  on<Name extends McpEventName>(name: Name, listener: (payload: McpEvents[Name]) => void): () => void {
    return partsOf(this).events.on(name, listener);
  }
}

/** How the servers of a wrapped client are reached. */
interface Wrapped {
  readonly open: (settings: ServerSettings) => OpenPeer;
  /** The hub was closed: the next wrap of the client makes a new one. */
  readonly onClose: () => void;
}

/**
 * The hub that a face was given, or that of the client it was given.
 *
 * @param subject - Name of the face, for the error.
 * @throws {McpConfigError} for anything else.
 */
export function hubOf(hubOrClient: McpHub | WrappableClient, subject: string): McpHub {
  if (hubOrClient instanceof McpHub) return hubOrClient;
  if (isWrappableClient(hubOrClient)) return McpHub.wrap(hubOrClient);
  throw new McpConfigError(
    `${subject}(hubOrClient) needs a McpHub or a MultiServerMCPClient. For a configuration, write ${subject}(new McpHub(configuration)).`,
  );
}
