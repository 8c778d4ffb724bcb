import pLimit, { type LimitFunction } from "p-limit";

import type { ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError } from "../errors.js";
import { rejectOnAbort, settleWithin } from "../text/abort.js";
import type { Breaker, Outcome } from "./breaker.js";
import { closedError, openBreakerError, requestError } from "./connectionErrors.js";
import { classifyFailure, httpStatusOf, mayRepeat, SESSION_UNKNOWN } from "./failures.js";
import type { Lifecycle } from "./lifecycle.js";
import type { Peer, PeerRequest, RawResult } from "./peer.js";

export interface ServerRequest extends Omit<PeerRequest, "timeoutMs"> {
  /** The request in words, for errors: `the call of "search"`. */
  readonly subject: string;
  readonly toolName?: string | undefined;
  /** Milliseconds without an answer. Default: `requestTimeoutMs` of the server. */
  readonly timeoutMs?: number | undefined;
  /** Whether it is safe to run twice. */
  readonly isRepeatable: boolean;
  /** Runs right before the request is sent; an error that it throws cancels the request. */
  readonly beforeSend?: (() => void) | undefined;
}

/** Milliseconds to wait for outstanding answers of a server that has lost the session. */
const ANSWER_MS = 1_000;

/**
 * Sends the requests to one server: limit → open peer → breaker → send → judge the failure. Sends a
 * request again on a new connection if the session was lost; if the connection broke, only a
 * repeatable one; after a timeout never.
 */
export class Requests {
  readonly #settings: ServerSettings;
  readonly #lifecycle: Lifecycle;
  readonly #breaker: Breaker;
  readonly #limit: LimitFunction;
  readonly #running = new Set<Promise<unknown>>();
  readonly #sent = new Map<Peer, Set<Promise<unknown>>>();
  #isDraining = false;

  constructor(settings: ServerSettings, lifecycle: Lifecycle, breaker: Breaker) {
    this.#settings = settings;
    this.#lifecycle = lifecycle;
    this.#breaker = breaker;
    this.#limit = pLimit(settings.maxConcurrentCalls);
  }

  /**
   * Sends a request, at most `maxConcurrentCalls` at a time. Credentials are masked in the result.
   * @throws {McpMiddlewareError} when it fails; the abort reason when its signal aborts.
   */
  async send(request: ServerRequest): Promise<RawResult> {
    if (this.#isDraining) throw closedError(this.#settings.serverName, "closed");
    const turn = this.#limit(() => this.#inTurn(request));
    this.#running.add(turn);
    const done = (): void => void this.#running.delete(turn);
    turn.then(done, done);
    return rejectOnAbort(turn, request.signal);
  }

  /** Sends a request on an open peer through the breaker, without the concurrency limit. */
  async sendOn(peer: Peer, request: ServerRequest): Promise<RawResult> {
    const { signal } = request;
    const { serverName, requestTimeoutMs } = this.#settings;
    const attempt = async (): Promise<Outcome<RawResult>> => {
      try {
        return {
          value: await this.#track(
            peer,
            peer.request({ ...request, timeoutMs: request.timeoutMs ?? requestTimeoutMs }),
          ),
        };
      } catch (error) {
        // A cancelled request says nothing about the server.
        return { error, isFailure: signal?.aborted !== true && this.#isFailure(error, peer) };
      }
    };
    try {
      const result = await this.#breaker.execute(attempt, (untilMs) =>
        openBreakerError(serverName, untilMs),
      );
      this.#lifecycle.hasAnswered = true;
      return peer.maskContent?.(result) ?? result;
    } catch (error) {
      if (signal?.aborted !== true) this.#judge(error, peer);
      throw error;
    }
  }

  /** Refuses new requests, and waits at most `limitMs` for those in flight. */
  async drain(limitMs: number): Promise<void> {
    this.#isDraining = true;
    if (limitMs > 0 && this.#running.size > 0)
      await settleWithin(Promise.allSettled(this.#running), limitMs);
  }

  async #inTurn(request: ServerRequest): Promise<RawResult> {
    const { signal } = request;
    signal?.throwIfAborted();
    const peer = await this.#peer(signal);
    const first = await this.#attempt(peer, request);
    if ("result" in first) return first.result;
    const next = mayRepeat(classifyFailure(first.cause, peer), request.isRepeatable)
      ? await this.#nextPeer(signal)
      : undefined;
    if (next === undefined) throw requestError(first.cause, request, this.#settings, peer);
    const second = await this.#attempt(next, request);
    if ("result" in second) return second.result;
    throw requestError(second.cause, request, this.#settings, next);
  }

  /** Sends once. @throws whatever `beforeSend` throws, and the abort reason. */
  async #attempt(
    peer: Peer,
    request: ServerRequest,
  ): Promise<{ readonly result: RawResult } | { readonly cause: unknown }> {
    request.beforeSend?.();
    try {
      return { result: await this.sendOn(peer, request) };
    } catch (cause) {
      request.signal?.throwIfAborted();
      return { cause };
    }
  }

  /** The peer after a break: a check that is under way is waited for. */
  async #nextPeer(signal: AbortSignal | undefined): Promise<Peer | undefined> {
    await rejectOnAbort(this.#lifecycle.checking ?? Promise.resolve(), signal);
    return this.#peer(signal).catch(() => undefined);
  }

  /** The peer at the time the request is sent: the server may have reconnected while it waited. */
  #peer(signal: AbortSignal | undefined): Promise<Peer> {
    const { current } = this.#lifecycle;
    return current === undefined
      ? rejectOnAbort(this.#lifecycle.peer(), signal)
      : Promise.resolve(current);
  }

  /**
   * Whether a failed request counts for the breaker. One break counts once, a lost session not at
   * all.
   */
  #isFailure(error: unknown, peer: Peer): boolean {
    const failure = classifyFailure(error, peer);
    if (failure === "timeout") return true;
    // A web server that answers is there: a ping says whether the MCP server behind it is.
    if (httpStatusOf(error) !== undefined) return false;
    const { checking, current } = this.#lifecycle;
    return (
      (failure === "transport" || failure === "unsent") &&
      checking === undefined &&
      current === peer &&
      peer.endReason() === undefined
    );
  }

  #judge(error: unknown, peer: Peer): void {
    if (McpAuthRequiredError.isInstance(error))
      this.#lifecycle.refuse(peer, error, this.#answers(peer));
    switch (classifyFailure(error, peer)) {
      case "answered":
        this.#lifecycle.hasAnswered = true;
        break;
      case "session-lost":
        this.#lifecycle.lose(peer, SESSION_UNKNOWN, this.#answers(peer));
        break;
      case "too-large":
        if (peer.endReason() !== undefined) this.#lifecycle.lose(peer);
        break;
      case "busy":
        break;
      case "unsent":
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

  /** Settles when the requests in flight are answered, at the latest after {@link ANSWER_MS}. */
  #answers(peer: Peer): Promise<unknown> {
    const sent = this.#sent.get(peer);
    return sent === undefined || this.#isDraining
      ? Promise.resolve()
      : settleWithin(Promise.allSettled(sent), ANSWER_MS);
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
