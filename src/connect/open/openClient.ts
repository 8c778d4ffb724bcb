import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SseError, SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";

import { maskSecrets } from "../../config/variables.js";
import { rejectOnAbort, settleWithin } from "../../text/abort.js";
import { connectError } from "./connectError.js";
import { UNANSWERED } from "../failures.js";
import type { FetchEvents } from "../http/connectionFetch.js";
import { maskValue, maskWords } from "../maskValue.js";
import type { Peer, PeerEvents } from "../peer.js";
import { requestOn } from "./requestOn.js";
import type { Secrets } from "../secrets.js";
import { StdioTransport } from "../stdio/stdioTransport.js";
import { WebSocketTransport } from "../http/webSocketTransport.js";

/** Client name and version in `initialize`. */
export const CLIENT_INFO = { name: "langchain-mcp-middleware", version: "0.1.0" } as const;

const TERMINATE_SESSION_MS = 1_000;
const EXIT_WAIT_MS = 200;
const CLOSE_MS = 3_000;
const MAX_STDERR_LINES = 8;
const MAX_STDERR_CHARS = 8_000;
const PARSE_MS = 20;
/** The SDK's error for a response that came after its request had ended. */
const STRAY_ANSWER = /unknown message ID/;

/**
 * Opens an SDK client over a transport. A failed handshake leaves nothing behind.
 *
 * @throws {McpMiddlewareError} with the reason.
 */
export async function openClient(
  serverName: string,
  transport: Transport,
  secrets: Secrets,
  signal: AbortSignal,
  events: PeerEvents,
  faults = new Faults(),
): Promise<Peer> {
  const client = new Client(CLIENT_INFO);
  const peer = makePeer(client, transport, secrets, faults);
  let isOpen = false;
  client.onclose = () => {
    if (isOpen) events.onEnd();
  };
  client.onerror = (error) => {
    if (!isOpen) return;
    if (error instanceof SseError) {
      faults.brokenBecause ??= "its event stream ended";
      events.onEnd();
    } else if (!tellsItsEnd(transport) && !STRAY_ANSWER.test(error.message)) events.onTrouble(error);
  };
  // The SDK's client does not pass these on; this handler runs before its own.
  transport.onmessage = (message) => {
    if ("method" in message) {
      if (message.method === "notifications/cancelled") events.onNotification(message.method, message.params ?? {});
    } else if (message.id !== undefined) faults.answered(message.id);
  };
  client.fallbackNotificationHandler = async ({ method, params }) => {
    events.onNotification(method, peer.maskContent?.(params ?? {}) ?? params ?? {});
  };
  faults.onUnanswered = (id) => {
    const error = { code: Number(ErrorCode.ConnectionClosed), message: UNANSWERED, data: UNANSWERED };
    transport.onmessage?.({ jsonrpc: "2.0", id, error });
  };
  try {
    await rejectOnAbort(client.connect(transport, { signal, timeout: 2 ** 31 - 1 }), signal);
    isOpen = true;
    return peer;
  } catch (error) {
    const stdio = transport instanceof StdioTransport ? transport : undefined;
    // The exit code, which explains more, may arrive a moment after the failed write.
    if (!signal.aborted) await stdio?.settled(EXIT_WAIT_MS);
    const reason = connectError(serverName, error, transport, peer);
    await peer.close();
    throw reason;
  }
}

/** True for transports that close when the connection is gone, so that their errors are mere stray lines. */
function tellsItsEnd(transport: Transport): boolean {
  return transport instanceof StdioTransport || transport instanceof WebSocketTransport;
}

/** Failures of a connection that its transport does not report. */
export class Faults implements FetchEvents {
  /** Why the connection is unusable although it is still open. */
  brokenBecause: string | undefined;
  /** True once notifications no longer arrive. */
  isDeaf = false;
  /** Called for a request that will never be answered. */
  onUnanswered: (requestId: string | number) => void = () => undefined;
  readonly #open = new Set<string | number>();
  /** Requests whose stream ended and may be resumed. */
  readonly #suspended = new Set<string | number>();

  onSent(requestId: string | number): void {
    this.#open.add(requestId);
  }

  answered(requestId: string | number): void {
    this.#open.delete(requestId);
    this.#suspended.delete(requestId);
  }

  onStreamEnd(requestId: string | number, isResumable: boolean): void {
    // The last chunk may still be in the parser.
    setTimeout(() => {
      if (!this.#open.has(requestId)) return;
      if (isResumable) this.#suspended.add(requestId);
      else this.#giveUp(requestId);
    }, PARSE_MS).unref();
  }

  onResumeRefused(): void {
    for (const requestId of this.#suspended) this.#giveUp(requestId);
  }

  #giveUp(requestId: string | number): void {
    this.#suspended.delete(requestId);
    if (this.#open.delete(requestId)) this.onUnanswered(requestId);
  }

  onStreamGivenUp(): void {
    this.isDeaf = true;
  }
}

function makePeer(client: Client, transport: Transport, { all, credentials }: Secrets, faults: Faults): Peer {
  const mask = (text: string): string => maskSecrets(text, all);
  const maskCredentials = (text: string): string => maskSecrets(text, credentials);
  const maskList = <Value>(value: Value): Value => maskWords(value, maskCredentials) as Value;
  const maskContent = <Value>(value: Value): Value => maskValue(value, maskCredentials) as Value;
  const stdio = transport instanceof StdioTransport ? transport : undefined;
  const telling = transport instanceof WebSocketTransport ? transport : stdio;
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    if (transport instanceof StreamableHTTPClientTransport && transport.sessionId !== undefined) {
      await settleWithin(Promise.allSettled([transport.terminateSession()]), TERMINATE_SESSION_MS);
    }
    // The SDK's client drops its transport after a failed handshake, so both are closed.
    const closings = [() => client.close(), () => transport.close()].map((end) => Promise.resolve().then(end));
    // A custom transport may hang in `close()`.
    await settleWithin(Promise.allSettled(closings), CLOSE_MS);
  };
  return {
    client,
    request: (request) => requestOn(client, request),
    mask,
    get maskContent() {
      // Tokens are added later.
      return credentials.length === 0 ? undefined : maskContent;
    },
    get maskList() {
      return credentials.length === 0 ? undefined : maskList;
    },
    endReason: () =>
      faults.brokenBecause ?? (client.transport === undefined ? (telling?.endReason ?? "the connection was closed") : undefined),
    announces: (what) => {
      const capabilities = client.getServerCapabilities();
      if (faults.isDeaf || capabilities === undefined) return false;
      return what === "subscriptions" ? capabilities.resources?.subscribe === true : capabilities[what]?.listChanged === true;
    },
    stderrTail: () => lastLines(mask(stdio?.stderrTail ?? "").slice(-MAX_STDERR_CHARS)),
    hasSession: () =>
      transport instanceof StreamableHTTPClientTransport
        ? transport.sessionId !== undefined
        : // Deprecated in the protocol and still what some servers speak.
          // eslint-disable-next-line @typescript-eslint/no-deprecated
          transport instanceof SSEClientTransport,
    close: () => (closing ??= close()),
  };
}

/** A JavaScript stack frame; those must not push out the line with the error. */
const STACK_FRAME = /^\s+at .*:\d+:\d+\)?\s*$/;

function lastLines(text: string): string {
  const lines = text
    .trim()
    .split("\n")
    .filter((line) => line.trim() !== "" && !STACK_FRAME.test(line));
  return lines.slice(-MAX_STDERR_LINES).join("\n");
}
