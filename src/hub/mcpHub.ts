import { isDeepStrictEqual } from "node:util";

import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import pLimit from "p-limit";

import type { McpTool } from "../call/mcpTool.js";
import type { ServerSnapshot } from "../catalog/catalog.js";
import { loadMcpConfig } from "../config/configFile.js";
import type { McpHubOptions, McpWrapOptions } from "../config/hubOptions.js";
import { parseOptions } from "../config/parseOptions.js";
import { policySchema, type McpRunContext, type PolicyOptions } from "../config/policyOptions.js";
import type { McpServerEntry } from "../config/serverOptions.js";
import {
  resolveHubOptions,
  resolveWrapOptions,
  type HubSettings,
  type ServerSettings,
} from "../config/settings.js";
import {
  isWrappableClient,
  openWrapped,
  unguardedUrl,
  type WrappableClient,
} from "../connect/open/wrapped.js";
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
  /** Bound name, as the model sees it. */
  readonly name: string;
  readonly serverName: string;
  readonly toolName: string;
  /** The server's description. Untrusted. */
  readonly description: string;
}

/** One hub per wrapped client. */
const wrappedHubs = new WeakMap<
  WrappableClient,
  { readonly hub: McpHub; readonly options: McpWrapOptions }
>();

/**
 * Connections, catalog and events of a set of MCP servers.
 *
 * Make one per process and share it among agents and threads. The constructor does no I/O:
 * `connect()` or first use opens servers (option `startup`). Close it with `close()` or `await
 * using`.
 * @throws {McpConfigError} for wrong options.
 * @example
 * await using hub = new McpHub({
 *   mcpServers: { files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] } },
 * });
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
    const settings =
      wrapped === undefined
        ? resolveHubOptions(options as McpHubOptions)
        : (options as HubSettings);
    const { events, policy } = keepParts(this, new HubParts(settings, wrapped?.open));
    this.#wrapped = wrapped;
    for (const { option, reason } of settings.withoutEffect) {
      events.warn(
        "OPTION_WITHOUT_EFFECT",
        `The option "${option}" has no effect: ${reason}.`,
        option,
      );
    }
    if (settings.fileNotes.length > 0)
      events.warn("CONFIG_KEYS_LEFT_OUT", settings.fileNotes.join(" "));
    warnAboutPolicy(policy, events);
  }

  /**
   * Makes a hub from configuration files of desktop hosts, editors or your own, as
   * {@link loadMcpConfig} reads them.
   * @param paths - A file, or several: of servers with one name, that of the last file counts.
   * @param options - Hub options; they win over those in the files.
   * @throws {McpConfigError} when a file cannot be read or parsed, or names no servers.
   */
  static async fromFile(
    paths: string | readonly string[],
    options: Omit<McpHubOptions, "mcpServers"> = {},
  ): Promise<McpHub> {
    return new McpHub({ ...(await loadMcpConfig(paths)), ...options });
  }

  /**
   * Makes a hub from a record of servers, as `MultiServerMCPClient` takes it.
   * @throws {McpConfigError} for wrong options.
   */
  static fromServers(
    mcpServers: Record<string, McpServerEntry>,
    options: Omit<McpHubOptions, "mcpServers"> = {},
  ): McpHub {
    return new McpHub({ ...options, mcpServers });
  }

  /**
   * Makes a hub from your `MultiServerMCPClient`; the same client gives the same hub. The client
   * stays yours: the hub never closes it, restarts its servers or replaces its handlers.
   * @throws {McpConfigError} for wrong options, and for a client that is already wrapped with other
   * options.
   */
  static wrap(client: WrappableClient, options: McpWrapOptions = {}): McpHub {
    if (!isWrappableClient(client)) {
      throw new McpConfigError(
        "McpHub.wrap expects a MultiServerMCPClient. For a configuration, use new McpHub(configuration).",
      );
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
   * Connects servers and waits until each is connected or failed.
   * @param serverNames - Default: the servers of all agents; all servers when there is no agent
   * yet.
   * @param options - `onFailure: "throw"` throws the first error once all have settled. Default:
   * the option `onConnectionError`.
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  async connect(
    serverNames?: readonly string[],
    options: { readonly onFailure?: "report" | "throw" } = {},
  ): Promise<ConnectReport> {
    if (this.#closing !== undefined)
      throw new McpConnectionError("CLOSED", "This hub was closed. Make a new one.");
    const parts = partsOf(this);
    await parts.recall();
    const used = parts.usedServers.size > 0 ? parts.usedServers : parts.settings.servers.keys();
    const { connected, failed } = await parts.pool.startAll(serverNames ?? [...used]);
    const onFailure =
      options.onFailure ?? (parts.settings.onConnectionError === "throw" ? "throw" : "report");
    if (onFailure === "throw" && failed[0] !== undefined) throw failed[0].error;
    return { connected, failed };
  }

  /**
   * Reconnects a server, also one that failed.
   * @throws {McpMiddlewareError} with the reason of a failure.
   */
  async reconnect(serverName: string): Promise<void> {
    const { consents, pool } = partsOf(this);
    consents?.forgetRefusal(serverName);
    await pool.connection(serverName).reconnect();
  }

  /**
   * Lists the tools of a server, or of all connected ones, again.
   * @throws when a listing fails; the last good list stays.
   */
  async refresh(serverName?: string): Promise<void> {
    const { pool } = partsOf(this);
    const connections =
      serverName === undefined ? [...pool.connections.values()] : [pool.connection(serverName)];
    const connected =
      serverName === undefined
        ? connections.filter(({ state }) => state.kind === "connected")
        : connections;
    await Promise.all(connected.map((connection) => connection.refresh()));
  }

  /**
   * Closes connections, processes and timers within `closeTimeoutMs`. Safe to call again.
   * @param options - `drainMs`: milliseconds that calls in flight may take; new ones are refused at
   * once. Default 0.
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
   * The last tool list of a server; `undefined` before the first.
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  snapshot(serverName: string): ServerSnapshot | undefined {
    const { pool, catalog } = partsOf(this);
    pool.connection(serverName);
    return catalog.server(serverName)?.snapshot;
  }

  /**
   * Replaces the rules (option `policy`), not tiers and overrides; running threads and waiting
   * calls follow the new ones.
   * @throws {McpConfigError} for wrong rules, and for a hub made without any policy: its agents
   * have no hook that asks.
   */
  setPolicy(policy: PolicyOptions): void {
    const parts = partsOf(this);
    if (!parts.settings.canAsk) {
      throw new McpConfigError(
        'This hub was made without a policy, so its agents have no hook that asks. Make it with policy: { default: "allow" } to set rules later.',
      );
    }
    const parsed =
      typeof policy === "function" ? policy : parseOptions(policySchema, policy, "hub.setPolicy");
    parts.policy = new Policy(parts.settings, parsed);
    warnAboutPolicy(parts.policy, parts.events);
  }

  /** Finds tools of the connected servers, best first. */
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
   * LangChain tools of all servers that the policy shows to `context`. Waits for every connect;
   * every call is decided again.
   */
  async getTools(filter: ViewOptions & Omit<OperationOptions, "signal"> = {}): Promise<McpTool[]> {
    const { context, onAsk, ...options } = filter;
    const parts = partsOf(this);
    const view = parts.views(options).of(context ?? {});
    await this.connect(view.serverNames);
    const entries = view.servers().flatMap(({ tools }) => tools.filter(view.mayShow));
    if ((context ?? onAsk) === undefined) return entries.map((entry) => parts.tools.of(entry));
    const caller = callerFor({
      ...(context === undefined ? {} : { context }),
      ...(onAsk === undefined ? {} : { onAsk }),
    });
    return entries.map((entry) => parts.tools.for(entry, caller));
  }

  /**
   * The SDK client of a server; connects if need be. Calls on it bypass argument repair, policy and
   * events.
   */
  async getClient(serverName: string): Promise<Client> {
    return (await partsOf(this).pool.connection(serverName).peer()).client;
  }

  /** Calls `listener` at each event of that name. Returns a function that removes it. */
  on<Name extends McpEventName>(
    name: Name,
    listener: (payload: McpEvents[Name]) => void,
  ): () => void {
    return partsOf(this).events.on(name, listener);
  }
}

interface Wrapped {
  readonly open: (settings: ServerSettings) => OpenPeer;
  /** Lets the next `wrap` of the client make a new hub. */
  readonly onClose: () => void;
}

/**
 * The hub passed to a face, or the hub of a wrapped client.
 * @throws {McpConfigError} for anything else.
 */
export function hubOf(hubOrClient: McpHub | WrappableClient, subject: string): McpHub {
  if (hubOrClient instanceof McpHub) return hubOrClient;
  if (isWrappableClient(hubOrClient)) return McpHub.wrap(hubOrClient);
  throw new McpConfigError(
    `${subject}(hubOrClient) needs a McpHub or a MultiServerMCPClient. For a configuration, write ${subject}(new McpHub(configuration)).`,
  );
}
