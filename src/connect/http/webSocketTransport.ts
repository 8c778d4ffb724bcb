import type { LookupFunction } from "node:net";

import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { JSONRPCMessageSchema, type JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { WebSocket } from "ws";

import { messageOf } from "../../errors.js";
import { TurnClock } from "../../text/slices.js";
import { UnsentError, UNREAD } from "../failures.js";
import { MessageBudget, tooManyBytes } from "../messageBudget.js";

const SUBPROTOCOL = "mcp";
const CLOSE_WAIT_MS = 200;
/* Bytes of answers that a server may leave unread. */
const MAX_UNREAD_BYTES = 1024 * 1024;

/**
 * Speaks MCP over a WebSocket. The SDK's transport needs a global `WebSocket`, which Node 20 lacks,
 * and sends no headers.
 */
export class WebSocketTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #maxMessageBytes: number;
  readonly #lookup: LookupFunction | undefined;
  #socket: WebSocket | undefined;
  #endReason: string | undefined;
  readonly #turn = new TurnClock();

  constructor(
    url: URL,
    headers: Readonly<Record<string, string>>,
    maxMessageBytes: number,
    lookup?: LookupFunction,
  ) {
    this.#url = url;
    this.#headers = headers;
    this.#maxMessageBytes = maxMessageBytes;
    this.#lookup = lookup;
  }

  get endReason(): string | undefined {
    return this.#endReason;
  }

  async start(): Promise<void> {
    const socket = new WebSocket(this.#url, SUBPROTOCOL, {
      headers: { ...this.#headers },
      maxPayload: this.#maxMessageBytes,
      ...(this.#lookup === undefined ? {} : { lookup: this.#lookup }),
    });
    this.#socket = socket;
    socket.on("message", (data) => this.#receive(data));
    socket.on("close", (code, reason) => {
      const text = reason.toString();
      this.#endReason ??= `the WebSocket was closed (${code}${text === "" ? "" : `: ${text}`})`;
      this.onclose?.();
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.on("error", (error) => {
        this.#endReason ??= isTooLarge(error) ? tooManyBytes(this.#maxMessageBytes) : error.message;
        this.onerror?.(error);
        reject(error);
      });
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN)
      return Promise.reject(new UnsentError("The WebSocket is not open"));
    if (!("method" in message) && socket.bufferedAmount > MAX_UNREAD_BYTES) {
      this.#endReason ??= UNREAD;
      socket.terminate();
      return Promise.reject(new Error(UNREAD));
    }
    return new Promise((resolve, reject) => {
      socket.send(JSON.stringify(message), (error) => (error == null ? resolve() : reject(error)));
    });
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined || socket.readyState === WebSocket.CLOSED) return;
    this.#endReason ??= "it was closed";
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.close();
    const timer = setTimeout(() => socket.terminate(), CLOSE_WAIT_MS);
    await closed;
    clearTimeout(timer);
  }

  #receive(data: WebSocket.RawData): void {
    this.#turn.begin();
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);
    try {
      new MessageBudget(this.#maxMessageBytes).take(bytes);
    } catch (error) {
      this.#endReason ??= messageOf(error);
      this.#socket?.terminate();
      return;
    }
    try {
      this.onmessage?.(JSONRPCMessageSchema.parse(JSON.parse(bytes.toString())));
    } catch (error) {
      this.onerror?.(error as Error);
    }
    this.#turn.restIfOver(this.#socket!);
  }
}

function isTooLarge(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
}
