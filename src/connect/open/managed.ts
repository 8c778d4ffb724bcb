import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike, Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

import type { HubSettings, ServerSettings } from "../../config/settings.js";
import type { UrlGuardSettings } from "../../config/securityOptions.js";
import { checkUrl, type TransportSettings } from "../../config/transport.js";
import { expandVariables } from "../../config/variables.js";
import { McpAuthRequiredError, McpConnectionError, McpPolicyError } from "../../errors.js";
import { rejectOnAbort } from "../../text/abort.js";
import { authorizedFetch } from "../http/authorizedFetch.js";
import { callHeadersFetch } from "../http/callHeaders.js";
import type { McpConsents } from "../stdio/consents.js";
import { guardedFetch, guardedLookup } from "../http/guardedFetch.js";
import { connectionFetch } from "../http/connectionFetch.js";
import { openAdopted } from "./adopted.js";
import { Faults, openClient } from "./openClient.js";
import { keeperOf, NO_SECRETS, secretsOf, type Secrets } from "../secrets.js";
import type { OpenPeer, Peer, PeerEvents } from "../peer.js";
import { StdioTransport } from "../stdio/stdioTransport.js";
import { UrlGuard } from "../http/urlGuard.js";
import { WebSocketTransport } from "../http/webSocketTransport.js";

type Remote = Extract<TransportSettings, { kind: "http" | "sse" }>;

/**
 * Opens a managed server: fills in variables, makes the transport, does the handshake. A failure leaves no process or socket.
 *
 * @param consents - Approved programs; without it programs start unasked.
 * @throws {McpConfigError} for a missing variable or a wrong URL.
 * @throws {McpPolicyError} for a refused URL, or a program that was not approved.
 * @throws {McpAuthRequiredError} when the server answers 401 or asks for OAuth.
 * @throws {McpConnectionError} `CONNECT_FAILED` with the reason and the last stderr lines.
 */
export function openManaged(
  settings: ServerSettings,
  { secretResolver, urlGuard }: HubSettings,
  consents?: McpConsents,
): OpenPeer {
  const { serverName } = settings;
  const transport = settings.transport!;
  if (transport.kind === "client") return openAdopted(transport.client, serverName);
  if (transport.kind === "custom") {
    return async (signal, events) => {
      const made = await rejectOnAbort(Promise.resolve().then(transport.createTransport), signal);
      return openClient(serverName, withQuietClose(made), NO_SECRETS, signal, events);
    };
  }
  return async (signal, events) => {
    const { authProvider, ...plain } = { authProvider: undefined, ...transport };
    const { value, secrets: filled, resolved } = await rejectOnAbort(expandVariables(plain, secretResolver, serverName), signal);
    const expanded = { ...value, ...(authProvider === undefined ? {} : { authProvider }) } as typeof transport;
    const secrets = secretsOf(expanded, filled, resolved);
    switch (expanded.kind) {
      case "stdio":
        // The program may have changed since it was approved.
        await consents?.verify({ serverName, parameters: expanded, secrets: filled });
        return openClient(serverName, new StdioTransport(expanded), secrets, signal, events);
      case "websocket": {
        const url = checkUrl(serverName, expanded.url, true);
        const guard = urlGuard === undefined ? undefined : new UrlGuard(urlGuard, serverName, url);
        await checkFirst(guard, url, signal);
        const lookup = guard === undefined ? undefined : guardedLookup(guard, url.protocol);
        return openClient(serverName, new WebSocketTransport(url, expanded.headers, lookup), secrets, signal, events);
      }
      default:
        return openRemote({ serverName, remote: expanded, secrets, signal, events }, urlGuard);
    }
  };
}

/**
 * Asks a person about a stdio server's program. Separate from opening it, so that the connect timeout does not apply.
 *
 * @returns `undefined` when nobody has to be asked.
 */
export function consentOf(
  { serverName, transport }: ServerSettings,
  { secretResolver }: HubSettings,
  consents: McpConsents | undefined,
): ((signal: AbortSignal) => Promise<void>) | undefined {
  if (consents === undefined || transport?.kind !== "stdio") return undefined;
  return async (signal) => {
    const { value, secrets } = await expandVariables(transport, secretResolver, serverName);
    await consents.ask({ serverName, parameters: value, secrets }, signal);
  };
}

/** The same transport with a `close()` that never rejects: the SDK ignores its rejection after a failed handshake. */
function withQuietClose(transport: Transport): Transport {
  const close = async (): Promise<void> => {
    await Promise.resolve()
      .then(() => transport.close())
      .catch(() => undefined);
  };
  return new Proxy(transport, {
    get: (target, key) => {
      if (key === "close") return close;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  });
}

interface RemoteParts {
  readonly serverName: string;
  readonly remote: Remote;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
  readonly events: PeerEvents;
}

async function openRemote(parts: RemoteParts, urlGuard: UrlGuardSettings | undefined): Promise<Peer> {
  const { serverName, remote } = parts;
  const url = checkUrl(serverName, remote.url);
  const guard = urlGuard === undefined ? undefined : new UrlGuard(urlGuard, serverName, url);
  let refused: McpAuthRequiredError | undefined;
  const base = await guardedFetch({ guard, configured: url, headers: remote.headers });
  const guarded = fetchOf(parts, url, base, (error) => {
    refused = error;
  });
  try {
    return await openAnyRemote(parts, url, guarded);
  } catch (error) {
    throw guard?.lastRefusal ?? refused ?? error;
  }
}

/** Checks the configured URL. A failed DNS look-up is left to the transport, whose error is clearer. */
async function checkFirst(guard: UrlGuard | undefined, url: URL, signal: AbortSignal): Promise<void> {
  try {
    await guard?.check(url, signal);
  } catch (error) {
    if (McpPolicyError.isInstance(error)) throw error;
    signal.throwIfAborted();
  }
}

/** The `fetch` of a remote server: adds each call's headers, and renews tokens when there is an `authProvider`. */
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
      : authorizedFetch({ serverName, serverUrl, provider, fetch: guarded, onToken: onValue, onRefused });
  return callHeadersFetch({ fetch: authorized, plainFetch: guarded, serverUrl, onValue });
}

async function openAnyRemote(parts: RemoteParts, url: URL, guarded: FetchLike): Promise<Peer> {
  const { serverName, remote, secrets, signal, events } = parts;
  const openSse = (at: URL): Promise<Peer> => openClient(serverName, sseTransport(at, remote, guarded), secrets, signal, events);
  if (remote.kind === "sse") return openSse(url);
  try {
    const faults = new Faults();
    return await openClient(serverName, httpTransport(url, remote, faults, guarded), secrets, signal, events, faults);
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

function httpTransport(
  url: URL,
  { headers, authProvider }: Remote,
  faults: Faults,
  guarded: FetchLike,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: connectionFetch(faults, guarded),
    ...(authProvider === undefined ? {} : { authProvider }),
  });
}

// Deprecated in the protocol, but some servers speak nothing else.
// eslint-disable-next-line @typescript-eslint/no-deprecated
function sseTransport(url: URL, { headers, authProvider }: Remote, guarded: FetchLike): SSEClientTransport {
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return new SSEClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: guarded,
    ...(authProvider === undefined ? {} : { authProvider }),
  });
}

/** True for a 4xx that may come from an SSE-only server; 401 and 403 are about credentials. */
function mayBeSse(error: unknown): boolean {
  const cause = McpConnectionError.isInstance(error) ? error.cause : undefined;
  const code = cause instanceof StreamableHTTPError ? cause.code : undefined;
  return code !== undefined && code >= 400 && code < 500 && code !== 401 && code !== 403;
}

/** The URL as given, then the one with a last path segment `sse` in place of `mcp`. */
function sseUrls(url: URL): URL[] {
  const other = new URL(url);
  other.pathname = url.pathname.replace(/(^|\/)mcp\/?$/, "$1sse");
  return other.href === url.href ? [url] : [url, other];
}
