import pLimit, { type LimitFunction } from "p-limit";

import type { ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError } from "../errors.js";
import { rejectOnAbort, settleWithin } from "../text/abort.js";
import type { Breaker, Outcome } from "./breaker.js";
import { closedError, openBreakerError, requestError } from "./connectionErrors.js";
import { classifyFailure, mayRepeat, SESSION_UNKNOWN } from "./failures.js";
import type { Lifecycle } from "./lifecycle.js";
import type { Peer, PeerRequest, RawResult } from "./peer.js";

/** A request as the gate makes it. */
export interface ServerRequest extends Omit<PeerRequest, "timeoutMs"> {
  /** What was wanted, for errors: `the call of "search"`. */
  readonly subject: string;
  /** The server's own name of the tool that is called. */
  readonly toolName?: string | undefined;
  /** Milliseconds the server may stay silent. Default: `requestTimeoutMs` of the server. */
  readonly timeoutMs?: number | undefined;
  /** Whether it may run twice. */
  readonly isRepeatable: boolean;
  /** Runs when the request is about to be sent, after all waiting. What it throws is thrown, and nothing is sent. */
  readonly beforeSend?: (() => void) | undefined;
}

/** Milliseconds for answers that are still due from a server that has lost the session. */
const ANSWER_MS = 1_000;

/**
 * The requests to one server: limit → open peer → breaker → send, then what a failure says about the connection.
 *
 * A request that a lost session answered is sent once more on a new connection; one whose connection broke only when it is
 * repeatable; one that timed out never.
 */
export class Requests {
  readonly #settings: ServerSettings;
  readonly #lifecycle: Lifecycle;
  readonly #breaker: Breaker;
  readonly #limit: LimitFunction;
  readonly #running = new Set<Promise<unknown>>();
  /** Requests in flight, by peer. */
  readonly #sent = new Map<Peer, Set<Promise<unknown>>>();
  #isDraining = false;

  constructor(settings: ServerSettings, lifecycle: Lifecycle, breaker: Breaker) {
    this.#settings = settings;
    this.#lifecycle = lifecycle;
    this.#breaker = breaker;
    this.#limit = pLimit(settings.maxConcurrentCalls);
  }

  /**
   * Sends a request, at most `maxConcurrentCalls` at the same time. Credentials are masked in the result.
   *
   * @throws {McpMiddlewareError} when it was not answered, the abort reason when its signal aborts.
   */
  async send(request: ServerRequest): Promise<RawResult> {
    if (this.#isDraining) throw closedError(this.#settings.serverName, "closed");
    const turn = this.#limit(() => this.#inTurn(request));
    this.#running.add(turn);
    const done = (): void => void this.#running.delete(turn);
    turn.then(done, done);
    return rejectOnAbort(turn, request.signal);
  }

  /** Sends a request on an open peer, through the breaker, without waiting for a turn. */
  async sendOn(peer: Peer, request: ServerRequest): Promise<RawResult> {
    const { signal } = request;
    const { serverName, requestTimeoutMs } = this.#settings;
    const attempt = async (): Promise<Outcome<RawResult>> => {
      try {
        return { value: await this.#track(peer, peer.request({ ...request, timeoutMs: request.timeoutMs ?? requestTimeoutMs })) };
      } catch (error) {
        // A request that its caller gave up says nothing about the server.
        return { error, isFailure: signal?.aborted !== true && this.#isFailure(error, peer) };
      }
    };
    try {
      const result = await this.#breaker.execute(attempt, (untilMs) => openBreakerError(serverName, untilMs));
      this.#lifecycle.hasAnswered = true;
      return peer.maskContent?.(result) ?? result;
    } catch (error) {
      if (signal?.aborted !== true) this.#judge(error, peer);
      throw error;
    }
  }

  /** Refuses new requests from now on, and waits at most `limitMs` for those in flight. */
  async drain(limitMs: number): Promise<void> {
    this.#isDraining = true;
    if (limitMs > 0 && this.#running.size > 0) await settleWithin(Promise.allSettled(this.#running), limitMs);
  }

  async #inTurn(request: ServerRequest): Promise<RawResult> {
    const { signal } = request;
    signal?.throwIfAborted();
    const peer = await this.#peer(signal);
    request.beforeSend?.();
    let failed = peer;
    try {
      return await this.sendOn(peer, request).catch(async (cause: unknown) => {
        if (signal?.aborted === true || !mayRepeat(classifyFailure(cause, peer), request.isRepeatable)) throw cause;
        await rejectOnAbort(this.#lifecycle.checking ?? Promise.resolve(), signal);
        const next = await this.#peer(signal).catch(() => undefined);
        if (next === undefined) throw cause;
        failed = next;
        return this.sendOn(next, request);
      });
    } catch (cause) {
      signal?.throwIfAborted();
      throw requestError(cause, request, this.#settings, failed);
    }
  }

  /** Taken when it is the request's turn: the server may have been reconnected while it waited. */
  #peer(signal: AbortSignal | undefined): Promise<Peer> {
    const { current } = this.#lifecycle;
    return current === undefined ? rejectOnAbort(this.#lifecycle.peer(), signal) : Promise.resolve(current);
  }

  /**
   * Whether a failed request counts for the breaker. One break counts once, however many requests it ends, and a lost
   * session not at all: the series that reconnects does.
   */
  #isFailure(error: unknown, peer: Peer): boolean {
    const failure = classifyFailure(error, peer);
    if (failure === "timeout") return true;
    const { checking, current } = this.#lifecycle;
    return failure === "transport" && checking === undefined && current === peer && peer.endReason() === undefined;
  }

  /** Tells the connection what a failure says about it. */
  #judge(error: unknown, peer: Peer): void {
    if (McpAuthRequiredError.isInstance(error)) this.#lifecycle.refuse(peer, error, this.#answers(peer));
    switch (classifyFailure(error, peer)) {
      case "answered":
        this.#lifecycle.hasAnswered = true;
        break;
      case "session-lost":
        this.#lifecycle.lose(peer, SESSION_UNKNOWN, this.#answers(peer));
        break;
      case "transport":
        if (peer.endReason() !== undefined) this.#lifecycle.lose(peer);
        else this.#lifecycle.check(peer, error);
        break;
      case "timeout":
        this.#lifecycle.check(peer, error);
        break;
      case "unauthorized":
        break;
    }
  }

  /** Settles when the requests in flight have their answers, where the server still responds. */
  #answers(peer: Peer): Promise<unknown> {
    const sent = this.#sent.get(peer);
    return sent === undefined || this.#isDraining ? Promise.resolve() : settleWithin(Promise.allSettled(sent), ANSWER_MS);
  }

  #track(peer: Peer, request: Promise<RawResult>): Promise<RawResult> {
    const sent = this.#sent.get(peer) ?? new Set();
    this.#sent.set(peer, sent.add(request));
    const done = (): void => {
      sent.delete(request);
      if (sent.size === 0 && this.#sent.get(peer) === sent) this.#sent.delete(peer);
    };
    request.then(done, done);
    return request;
  }
}
