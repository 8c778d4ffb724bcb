import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

import { maskSecrets } from "../../config/variables.js";
import { rejectOnAbort, settleWithin } from "../../text/abort.js";
import { connectError } from "./connectError.js";
import { maskValue, maskWords } from "../maskValue.js";
import type { Peer, PeerEvents } from "../peer.js";
import { requestOn } from "./requestOn.js";
import type { Secrets } from "../secrets.js";

export const CLIENT_INFO = { name: "langchain-mcp-middleware", version: "0.1.0" } as const;

const TERMINATE_SESSION_MS = 1_000;
const EXIT_WAIT_MS = 200;
const CLOSE_MS = 3_000;
const MAX_STDERR_LINES = 8;
const MAX_STDERR_CHARS = 8_000;
/** The SDK's error for a response that came after its request had ended. */
const STRAY_ANSWER = /unknown message ID/;

/** A transport, with everything that only its kind knows. */
export interface Wire {
  readonly transport: Transport;
  /** Closes when the connection is gone, so that its errors are mere stray lines. */
  readonly closesAtEnd?: boolean;
  /** Why the connection has ended, or is unusable although it is still open. */
  readonly endReason?: () => string | undefined;
  /** Whether the connection is unusable although it is still open. */
  readonly isBroken?: () => boolean;
  /** True once notifications no longer arrive. */
  readonly isDeaf?: () => boolean;
  /** Whether an error of the transport means that the connection is gone. */
  readonly isEnd?: (error: Error) => boolean;
  /** Called for each response. */
  readonly onAnswer?: (requestId: string | number) => void;
  /** The last characters the server wrote to stderr. */
  readonly stderrTail?: () => string;
  /** How many lines on stdout were no MCP messages. */
  readonly strayLines?: () => number;
  /** Waits for the exit code of a program that is about to end. */
  readonly settled?: (limitMs: number) => Promise<void>;
  /** Whether the server keeps an MCP session for us. */
  readonly hasSession?: () => boolean;
  /** Ends the MCP session with the server. */
  readonly endSession?: () => Promise<void>;
}

/**
 * Opens an SDK client over a transport.
 * @throws {McpMiddlewareError} with the reason; nothing is left behind.
 */
export async function openClient(
  serverName: string,
  wire: Wire,
  secrets: Secrets,
  signal: AbortSignal,
  events: PeerEvents,
): Promise<Peer> {
  const { transport } = wire;
  const client = new Client(CLIENT_INFO);
  const peer = makePeer(client, wire, secrets);
  let isOpen = false;
  client.onclose = () => {
    if (isOpen) events.onEnd();
  };
  client.onerror = (error) => {
    if (!isOpen) return;
    if (wire.isEnd?.(error) === true) events.onEnd();
    else if (wire.closesAtEnd !== true && !STRAY_ANSWER.test(error.message))
      events.onTrouble(error);
  };
  // The SDK's client does not pass these on; this handler runs before its own.
  transport.onmessage = (message) => {
    if ("method" in message) {
      if (message.method === "notifications/cancelled")
        events.onNotification(message.method, message.params ?? {});
    } else if (message.id !== undefined) wire.onAnswer?.(message.id);
  };
  client.fallbackNotificationHandler = async ({ method, params }) => {
    events.onNotification(method, peer.maskContent?.(params ?? {}) ?? params ?? {});
  };
  try {
    await rejectOnAbort(client.connect(transport, { signal, timeout: 2 ** 31 - 1 }), signal);
    isOpen = true;
    return peer;
  } catch (error) {
    // The exit code, which explains more, may arrive a moment after the failed write.
    if (!signal.aborted) await wire.settled?.(EXIT_WAIT_MS);
    const reason = connectError(serverName, error, wire, peer);
    await peer.close();
    throw reason;
  }
}

function makePeer(client: Client, wire: Wire, { all, credentials }: Secrets): Peer {
  const mask = (text: string): string => maskSecrets(text, all);
  const maskCredentials = (text: string): string => maskSecrets(text, credentials);
  const maskList = <Value>(value: Value): Value => maskWords(value, maskCredentials) as Value;
  const maskContent = <Value>(value: Value): Value => maskValue(value, maskCredentials) as Value;
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    if (wire.endSession !== undefined)
      await settleWithin(Promise.allSettled([wire.endSession()]), TERMINATE_SESSION_MS);
    // The SDK's client drops its transport after a failed handshake, so both are closed.
    const closings = [() => client.close(), () => wire.transport.close()].map((end) =>
      Promise.resolve().then(end),
    );
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
      client.transport === undefined || wire.isBroken?.() === true
        ? (wire.endReason?.() ?? "the connection was closed")
        : undefined,
    announces: (what) => {
      const capabilities = client.getServerCapabilities();
      if (wire.isDeaf?.() === true || capabilities === undefined) return false;
      return what === "subscriptions"
        ? capabilities.resources?.subscribe === true
        : capabilities[what]?.listChanged === true;
    },
    stderrTail: () => lastLines(mask(wire.stderrTail?.() ?? "").slice(-MAX_STDERR_CHARS)),
    hasSession: () => wire.hasSession?.() === true,
    close: () => (closing ??= close()),
  };
}

/** A JavaScript stack frame; those must not push out the line with the error. */
const STACK_FRAME = /^\s+at .*:\d+:\d+\)?\s*$/;

function lastLines(text: string): string {
  const lines = text
    .trim()
    .split("\n")
    .filter((line) => line.trim() !== "" && !(line.length < 500 && STACK_FRAME.test(line)));
  return lines.slice(-MAX_STDERR_LINES).join("\n");
}
