import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type * as z from "zod";

import { McpConfigError } from "../errors.js";
import type { serverEntrySchema } from "./serverOptions.js";

/** How to reach a managed server; variables are not filled in yet. */
export type TransportSettings =
  | {
      readonly kind: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly inheritEnv: readonly string[];
      readonly cwd: string | undefined;
      readonly copyStderr: boolean;
    }
  | {
      readonly kind: "http" | "sse";
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly authProvider: OAuthClientProvider | undefined;
      readonly sseFallback: boolean;
    }
  | {
      readonly kind: "websocket";
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: "custom"; readonly createTransport: () => Transport | Promise<Transport> }
  /** A client that someone else connects and closes. */
  | { readonly kind: "client"; readonly client: Client };

/**
 * Reads from a server entry how to reach the server.
 * @param allowed - Kinds a configuration may have; `createTransport` and `client`, made in code,
 * are always allowed.
 * @throws {McpConfigError} when the entry names no way or several, contradicts itself, or has a
 * kind that is not allowed.
 */
export function transportSettings(
  serverName: string,
  entry: z.output<typeof serverEntrySchema>,
  allowed?: readonly string[],
): TransportSettings {
  const transport = readEntry(serverName, entry);
  if (allowed === undefined || transport.kind === "custom" || transport.kind === "client")
    return transport;
  if (!allowed.includes(transport.kind)) {
    const list = allowed.length === 0 ? "none" : allowed.join(", ");
    throw new McpConfigError(
      `Server "${serverName}" is of kind "${transport.kind}"; the option "transports" allows ${list}.`,
      {
        serverName,
      },
    );
  }
  return transport.kind === "http" && !allowed.includes("sse")
    ? { ...transport, sseFallback: false }
    : transport;
}

function readEntry(
  serverName: string,
  entry: z.output<typeof serverEntrySchema>,
): TransportSettings {
  const refuse = (what: string): never => {
    throw new McpConfigError(`Server "${serverName}": ${what}.`, { serverName });
  };
  const { command, url, createTransport, client } = entry;
  const ways = Object.entries({ command, url, createTransport, client }).filter(
    ([, value]) => value !== undefined,
  );
  if (ways.length > 1) refuse(`give ${ways.map(([way]) => `"${way}"`).join(" or ")}, not both`);
  if (ways.length === 0) {
    refuse(
      'give "command" (a program to start), "url" (a remote server), "createTransport" or "client"',
    );
  }
  if (createTransport !== undefined) return { kind: "custom", createTransport };
  if (client !== undefined) return { kind: "client", client };
  if (entry.transport !== undefined && entry.type !== undefined && entry.transport !== entry.type) {
    refuse(`"transport" is "${entry.transport}" and "type" is "${entry.type}"; give one of them`);
  }
  const named = entry.transport ?? entry.type;
  if (command !== undefined) {
    if (named !== undefined && named !== "stdio")
      refuse(`"transport" is "${named}", but "command" starts a stdio server`);
    return {
      kind: "stdio",
      command,
      args: entry.args ?? [],
      env: entry.env ?? {},
      inheritEnv: entry.inheritEnv ?? [],
      cwd: entry.cwd,
      copyStderr: entry.stderr === "inherit",
    };
  }
  if (named === "stdio") refuse('"transport" is "stdio", which needs "command" in place of "url"');
  const isWebSocket =
    named === "websocket" || named === "ws" || (named === undefined && /^wss?:/i.test(url!));
  if (!url!.includes("${")) checkUrl(serverName, url!, isWebSocket);
  if (isWebSocket)
    return { kind: "websocket", url: url!, headers: { ...entry.auth?.headers, ...entry.headers } };
  return {
    kind: named === "sse" ? "sse" : "http",
    url: url!,
    headers: { ...entry.auth?.headers, ...entry.headers },
    authProvider: entry.authProvider,
    sseFallback: entry.automaticSSEFallback ?? true,
  };
}

/**
 * Parses the URL of a server.
 * @throws {McpConfigError} when it is no URL or its scheme does not fit the transport.
 */
export function checkUrl(serverName: string, url: string, isWebSocket = false): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const schemes = isWebSocket ? ["ws:", "wss:"] : ["http:", "https:"];
  if (parsed === undefined || !schemes.includes(parsed.protocol)) {
    const example = isWebSocket
      ? "a ws or wss URL such as wss://example.com/mcp"
      : "an http or https URL such as https://example.com/mcp";
    throw new McpConfigError(`Server "${serverName}": "url" must be ${example}.`, { serverName });
  }
  return parsed;
}
