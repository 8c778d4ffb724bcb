import { SseError, SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";

import type { UrlGuardSettings } from "../../config/securityOptions.js";
import { checkUrl, type TransportSettings } from "../../config/transport.js";
import { McpAuthRequiredError, McpConnectionError } from "../../errors.js";
import { httpStatusOf, Unanswered, UNREAD } from "../failures.js";
import { tooLargeIn } from "../messageBudget.js";
import { openClient, type Wire } from "../open/openClient.js";
import type { Peer, PeerEvents } from "../peer.js";
import { keeperOf, type Secrets } from "../secrets.js";
import { authorizedFetch } from "./authorizedFetch.js";
import { callHeadersFetch } from "./callHeaders.js";
import { connectionFetch } from "./connectionFetch.js";
import { guardedFetch } from "./guardedFetch.js";
import { statusFetch } from "./statusFetch.js";
import { StreamFaults } from "./streamFaults.js";
import { UrlGuard } from "./urlGuard.js";

type Remote = Extract<TransportSettings, { kind: "http" | "sse" }>;

/** A remote server that is about to be opened. */
interface RemoteParts {
  readonly serverName: string;
  readonly remote: Remote;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
  readonly events: PeerEvents;
  readonly maxMessageBytes: number;
}

/**
 * Opens a remote server over streamable HTTP, then SSE where that is allowed.
 * @throws {McpMiddlewareError} with the reason.
 */
export async function openRemote(
  parts: RemoteParts,
  urlGuard: UrlGuardSettings | undefined,
): Promise<Peer> {
  const { serverName, remote, maxMessageBytes } = parts;
  const url = checkUrl(serverName, remote.url);
  const guard = urlGuard === undefined ? undefined : new UrlGuard(urlGuard, serverName, url);
  let refused: McpAuthRequiredError | undefined;
  const base = await guardedFetch({
    guard,
    configured: url,
    headers: remote.headers,
    maxMessageBytes,
  });
  const guarded = fetchOf(parts, url, base, (error) => {
    refused = error;
  });
  try {
    return await openAnyRemote(parts, url, guarded);
  } catch (error) {
    throw guard?.lastRefusal ?? refused ?? error;
  }
}

/**
 * The `fetch` of a remote server: adds each call's headers, and renews tokens when there is an
 * `authProvider`.
 */
function fetchOf(
  { serverName, remote: { authProvider: provider }, secrets }: RemoteParts,
  serverUrl: URL,
  guarded: FetchLike,
  onRefused: (error: McpAuthRequiredError) => void,
): FetchLike {
  const onValue = keeperOf(secrets);
  const authorized =
    provider === undefined
      ? guarded
      : authorizedFetch({
          serverName,
          serverUrl,
          provider,
          fetch: guarded,
          onToken: onValue,
          onRefused,
        });
  return callHeadersFetch({
    fetch: statusFetch(authorized),
    plainFetch: guarded,
    serverUrl,
    onValue,
  });
}

async function openAnyRemote(parts: RemoteParts, url: URL, guarded: FetchLike): Promise<Peer> {
  const { serverName, remote, secrets, signal, events } = parts;
  const openSse = (at: URL): Promise<Peer> =>
    openClient(serverName, sseWire(at, remote, guarded), secrets, signal, events);
  if (remote.kind === "sse") return openSse(url);
  try {
    return await openClient(serverName, httpWire(url, remote, guarded), secrets, signal, events);
  } catch (error) {
    if (!remote.sseFallback || !mayBeSse(error)) throw error;
    for (const candidate of sseUrls(url)) {
      try {
        return await openSse(candidate);
      } catch (sseError) {
        if (McpAuthRequiredError.isInstance(sseError)) throw sseError;
        // The first error is about the configured URL.
      }
    }
    throw error;
  }
}

function httpWire(url: URL, { headers, authProvider }: Remote, guarded: FetchLike): Wire {
  const faults = new StreamFaults();
  const transport = new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: connectionFetch(faults, guarded),
    ...(authProvider === undefined ? {} : { authProvider }),
  });
  faults.onUnanswered = (id, reason) => {
    const data = new Unanswered(reason);
    const error = { code: Number(ErrorCode.ConnectionClosed), message: data.reason, data };
    transport.onmessage?.({ jsonrpc: "2.0", id, error });
  };
  return {
    transport,
    isDeaf: () => faults.isDeaf,
    isEnd: () => faults.isFlooded,
    isBroken: () => faults.isFlooded,
    endReason: () => (faults.isFlooded ? UNREAD : undefined),
    onAnswer: (requestId) => faults.answered(requestId),
    hasSession: () => transport.sessionId !== undefined,
    endSession: async () => {
      if (transport.sessionId !== undefined) await transport.terminateSession();
    },
  };
}

function sseWire(url: URL, { headers, authProvider }: Remote, guarded: FetchLike): Wire {
  // Deprecated in the protocol, but some servers speak nothing else.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const transport = new SSEClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: guarded,
    ...(authProvider === undefined ? {} : { authProvider }),
  });
  let endReason: string | undefined;
  return {
    transport,
    isEnd: (error) => {
      if (error instanceof SseError)
        endReason ??= tooLargeIn(error.message) ?? "its event stream ended";
      return endReason !== undefined;
    },
    isBroken: () => endReason !== undefined,
    endReason: () => endReason,
    hasSession: () => true,
  };
}

/** True for a 4xx that may come from an SSE-only server; 401 and 403 are about credentials. */
function mayBeSse(error: unknown): boolean {
  const cause = McpConnectionError.isInstance(error) ? error.cause : undefined;
  const code = httpStatusOf(cause);
  return code !== undefined && code >= 400 && code < 500 && code !== 401 && code !== 403;
}

/** The URL as given, then the one with a last path segment `sse` in place of `mcp`. */
function sseUrls(url: URL): URL[] {
  const other = new URL(url);
  other.pathname = url.pathname.replace(/(^|\/)mcp\/?$/, "$1sse");
  return other.href === url.href ? [url] : [url, other];
}
