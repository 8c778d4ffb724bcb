import type { UrlGuardSettings } from "../../config/securityOptions.js";
import { checkUrl, type TransportSettings } from "../../config/transport.js";
import { McpPolicyError } from "../../errors.js";
import { openClient } from "../open/openClient.js";
import type { Peer, PeerEvents } from "../peer.js";
import type { Secrets } from "../secrets.js";
import { guardedLookup } from "./guardedFetch.js";
import { UrlGuard } from "./urlGuard.js";
import { WebSocketTransport } from "./webSocketTransport.js";

/** Opens a remote server over a WebSocket. @throws {McpMiddlewareError} with the reason. */
export async function openWebSocket(
  serverName: string,
  { url: written, headers }: Extract<TransportSettings, { kind: "websocket" }>,
  urlGuard: UrlGuardSettings | undefined,
  maxMessageBytes: number,
  secrets: Secrets,
  signal: AbortSignal,
  events: PeerEvents,
): Promise<Peer> {
  const url = checkUrl(serverName, written, true);
  const guard = urlGuard === undefined ? undefined : new UrlGuard(urlGuard, serverName, url);
  await checkFirst(guard, url, signal);
  const transport = new WebSocketTransport(
    url,
    headers,
    maxMessageBytes,
    guard === undefined ? undefined : guardedLookup(guard, url.protocol),
  );
  const wire = { transport, closesAtEnd: true, endReason: () => transport.endReason };
  return openClient(serverName, wire, secrets, signal, events);
}

/**
 * Checks the configured URL. A failed DNS look-up is left to the transport, whose error is clearer.
 */
async function checkFirst(
  guard: UrlGuard | undefined,
  url: URL,
  signal: AbortSignal,
): Promise<void> {
  try {
    await guard?.check(url, signal);
  } catch (error) {
    if (McpPolicyError.isInstance(error)) throw error;
    signal.throwIfAborted();
  }
}
