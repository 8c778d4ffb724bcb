import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";

import { deserializeMessage, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import spawn from "cross-spawn";

import type { TransportSettings } from "../../config/transport.js";
import { messageOf } from "../../errors.js";
import { UnsentError, UNREAD } from "../failures.js";
import type { Wire } from "../open/openClient.js";
import { TurnClock } from "../../text/slices.js";
import { childEnvironment } from "./environment.js";
import { LineSplitter } from "./lineSplitter.js";
import { endGroup, forgetGroup, watchGroup } from "./processGroup.js";

/** How a stdio server is started, with its variables filled in. */
export type StdioParameters = Omit<Extract<TransportSettings, { kind: "stdio" }>, "kind">;

/* Twice of what is shown: a secret that is cut in half would not be masked. */
const MAX_STDERR_CHARS = 16_000;
/* Milliseconds from the child's exit until its pipes are destroyed. */
const DRAIN_MS = 200;
/* Bytes of answers that a server may leave unread. */
const MAX_UNREAD_BYTES = 1024 * 1024;

/**
 * Speaks MCP with a child process over stdin and stdout. Unlike the SDK's transport: `close()` ends
 * the child's whole process group, the last stderr output is kept, and neither child nor pipes keep
 * this process alive.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #parameters: StdioParameters;
  readonly #lines: LineSplitter;
  #drained: Promise<void> | undefined;
  #child: ChildProcess | undefined;
  #stderr = "";
  #endReason: string | undefined;
  #closing: Promise<void> | undefined;
  #hasEnded = false;
  #hasExited = false;
  #strayLines = 0;
  readonly #turn = new TurnClock();

  constructor(parameters: StdioParameters, maxMessageBytes: number) {
    this.#parameters = parameters;
    this.#lines = new LineSplitter(maxMessageBytes);
  }

  /** The last 16,000 characters of stderr. May hold secrets. */
  get stderrTail(): string {
    return this.#stderr;
  }

  get endReason(): string | undefined {
    return this.#endReason ?? (this.#closing === undefined ? undefined : "it was closed");
  }

  get strayLines(): number {
    return this.#strayLines;
  }

  /** Process id of the child and of its process group. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<void> {
    const { command, args, cwd } = this.#parameters;
    const child = spawn(command, [...args], {
      cwd,
      env: childEnvironment(this.#parameters),
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    const spawned = new Promise<void>((resolve, reject) => {
      child.once("spawn", () => {
        watchGroup(child.pid!);
        resolve();
      });
      // Attached early: an "error" event without a listener ends this process.
      child.on("error", (error) => {
        this.#endReason ??= error.message;
        reject(error);
      });
    });
    // Out of file descriptors there is neither a pid nor a pipe.
    if (child.pid === undefined) return spawned;
    this.#child = child;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => this.#keepStderr(text));
    child.stdout!.on("data", (chunk: Buffer) => this.#receive(chunk));
    for (const stream of [child.stdin!, child.stdout!, child.stderr!]) {
      stream.on("error", (error) => this.onerror?.(error));
      (stream as unknown as Socket).unref();
    }
    child.unref();
    child.once("exit", (code, signal) => {
      this.#hasExited = true;
      // During `close()` the signal is our own.
      if (signal === null) this.#endReason ??= `it exited with code ${code}`;
      else if (this.#closing === undefined) this.#endReason ??= `it was ended by ${signal}`;
      // A grandchild may hold the pipes open, and "close" would not come.
      setTimeout(() => this.#ended(child), DRAIN_MS).unref();
    });
    child.once("close", () => this.#ended(child));
    await spawned;
  }

  /** Waits for a child that is about to exit, so that its reason is known. */
  async settled(limitMs: number): Promise<void> {
    const end = performance.now() + limitMs;
    while (!this.#hasExited && this.#endReason === undefined && performance.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 10));
  }

  #ended(child: ChildProcess): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    if (child.pid !== undefined && this.#closing === undefined) void endGroup(child);
    this.onclose?.();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (stdin === undefined || stdin === null || !stdin.writable) {
      return Promise.reject(
        new UnsentError(
          `The server cannot be written to${this.#endReason === undefined ? "" : `: ${this.#endReason}`}`,
        ),
      );
    }
    // The stream's "error" event reports a failed write; only a full pipe is waited for.
    if (stdin.write(serializeMessage(message))) return Promise.resolve();
    if (!("method" in message) && stdin.writableLength > MAX_UNREAD_BYTES) {
      this.#endReason ??= UNREAD;
      void this.close();
    }
    // One waiter for all writes.
    this.#drained ??= new Promise<void>((resolve) => {
      const onFree = (): void => {
        stdin.off("drain", onFree).off("close", onFree);
        this.#drained = undefined;
        resolve();
      };
      stdin.once("drain", onFree).once("close", onFree);
    });
    return this.#drained;
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    child.stdin?.end();
    await endGroup(child);
    forgetGroup(child.pid);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#turn.begin();
    let lines: string[];
    try {
      lines = this.#lines.push(chunk);
    } catch (error) {
      this.#endReason ??= messageOf(error);
      this.onerror?.(error as Error);
      void this.close();
      return;
    }
    for (const line of lines) {
      try {
        this.onmessage?.(deserializeMessage(line));
      } catch (error) {
        // A line that is no MCP message, such as a stray print; the next one may be a message.
        this.#strayLines += 1;
        this.onerror?.(error as Error);
      }
    }
    this.#turn.restIfOver(this.#child!.stdout!);
  }

  #keepStderr(text: string): void {
    if (this.#parameters.copyStderr) process.stderr.write(text);
    this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_CHARS);
  }
}

/** A transport for a program, with what it knows of its end. */
export function stdioWire(parameters: StdioParameters, maxMessageBytes: number): Wire {
  const transport = new StdioTransport(parameters, maxMessageBytes);
  return {
    transport,
    closesAtEnd: true,
    endReason: () => transport.endReason,
    stderrTail: () => transport.stderrTail,
    strayLines: () => transport.strayLines,
    settled: (limitMs) => transport.settled(limitMs),
  };
}
