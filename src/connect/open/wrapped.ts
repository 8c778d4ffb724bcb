import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

import type { UrlGuardSettings } from "../../config/securityOptions.js";
import { McpConnectionError, McpPolicyError, messageOf } from "../../errors.js";
import { isRecord, textsOf } from "../../text/isRecord.js";
import { maskSecrets } from "../../config/variables.js";
import { rejectOnAbort } from "../../text/abort.js";
import { maskValue } from "../maskValue.js";
import { adoptedPeer } from "./adopted.js";
import { literalSecrets } from "../secrets.js";
import type { OpenPeer } from "../peer.js";
import { UrlGuard } from "../http/urlGuard.js";

/** The parts of a `MultiServerMCPClient` that {@link McpHub.wrap} uses. */
export interface WrappableClient {
  readonly config: {
    readonly mcpServers: Readonly<Record<string, unknown>>;
    readonly onConnectionError?: unknown;
    readonly defaultToolTimeout?: unknown;
  };
  getClient(serverName: string): Promise<Client | undefined>;
}

/** True for a `MultiServerMCPClient`, or an object of its shape. */
export function isWrappableClient(value: unknown): value is WrappableClient {
  if (typeof value !== "object" || value === null) return false;
  const { config, getClient } = value as Partial<WrappableClient>;
  return (
    typeof getClient === "function" &&
    typeof config === "object" &&
    config !== null &&
    "mcpServers" in config
  );
}

/**
 * The error with which the URL guard would refuse a wrapped server; `undefined` if it would not, or
 * if there is no URL.
 */
export async function unguardedUrl(
  { config }: WrappableClient,
  serverName: string,
  urlGuard: UrlGuardSettings | undefined,
): Promise<McpPolicyError | undefined> {
  const url = (config.mcpServers[serverName] as { readonly url?: unknown } | null | undefined)?.url;
  if (urlGuard === undefined || typeof url !== "string" || !URL.canParse(url)) return undefined;
  try {
    await new UrlGuard(urlGuard, serverName, new URL(url)).check(new URL(url));
  } catch (error) {
    if (McpPolicyError.isInstance(error)) return error;
  }
  return undefined;
}

/** Texts to mask, from the owner's entry of a server, whatever its shape. */
function secretsOf(entry: unknown): string[] {
  if (!isRecord(entry)) return [];
  const { url, headers, env } = entry;
  const args = Array.isArray(entry["args"])
    ? (entry["args"] as unknown[]).filter((arg) => typeof arg === "string")
    : [];
  const program = {
    kind: "stdio" as const,
    command: "",
    args,
    env: textsOf(env),
    inheritEnv: [],
    cwd: undefined,
    copyStderr: false,
  };
  const web = {
    kind: "websocket" as const,
    url: typeof url === "string" ? url : "",
    headers: textsOf(headers),
  };
  return [...literalSecrets(program), ...literalSecrets(web)];
}

/**
 * Opens a peer on a wrapped client.
 * @param lock - Runs one task at a time: concurrent `getClient` calls start duplicates.
 */
export function openWrapped(
  owner: WrappableClient,
  serverName: string,
  lock: <Value>(task: () => Promise<Value>) => Promise<Value>,
): OpenPeer {
  const secrets = secretsOf(owner.config.mcpServers[serverName]);
  const mask = (text: string): string => maskSecrets(text, secrets);
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
        mask(`The client that owns server "${serverName}" could not open it: ${messageOf(cause)}`),
        { serverName, cause: maskValue(cause, mask) },
      );
    }
    if (client === undefined) {
      throw new McpConnectionError(
        "CONNECT_FAILED",
        `The client that owns server "${serverName}" has no connection to it. Check its configuration, or give that to McpHub.`,
        { serverName },
      );
    }
    return adoptedPeer(client, events, secrets);
  };
}
