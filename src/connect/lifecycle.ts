import type { LimitFunction } from "p-limit";

import type { ReconnectSettings, ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConfigError, McpMiddlewareError, messageOf } from "../errors.js";
import { linkSignal, rejectOnAbort } from "../text/abort.js";
import type { Breaker, Outcome } from "./breaker.js";
import {
  closedError,
  listError,
  lostError,
  openBreakerError,
  reconnectedError,
  reconnectingError,
  timeoutError,
} from "./connectionErrors.js";
import type { State } from "./connectionState.js";
import { classifyFailure, isConnectFailure, SESSION_UNKNOWN } from "./failures.js";
import type { OpenPeer, Peer, RawResult } from "./peer.js";
import { reconnectSeries, type ReconnectStep } from "./reconnect.js";

export interface LifecycleEvents {
  onState(state: State): void;
  /** Lists the tools of a new connection; an error fails the attempt. */
  onOpened(peer: Peer, signal: AbortSignal): Promise<void>;
  onNotification(method: string, params: RawResult): void;
}

export interface LifecycleOptions {
  readonly settings: ServerSettings;
  readonly open: OpenPeer;
  readonly connectLimit: LimitFunction;
  /** Milliseconds after which use of the hub retries a failed server. */
  readonly retryFailedAfterMs: number;
  /** Whether someone else opens and closes the connection, so that only they reconnect it. */
  readonly isOwned: boolean;
  /**
   * Waits without limit until a person allows the server. Rejects with an {@link McpPolicyError}.
   */
  readonly admit?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Random number from 0 to 1, for the jitter. */
  readonly random?: (() => number) | undefined;
}

/** Counts as healthy after this uptime, even without a successful request. */
const STEADY_MS = 30_000;
/** Milliseconds for the answer to a ping that checks a suspect connection. */
const PING_MS = 5_000;
/** Milliseconds between two checks caused by errors outside of requests. */
const TROUBLE_PAUSE_MS = 5_000;
/** How often a caller waits again because others reconnect the server. */
const MAX_LOOKS = 5;

/**
 * State of one connection: connects once for all concurrent callers, checks, reconnects, closes.
 */
export class Lifecycle {
  /** Whether the current peer has answered a request. */
  hasAnswered = false;
  mask: (text: string) => string = (text) => text;
  readonly #options: LifecycleOptions;
  readonly #breaker: Breaker;
  readonly #events: LifecycleEvents;
  #state: State;
  /** Consecutive connections that ended without a successful request. */
  #barrenLosses = 0;
  #checking: Promise<void> | undefined;
  #troubledAtMs = 0;
  readonly #closing = new Set<Promise<void>>();

  constructor(options: LifecycleOptions, breaker: Breaker, events: LifecycleEvents) {
    this.#options = options;
    this.#breaker = breaker;
    this.#events = events;
    this.#state = options.settings.enabled ? { kind: "idle" } : { kind: "disabled" };
  }

  get state(): State {
    const state = this.#state;
    if (state.kind === "connected" && state.peer.endReason() !== undefined) this.lose(state.peer);
    return this.#state;
  }

  get current(): Peer | undefined {
    const { state } = this;
    return state.kind === "connected" ? state.peer : undefined;
  }

  get checking(): Promise<void> | undefined {
    return this.#checking;
  }

  /**
   * The peer; connects or waits if need be.
   * @throws {McpMiddlewareError} while failed, between attempts, disabled or closed.
   */
  async peer(): Promise<Peer> {
    // A concurrent reconnect restarts the wait.
    for (let look = 0; look < MAX_LOOKS; look += 1) {
      const { state } = this;
      if (state.kind === "connected") return state.peer;
      if (state.kind === "idle" || this.#isDue(state)) {
        await this.connect().catch((error: unknown) => {
          if (this.#state.kind !== "connecting" && this.#state.kind !== "connected") throw error;
        });
      } else if (state.kind === "connecting") await state.done.catch(() => undefined);
      else if (state.kind === "reconnecting" && state.trying !== undefined)
        await state.trying.catch(() => undefined);
      else break;
    }
    throw this.unavailable();
  }

  /**
   * Connects, or joins a running connect.
   * @throws {McpMiddlewareError} with the reason of a failure.
   */
  async connect(): Promise<void> {
    const { state } = this;
    if (state.kind === "connected") return;
    if (state.kind === "connecting" || state.kind === "reconnecting") return state.done;
    if (state.kind === "disabled" || state.kind === "closed" || this.#isLeftToOwner(state))
      throw this.unavailable();
    const attempt = state.kind === "idle" ? 1 : state.attempts + 1;
    const abort = new AbortController();
    const { admit, connectLimit } = this.#options;
    // Not through the breaker: a failed server is retried rarely enough.
    const open = (): Promise<void> => connectLimit(() => this.#attempt(attempt, abort.signal));
    const done =
      admit === undefined ? open() : rejectOnAbort(admit(abort.signal), abort.signal).then(open);
    this.#become({ kind: "connecting", attempt, abort, done });
    await done.catch((error: unknown) => this.#fail(abort, error as McpMiddlewareError, attempt));
    return done;
  }

  /** Closes the connection and connects at once, whatever the state. */
  async reconnect(): Promise<void> {
    const { state } = this;
    this.#breaker.reset();
    this.#barrenLosses = 0;
    if (state.kind === "connecting" || state.kind === "reconnecting") {
      // Before the abort: the running connect may hang.
      this.#become({ kind: "idle" });
      state.abort.abort(reconnectedError(this.#options.settings.serverName));
    } else if (state.kind === "connected") {
      this.#become({ kind: "idle" });
      await this.#close(state.peer);
    } else if (
      state.kind === "failed" ||
      state.kind === "needs-auth" ||
      (state.kind === "disabled" && "error" in state)
    ) {
      this.#become({ kind: "idle" });
    }
    await this.connect();
  }

  /** Connects in the background once a person has allowed the server, if only that was missing. */
  allowed(): void {
    if (this.#state.kind !== "disabled" || this.#state.error === undefined) return;
    this.#become({ kind: "idle" });
    this.connect().catch(() => undefined);
  }

  /** Ends a connection that is no longer allowed, until {@link reconnect}. */
  disable(error: McpMiddlewareError): void {
    const state = this.#state;
    if (state.kind === "closed" || (state.kind === "disabled" && state.error === undefined)) return;
    this.#become({ kind: "disabled", error });
    if (state.kind === "connected") void this.#close(state.peer);
    else if (state.kind === "connecting" || state.kind === "reconnecting") state.abort.abort(error);
  }

  /** Connects in the background if this server failed long enough ago. */
  retryIfDue(): void {
    if (this.#isDue(this.state)) this.connect().catch(() => undefined);
  }

  /**
   * Reconnects a lost connection if `reconnect` is on.
   * @param answers - Settles when requests in flight are answered.
   */
  lose(peer: Peer, reason?: string, answers?: Promise<unknown>): void {
    const state = this.#state;
    if (state.kind !== "connected" || state.peer !== peer) return;
    const { settings, isOwned } = this.#options;
    const error = lostError(settings, peer, reason, isOwned);
    const isSteady = this.hasAnswered || Date.now() - state.connectedAtMs >= STEADY_MS;
    this.#barrenLosses = isSteady ? 0 : this.#barrenLosses + 1;
    // State first: closing the peer reports its end.
    if (settings.reconnect === undefined)
      this.#become({ kind: "failed", error, failedAtMs: Date.now(), attempts: 0 });
    else this.#reconnect(error, settings.reconnect);
    void this.#close(peer, answers);
  }

  /** Handles credentials that the server no longer accepts. */
  refuse(peer: Peer, error: McpAuthRequiredError, answers: Promise<unknown>): void {
    if (this.current !== peer) return;
    this.#become({ kind: "needs-auth", error, failedAtMs: Date.now(), attempts: 0 });
    void this.#close(peer, answers);
  }

  /** Pings a suspect connection, one ping at a time; without an answer it is lost. */
  check(peer: Peer, cause: unknown): void {
    if (this.#checking !== undefined || this.current !== peer) return;
    const timeoutMs = Math.min(PING_MS, this.#options.settings.requestTimeoutMs);
    this.#checking = peer.request({ method: "ping", params: {}, timeoutMs }).then(
      () => {
        this.#checking = undefined;
      },
      (error: unknown) => {
        this.#checking = undefined;
        const failure = classifyFailure(error, peer);
        if (failure === "answered" || failure === "unauthorized") return;
        this.lose(peer, failure === "session-lost" ? SESSION_UNKNOWN : messageOf(cause));
      },
    );
  }

  async close(): Promise<void> {
    const state = this.#state;
    if (state.kind !== "closed") {
      this.#become({ kind: "closed" });
      if (state.kind === "connecting" || state.kind === "reconnecting") {
        state.abort.abort(this.unavailable());
        await state.done.catch(() => undefined);
      } else if (state.kind === "connected") {
        void this.#close(state.peer);
      }
    }
    await Promise.all(this.#closing);
  }

  /** The error of a request without a peer. */
  unavailable(): McpMiddlewareError {
    const state = this.#state;
    const { serverName } = this.#options.settings;
    const untilMs = this.#breaker.openUntilMs;
    if (state.kind === "reconnecting") return reconnectingError(serverName, state);
    if (state.kind === "failed" || state.kind === "needs-auth") {
      return untilMs === undefined
        ? state.error
        : openBreakerError(serverName, untilMs, state.error);
    }
    if (state.kind === "disabled" && state.error !== undefined) return state.error;
    if (state.kind === "disabled" || state.kind === "closed")
      return closedError(serverName, state.kind);
    return reconnectedError(serverName);
  }

  /** Closes a peer once the requests in flight are answered. */
  #close(peer: Peer, answers: Promise<unknown> = Promise.resolve()): Promise<void> {
    const closing = answers.then(() => peer.close()).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    return closing;
  }

  /** True for a lost connection that only its owner may reconnect. */
  #isLeftToOwner(state: State): boolean {
    return this.#options.isOwned && state.kind === "failed" && state.error.code === "SESSION_LOST";
  }

  /**
   * True when use of the hub may retry this failed server; a lost connection only if `reconnect` is
   * on.
   */
  #isDue(state: State): boolean {
    const { isOwned, settings, retryFailedAfterMs } = this.#options;
    if (state.kind !== "failed" || isOwned || McpConfigError.isInstance(state.error)) return false;
    if (state.error.code === "SESSION_LOST" && settings.reconnect === undefined) return false;
    return Date.now() - state.failedAtMs >= retryFailedAfterMs;
  }

  /** Makes one attempt: connects and lists within `connectTimeoutMs`, or leaves nothing behind. */
  async #attempt(attempt: number, outer: AbortSignal): Promise<void> {
    const { settings, open } = this.#options;
    const startedAt = performance.now();
    const { signal, abort, unlink } = linkSignal(outer);
    const timer = setTimeout(
      () => abort(timeoutError(settings, attempt)),
      settings.connectTimeoutMs,
    );
    let peer: Peer | undefined;
    try {
      outer.throwIfAborted();
      peer = await open(signal, {
        onNotification: (method, params) => this.#events.onNotification(method, params),
        onEnd: () => peer !== undefined && this.lose(peer),
        onTrouble: (error) => peer !== undefined && this.#trouble(peer, error),
      });
      this.mask = peer.mask;
      await this.#events.onOpened(peer, signal);
      outer.throwIfAborted();
      this.hasAnswered = false;
      this.#become({
        kind: "connected",
        peer,
        connectedAtMs: Date.now(),
        latencyMs: performance.now() - startedAt,
      });
    } catch (cause) {
      const error = McpMiddlewareError.isInstance(cause)
        ? cause
        : listError(settings.serverName, cause, peer);
      if (peer !== undefined) await this.#close(peer);
      throw error;
    } finally {
      clearTimeout(timer);
      unlink();
    }
  }

  /**
   * Checks the connection after an error outside of requests, at most every {@link
   * TROUBLE_PAUSE_MS}.
   */
  #trouble(peer: Peer, error: Error): void {
    if (Date.now() - this.#troubledAtMs < TROUBLE_PAUSE_MS) return;
    this.#troubledAtMs = Date.now();
    this.check(peer, error);
  }

  /** Reconnects with growing waits; the whole series counts once for the breaker. */
  #reconnect(lost: McpMiddlewareError, settings: ReconnectSettings): void {
    const { connectLimit, random } = this.#options;
    const abort = new AbortController();
    let last = lost;
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const onStep = (step: ReconnectStep): void => {
      if (step.kind === "waiting") last = step.error;
      if (step.kind === "trying") step.trying.then(begin, begin);
      else begin();
      const state = this.#state;
      if (state.kind !== "reconnecting" || state.abort !== abort) return;
      const trying = step.kind === "trying" ? step.trying : undefined;
      const nextAtMs = step.kind === "waiting" ? Date.now() + step.waitMs : undefined;
      this.#become({
        kind: "reconnecting",
        error: last,
        attempt: step.attempt,
        trying,
        nextAtMs,
        abort,
        done,
      });
    };
    const series = {
      ...settings,
      lost,
      barrenLosses: this.#barrenLosses,
      signal: abort.signal,
      attempt: (attempt: number) => connectLimit(() => this.#attempt(attempt, abort.signal)),
      onStep,
      random,
    };
    const attempts = (): Promise<Outcome<undefined>> =>
      reconnectSeries(series).then(
        () => ({ value: undefined }),
        (error: unknown) => ({ error, isFailure: isConnectFailure(error) }),
      );
    const { serverName } = this.#options.settings;
    // Deferred: the state is set before the first attempt.
    const done = Promise.resolve().then(async () => {
      await this.#breaker.execute(attempts, (untilMs) => openBreakerError(serverName, untilMs));
    });
    this.#become({
      kind: "reconnecting",
      error: lost,
      attempt: 0,
      trying: begun,
      nextAtMs: undefined,
      abort,
      done,
    });
    done.catch((failed: unknown) => {
      begin();
      const isOwn = McpMiddlewareError.isInstance(failed) && failed.code !== "BREAKER_OPEN";
      this.#fail(abort, isOwn ? failed : last, settings.waits + 1);
    });
  }

  #fail(abort: AbortController, error: McpMiddlewareError, attempts: number): void {
    const state = this.#state;
    if ((state.kind !== "connecting" && state.kind !== "reconnecting") || state.abort !== abort)
      return;
    if (needsPerson(error)) this.#become({ kind: "disabled", error });
    else {
      const kind = McpAuthRequiredError.isInstance(error) ? "needs-auth" : "failed";
      this.#become({ kind, error, failedAtMs: Date.now(), attempts });
    }
  }

  #become(state: State): void {
    this.#state = state;
    this.#events.onState(state);
  }
}

/** True for errors that only a person can resolve. */
function needsPerson({ code }: McpMiddlewareError): boolean {
  return code === "CONSENT_REQUIRED" || code === "CONSENT_REFUSED";
}
