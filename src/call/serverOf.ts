import type { ServerSettings } from "../config/settings.js";
import type { Connection } from "../connect/connection.js";
import { McpNotFoundError } from "../errors.js";

/** Where servers are looked up. */
export interface ServersParts {
  readonly settings: { readonly servers: ReadonlyMap<string, ServerSettings> };
  readonly connectionOf: (serverName: string) => Connection | undefined;
}

/**
 * A server with its connection.
 *
 * @throws {McpNotFoundError} for one that is not configured.
 */
export function serverOf(
  { settings, connectionOf }: ServersParts,
  serverName: string,
): { readonly server: ServerSettings; readonly connection: Connection } {
  const server = settings.servers.get(serverName);
  const connection = connectionOf(serverName);
  if (server !== undefined && connection !== undefined) return { server, connection };
  const known = [...settings.servers.keys()].join(", ");
  throw new McpNotFoundError(`There is no server "${serverName}". Known servers: ${known}.`, { serverName });
}
