import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";

import { getDefaultEnvironment } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import spawn from "cross-spawn";

import type { TransportSettings } from "../../config/transport.js";
import { TOO_LARGE } from "../failures.js";
import { endGroup, forgetGroup, watchGroup } from "./processGroup.js";

/** How a stdio server is started. Variables are filled in. */
export type StdioParameters = Omit<Extract<TransportSettings, { kind: "stdio" }>, "kind">;

/* Twice what is shown: what is cut away may have cut a secret, which is not known again then. */
const MAX_STDERR_CHARS = 16_000;
/* From the exit of a child until its pipes are given up. */
const DRAIN_MS = 200;

/* What programs on Windows need to be found and to run, besides the SDK's defaults. */
const WINDOWS_ENVIRONMENT = ["PATHEXT", "COMSPEC", "WINDIR", "PROGRAMDATA", "PROGRAMFILES(X86)", "COMMONPROGRAMFILES", "TMP"];

/** The environment of a stdio child: the SDK's small default, the inherited names, then `env`. */
export function childEnvironment(
  { env, inheritEnv }: Pick<StdioParameters, "env" | "inheritEnv">,
  platform: NodeJS.Platform = process.platform,
  own: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const names = platform === "win32" ? [...WINDOWS_ENVIRONMENT, ...inheritEnv] : inheritEnv;
  return { ...getDefaultEnvironment(), ...inheritedEnvironment({ inheritEnv: names }, own), ...env };
}

/** The variables of this process that a child also gets. */
export function inheritedEnvironment(
  { inheritEnv }: Pick<StdioParameters, "inheritEnv">,
  own: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  return Object.fromEntries(inheritEnv.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]] as const])));
}

/**
 * Speaks MCP with a child process over stdin and stdout.
 *
 * Unlike the SDK's transport: the child leads a process group of its own, so that `close()` also ends what it started;
 * stderr is read from the first byte and its tail kept; neither child nor pipes keep this process alive.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #parameters: StdioParameters;
  readonly #buffer = new ReadBuffer();
  #child: ChildProcess | undefined;
  #stderr = "";
  #endReason: string | undefined;
  #closing: Promise<void> | undefined;
  #hasEnded = false;
  #hasExited = false;
  #strayLines = 0;

  constructor(parameters: StdioParameters) {
    this.#parameters = parameters;
  }

  /** The last characters the child wrote to stderr. May hold secrets. */
  get stderrTail(): string {
    return this.#stderr;
  }

  /** Why the child ended, as far as is known. */
  get endReason(): string | undefined {
    return this.#endReason ?? (this.#closing === undefined ? undefined : "it was closed");
  }

  /** How many lines on stdout were no MCP messages. */
  get strayLines(): number {
    return this.#strayLines;
  }

  /** Process id of the child, which is also the id of its process group. */
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
      // Attached before anything can go wrong: without a listener it would end the process.
      child.on("error", (error) => {
        this.#endReason ??= error.message;
        reject(error);
      });
    });
    // Out of file descriptors there is neither a process nor a pipe.
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
      // A signal while closing is our own.
      if (signal === null) this.#endReason ??= `it exited with code ${code}`;
      else if (this.#closing === undefined) this.#endReason ??= `it was ended by ${signal}`;
      // What it started may hold its pipes open; that must not hide its end.
      setTimeout(() => this.#ended(child), DRAIN_MS).unref();
    });
    child.once("close", () => this.#ended(child));
    await spawned;
  }

  /** Waits for the end of a child that is about to end, so that its reason is known. */
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
        new Error(`The server cannot be written to${this.#endReason === undefined ? "" : `: ${this.#endReason}`}`),
      );
    }
    // A failed write is told by the stream's "error" event; only a full pipe is waited for.
    if (stdin.write(serializeMessage(message))) return Promise.resolve();
    return new Promise((resolve) => {
      const onFree = (): void => {
        stdin.off("drain", onFree).off("close", onFree);
        resolve();
      };
      stdin.once("drain", onFree).once("close", onFree);
    });
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
    this.#buffer.clear();
  }

  #receive(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk);
    } catch (error) {
      this.#endReason ??= TOO_LARGE;
      this.onerror?.(error as Error);
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // A line that is no MCP message, such as a stray print: the next line may be one.
        this.#strayLines += 1;
        this.onerror?.(error as Error);
      }
    }
  }

  #keepStderr(text: string): void {
    if (this.#parameters.copyStderr) process.stderr.write(text);
    this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_CHARS);
  }
}
