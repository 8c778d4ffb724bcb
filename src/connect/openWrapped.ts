import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

import { McpConnectionError, messageOf } from "../errors.js";
import { rejectOnAbort } from "./abort.js";
import { adoptedSession } from "./openAdopted.js";
import type { OpenSession } from "./session.js";

/** What is used of a `MultiServerMCPClient`. */
export interface WrappableClient {
  readonly config: {
    readonly mcpServers: Readonly<Record<string, unknown>>;
    readonly onConnectionError?: unknown;
    readonly defaultToolTimeout?: unknown;
  };
  getClient(serverName: string): Promise<Client | undefined>;
}

/** True for a `MultiServerMCPClient`, or what has its shape. */
export function isWrappableClient(value: unknown): value is WrappableClient {
  if (typeof value !== "object" || value === null) return false;
  const { config, getClient } = value as Partial<WrappableClient>;
  return typeof getClient === "function" && typeof config === "object" && config !== null && "mcpServers" in config;
}

/**
 * How a server of a wrapped client is reached: its owner's client, asked once.
 *
 * The owner connects and closes. `getClient` opens all servers one after the other and starts duplicates when it is
 * called twice at the same time, so all servers of one client share one lock.
 *
 * @param lock - Runs one task at a time; one for each wrapped client.
 */
export function openWrapped(
  owner: WrappableClient,
  serverName: string,
  lock: <Value>(task: () => Promise<Value>) => Promise<Value>,
): OpenSession {
  return async (signal, events) => {
    let client: Client | undefined;
    try {
      client = await rejectOnAbort(
        lock(() => owner.getClient(serverName)),
        signal,
      );
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      throw new McpConnectionError(
        "CONNECT_FAILED",
        `The client that owns server "${serverName}" could not open it: ${messageOf(cause)}`,
        {
          serverName,
          cause,
        },
      );
    }
    if (client === undefined) {
      throw new McpConnectionError(
        "CONNECT_FAILED",
        `The client that owns server "${serverName}" has no connection to it. Check its configuration, or give that to McpHub.`,
        { serverName },
      );
    }
    return adoptedSession(client, events);
  };
}
