import pLimit, { type LimitFunction } from "p-limit";

import type { ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConnectionError, messageOf } from "../errors.js";
import { rejectOnAbort, within } from "../text/abort.js";
import { Breaker, type BreakerSettings } from "./breaker.js";
import { closedError, openBreakerError } from "./connectionErrors.js";
import { classifyFailure, mayRepeat } from "./failures.js";
import type { Session } from "./peer.js";

/** What a {@link Traffic} is made of. */
export interface TrafficParts {
  readonly settings: ServerSettings;
  readonly breaker: BreakerSettings;
  /** The session that is open now. */
  readonly current: () => Session | undefined;
  /** The session, opened when it is not yet. */
  readonly session: () => Promise<Session>;
  /** Told when a session is of no use any more. `isAnswering`: its server is there, and owes answers to requests. */
  readonly onLost: (session: Session, reason: string | undefined, isAnswering: boolean) => void;
  /** Told when the server takes no credentials of ours any more. */
  readonly onUnauthorized: (session: Session, error: McpAuthRequiredError) => void;
}

/** Milliseconds for an answer to a ping, by which a connection is checked that may be gone. */
const PING_MS = 5_000;
/** Milliseconds for the answers that a server owes which has forgotten the session. */
const ANSWER_MS = 1_000;
/** Milliseconds between two looks for errors that come beside the requests. */
const TROUBLE_PAUSE_MS = 5_000;
const SESSION_UNKNOWN = "the server does not know the session any more";

/** The requests to one server: a limited number at a time, past the breaker, and what their failures say about it. */
export class Traffic {
  /** Whether the present session has brought anything. */
  hasBrought = false;
  readonly #parts: TrafficParts;
  readonly #limit: LimitFunction;
  readonly #breaker: Breaker;
  readonly #running = new Set<Promise<unknown>>();
  /** Requests under way, by session. */
  readonly #sent = new Map<Session, Set<Promise<unknown>>>();
  #checking: Promise<void> | undefined;
  #isDraining = false;
  #troubledAtMs = 0;

  constructor(parts: TrafficParts) {
    this.#parts = parts;
    this.#limit = pLimit(parts.settings.maxConcurrentCalls);
    this.#breaker = new Breaker(parts.breaker, (untilMs) => openBreakerError(parts.settings.serverName, untilMs));
  }

  /** Until when the server is left alone because it failed several times, in milliseconds since 1970. */
  get unavailableUntilMs(): number | undefined {
    return this.#breaker.openUntilMs;
  }

  /**
   * Runs a request with the session, at most `maxConcurrentCalls` at the same time.
   *
   * A request that a lost session answered is sent once more on a new one; one whose connection broke only when it is
   * repeatable; one that timed out never.
   *
   * @param isRepeatable - Whether it may run twice.
   * @throws whatever the request throws, and {McpMiddlewareError} when there is no session to be had.
   */
  async run<Value>(
    signal: AbortSignal | undefined,
    request: (session: Session) => Promise<Value>,
    isRepeatable: boolean,
  ): Promise<Value> {
    if (this.#isDraining) throw closedError(this.#parts.settings.serverName, "closed");
    const turn = this.#limit(async () => {
      signal?.throwIfAborted();
      // Taken when it is this request's turn: while it waited the server may have been opened anew.
      const session = await this.#ready(signal);
      try {
        return await this.send(session, request, signal);
      } catch (cause) {
        const failure = classifyFailure(cause, session);
        if (signal?.aborted === true || !mayRepeat(failure, isRepeatable)) throw cause;
        await rejectOnAbort(this.#checking ?? Promise.resolve(), signal);
        const next = await this.#ready(signal).catch(() => undefined);
        if (next === undefined) throw cause;
        return this.send(next, request, signal);
      }
    });
    this.#running.add(turn);
    const done = (): void => void this.#running.delete(turn);
    turn.then(done, done);
    return rejectOnAbort(turn, signal);
  }

  /** Sends a request past the breaker, and looks at what its failure says about the connection. */
  async send<Value>(session: Session, request: (session: Session) => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    // What the caller gave up says nothing about the server.
    const isGivenUp = (): boolean => signal?.aborted === true;
    try {
      const value = await this.#breaker.guard(
        () => this.#track(session, request(session)),
        (error) => !isGivenUp() && this.#countsAsFailure(error, session),
      );
      this.hasBrought = true;
      return value;
    } catch (cause) {
      if (isGivenUp()) throw cause;
      if (McpAuthRequiredError.isInstance(cause)) this.#parts.onUnauthorized(session, cause);
      switch (classifyFailure(cause, session)) {
        case "answered":
          this.hasBrought = true;
          break;
        case "session-lost":
          this.#parts.onLost(session, SESSION_UNKNOWN, true);
          break;
        case "transport":
          if (session.endReason() !== undefined) this.#parts.onLost(session, undefined, false);
          else this.check(session, cause);
          break;
        case "timeout":
          this.check(session, cause);
          break;
        case "unauthorized":
          break;
      }
      throw cause;
    }
  }

  /** Runs a series of connects past the breaker. @throws {McpConnectionError} `BREAKER_OPEN` in place of it. */
  guarded(series: () => Promise<void>): Promise<void> {
    return this.#breaker.guard(series, isConnectFailure);
  }

  /**
   * Whether a failed request counts for the breaker. However many requests one break takes with it, it counts once, and a
   * lost session not at all: the series that opens it again does.
   */
  #countsAsFailure(error: unknown, session: Session): boolean {
    switch (classifyFailure(error, session)) {
      case "timeout":
        return true;
      case "transport":
        return this.#checking === undefined && this.#parts.current() === session && session.endReason() === undefined;
      default:
        return false;
    }
  }

  /** Something went wrong beside the requests: looks whether the server is still there, now and then. */
  trouble(session: Session, error: Error): void {
    if (Date.now() - this.#troubledAtMs < TROUBLE_PAUSE_MS) return;
    this.#troubledAtMs = Date.now();
    this.check(session, error);
  }

  /** Asks a server that may be gone for a sign of life, once at a time; without one the connection counts as lost. */
  check(session: Session, cause: unknown): void {
    if (this.#checking !== undefined || this.#parts.current() !== session) return;
    const onAnswer = (): void => {
      this.#checking = undefined;
    };
    this.#checking = session.client
      .ping({ timeout: Math.min(PING_MS, this.#parts.settings.requestTimeoutMs) })
      .then(onAnswer, (error: unknown) => {
        this.#checking = undefined;
        const failure = classifyFailure(error, session);
        if (failure === "answered" || failure === "unauthorized") return;
        this.#parts.onLost(session, failure === "session-lost" ? SESSION_UNKNOWN : messageOf(cause), false);
      });
  }

  /** Waits for the answers that are still coming on a session whose server is there. */
  async answered(session: Session): Promise<void> {
    const sent = this.#sent.get(session);
    if (sent !== undefined && !this.#isDraining) await within(Promise.allSettled(sent), ANSWER_MS);
  }

  /** Refuses new requests from now on, and waits for those under way, so long at the most. */
  async drain(limitMs: number): Promise<void> {
    this.#isDraining = true;
    if (limitMs > 0 && this.#running.size > 0) await within(Promise.allSettled(this.#running), limitMs);
  }

  /** Forgets failures: the server is tried at once. */
  reset(): void {
    this.#breaker.reset();
  }

  #ready(signal: AbortSignal | undefined): Promise<Session> {
    const session = this.#parts.current();
    return session === undefined ? rejectOnAbort(this.#parts.session(), signal) : Promise.resolve(session);
  }

  #track<Value>(session: Session, request: Promise<Value>): Promise<Value> {
    const sent = this.#sent.get(session) ?? new Set();
    this.#sent.set(session, sent.add(request));
    const done = (): void => {
      sent.delete(request);
      if (sent.size === 0 && this.#sent.get(session) === sent) this.#sent.delete(session);
    };
    request.then(done, done);
    return request;
  }
}

function isConnectFailure(error: unknown): boolean {
  return McpConnectionError.isInstance(error) && error.code !== "CLOSED";
}
