import pLimit from "p-limit";

import { DEFAULTS } from "../config/defaults.js";
import type { HubSettings, ServerSettings } from "../config/settings.js";
import { McpNotFoundError, type McpMiddlewareError } from "../errors.js";
import { settleWithin } from "../text/abort.js";
import { Connection, type ToolList } from "./connection.js";
import type { State } from "./connectionState.js";
import type { OpenPeer } from "./peer.js";
import type { ListDiff, SideKey } from "./lists/sideLists.js";

/** Result of `hub.connect()`. */
export interface ConnectReport {
  /** Names of the connected servers. */
  readonly connected: readonly string[];
  /** Servers that are not connected, each with its error. */
  readonly failed: readonly { readonly serverName: string; readonly error: McpMiddlewareError }[];
}

export interface PoolEvents {
  readonly onState: (serverName: string, state: State) => void;
  /** True if anything changed. */
  readonly onListed: (settings: ServerSettings, listing: ToolList) => Promise<boolean>;
  readonly onRefreshFailed: (serverName: string, error: unknown) => void;
  readonly onListChanged: (serverName: string, key: SideKey, diff: ListDiff) => void;
  readonly onNotification: (
    serverName: string,
    method: string,
    params: Readonly<Record<string, unknown>>,
  ) => void;
}

export interface PoolParts {
  readonly settings: HubSettings;
  readonly open: (settings: ServerSettings) => OpenPeer;
  /** Asks a person to allow a server before it is opened. */
  readonly admit?:
    | ((settings: ServerSettings) => ((signal: AbortSignal) => Promise<void>) | undefined)
    | undefined;
  /** Whether the connections belong to a wrapped client, so that only its owner reconnects them. */
  readonly isWrapped: boolean;
  readonly events: PoolEvents;
}

/** The connections of a hub, one per server, with a limit on concurrent connects. */
export class ConnectionPool {
  readonly #parts: PoolParts;
  readonly #connections: ReadonlyMap<string, Connection>;
  readonly #startedAt = new Map<string, number>();

  constructor(parts: PoolParts) {
    this.#parts = parts;
    const limits = {
      stdio: pLimit(DEFAULTS.maxConcurrentStdioConnects),
      remote: pLimit(DEFAULTS.maxConcurrentRemoteConnects),
    };
    const { settings, events, isWrapped } = parts;
    const { budgets } = settings;
    this.#connections = new Map(
      [...settings.servers.values()].map((server) => {
        const { serverName, transport } = server;
        const options = {
          ...budgets,
          settings: server,
          open: parts.open(server),
          admit: parts.admit?.(server),
          listTtlMs: budgets.toolListTtlMs,
          isOwned: isWrapped || transport?.kind === "client",
          connectLimit: transport?.kind === "stdio" ? limits.stdio : limits.remote,
        };
        const connection = new Connection(options, {
          onState: (state) => events.onState(serverName, state),
          onListed: (list) => events.onListed(server, list),
          onRefreshFailed: (error) => events.onRefreshFailed(serverName, error),
          onListChanged: (key, diff) => events.onListChanged(serverName, key, diff),
          onNotification: (method, params) => events.onNotification(serverName, method, params),
        });
        return [serverName, connection] as const;
      }),
    );
  }

  get connections(): ReadonlyMap<string, Connection> {
    return this.#connections;
  }

  /**
   * @throws {McpNotFoundError} for a server that is not configured; the message names the known
   * ones.
   */
  connection(serverName: string): Connection {
    const connection = this.#connections.get(serverName);
    if (connection !== undefined) return connection;
    const known = [...this.#connections.keys()].join(", ");
    throw new McpNotFoundError(`There is no server "${serverName}". Known servers: ${known}.`, {
      serverName,
    });
  }

  /** Connects a server, or joins a running connect. */
  start(serverName: string): Promise<void> {
    if (!this.#startedAt.has(serverName)) this.#startedAt.set(serverName, performance.now());
    return this.connection(serverName).connect();
  }

  /**
   * Connects servers and waits until each is connected or failed. @throws {McpNotFoundError} for a
   * server that is not configured.
   */
  async startAll(serverNames: readonly string[]): Promise<ConnectReport> {
    const enabled = serverNames.filter((serverName) => {
      const { state } = this.connection(serverName);
      // Those that need a person's consent are reported.
      return state.kind !== "disabled" || state.error !== undefined;
    });
    const results = await Promise.allSettled(enabled.map((serverName) => this.start(serverName)));
    const connected: string[] = [];
    const failed: { serverName: string; error: McpMiddlewareError }[] = [];
    results.forEach((result, position) => {
      const serverName = enabled[position]!;
      if (result.status === "fulfilled") connected.push(serverName);
      else failed.push({ serverName, error: result.reason as McpMiddlewareError });
    });
    return { connected, failed };
  }

  /** Connects idle servers in the background. */
  open(serverNames: readonly string[]): void {
    for (const serverName of serverNames) {
      if (this.connection(serverName).state.kind === "idle")
        this.start(serverName).catch(() => undefined);
    }
  }

  /**
   * Keeps servers in use: connects idle ones (unless `startup` is `"lazy"`), retries failed ones,
   * refreshes old tool lists.
   */
  use(serverNames: readonly string[]): void {
    const { startup } = this.#parts.settings;
    if (startup !== "lazy") this.open(serverNames);
    for (const serverName of serverNames) {
      const connection = this.connection(serverName);
      const { kind } = connection.state;
      if (kind === "failed") connection.retryIfDue();
      else if (kind === "connected") connection.refreshIfOld();
    }
  }

  /**
   * Waits at most `waitMs` until no server is connecting.
   * @param since - `"start"`: counts from each server's first connect.
   */
  async settle(
    serverNames: readonly string[],
    waitMs: number,
    since: "now" | "start",
    signal?: AbortSignal,
  ): Promise<void> {
    const now = performance.now();
    const waits = serverNames.flatMap((serverName) => {
      const { state } = this.connection(serverName);
      if (state.kind !== "connecting") return [];
      const leftMs =
        since === "now" ? waitMs : waitMs - (now - (this.#startedAt.get(serverName) ?? now));
      return leftMs > 0 ? [{ done: state.done, leftMs }] : [];
    });
    if (waits.length === 0) return;
    await settleWithin(
      Promise.allSettled(waits.map(({ done }) => done)),
      Math.max(...waits.map(({ leftMs }) => leftMs)),
      signal,
    );
    signal?.throwIfAborted();
  }

  /**
   * Closes all connections: requests in flight get `drainMs`, then closing takes at most
   * `closeTimeoutMs`.
   */
  async close(drainMs = 0): Promise<void> {
    const closing = [...this.#connections.values()].map((connection) => connection.close(drainMs));
    await settleWithin(
      Promise.allSettled(closing),
      drainMs + this.#parts.settings.budgets.closeTimeoutMs,
    );
  }
}
