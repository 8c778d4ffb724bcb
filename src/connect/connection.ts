import pLimit, { type LimitFunction } from "p-limit";

import type { ReopenSettings, ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConfigError, McpConnectionError, McpMiddlewareError, messageOf } from "../errors.js";
import { rejectOnAbort, within } from "./abort.js";
import { Breaker, BreakerOpen } from "./breaker.js";
import { closedError, listError, lostError, openBreakerError, reconnectingError, timeoutError } from "./connectionErrors.js";
import type { State } from "./connectionState.js";
import { classifyFailure, mayRepeat } from "./failures.js";
import { listPages, type RawList } from "./listPages.js";
import { ListWatch } from "./listWatch.js";
import { reopenSeries } from "./reopening.js";
import type { OpenSession, ServerInfo, Session } from "./session.js";

/** The tools a server listed, raw, with what it said in the handshake. */
export interface Listing extends RawList {
  readonly instructions: string | undefined;
  readonly serverInfo: ServerInfo | undefined;
}

/** What a connection tells its hub. */
export interface ConnectionEvents {
  readonly onState: (state: State) => void;
  /** Says whether anything changed. */
  readonly onListed: (listing: Listing) => boolean;
  readonly onRefreshFailed: (error: unknown) => void;
  readonly onNotification: (method: string, params: Readonly<Record<string, unknown>>) => void;
}

/** What a connection is made of. */
export interface ConnectionParts {
  readonly settings: ServerSettings;
  readonly open: OpenSession;
  readonly maxListPages: number;
  readonly breaker: { readonly failures: number; readonly openMs: number };
  /** Runs connects, a limited number at a time. */
  readonly connectLimit: LimitFunction;
  readonly events: ConnectionEvents;
  /** What to do when the connection is lost or was never there, for error texts. */
  readonly remedy: string;
  /** Whether someone else opens and closes the connection: what ends is then left to them. */
  readonly isOwned: boolean;
  /** Milliseconds after which a failed server is tried again by use. */
  readonly retryAfterMs: number;
  /** From 0 to 1, for waits. */
  readonly random?: (() => number) | undefined;
}

/** Milliseconds for an answer to a ping, by which a connection is checked that may be gone. */
const PING_MS = 5_000;
/** A connection that stood so long is well, even if it brought nothing. */
const STEADY_MS = 30_000;
const SESSION_UNKNOWN = "the server does not know the session any more";

/** One server's connection: opened once for all who ask at the same time, watched, opened again, closed. */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #callLimit: LimitFunction;
  readonly #breaker: Breaker;
  readonly #tools: ListWatch;
  #state: State;
  #isAnnouncedEarly = false;
  /** Connections in a row that ended without having brought anything. */
  #barrenLosses = 0;
  #hasBrought = false;
  #checking: Promise<void> | undefined;
  /** Sessions that are being closed; the connection is closed when they are. */
  readonly #ending = new Set<Promise<void>>();
  readonly #running = new Set<Promise<unknown>>();
  #isDraining = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#callLimit = pLimit(parts.settings.maxConcurrentCalls);
    this.#breaker = new Breaker(parts.breaker);
    this.#state = parts.settings.enabled ? { kind: "idle" } : { kind: "disabled" };
    this.#tools = new ListWatch({
      list: () => this.#listAgain(),
      canList: () => this.state.kind === "connected",
      onFailed: (error) => {
        if (this.#state.kind !== "closed") parts.events.onRefreshFailed(error);
      },
    });
  }

  /** The one source of truth about this server, for status, search and calls. */
  get state(): State {
    const state = this.#state;
    if (state.kind === "connected" && state.session.endReason() !== undefined) this.#lose(state.session);
    return this.#state;
  }

  /** Until when the server is left alone because it failed several times, in milliseconds since 1970. */
  get unavailableUntilMs(): number | undefined {
    return this.#breaker.openUntilMs;
  }

  /**
   * Opens the connection, or joins the opening that is under way.
   *
   * @throws {McpMiddlewareError} with the reason when it cannot be opened.
   */
  async connect(): Promise<void> {
    const state = this.state;
    if (state.kind === "connected") return;
    if (state.kind === "connecting" || state.kind === "reconnecting") return state.done;
    if (state.kind === "disabled" || state.kind === "closed" || this.#isLeftToOwner(state)) throw this.#unavailable();
    const attempt = state.kind === "idle" ? 1 : state.attempts + 1;
    const abort = new AbortController();
    // Not past the breaker: a failed server is tried again seldom enough.
    const done = this.#parts.connectLimit(() => this.#attempt(attempt, abort.signal));
    this.#become({ kind: "connecting", attempt, abort, done });
    const settled = done.catch((error: unknown) => this.#fail(abort, error as McpMiddlewareError, attempt));
    // Whoever waits sees the error; nobody waiting is no unhandled rejection.
    await settled;
    return done;
  }

  /** Closes what is open and opens anew, at once and whatever happened before. */
  async reconnect(): Promise<void> {
    const state = this.state;
    this.#breaker.reset();
    this.#barrenLosses = 0;
    if (state.kind === "connecting") {
      await state.done.catch(() => undefined);
    } else if (state.kind === "reconnecting") {
      this.#become({ kind: "idle" });
      state.abort.abort(this.#unavailable());
    } else if (state.kind === "connected") {
      this.#become({ kind: "idle" });
      await this.#end(state.session);
    } else if (state.kind === "failed" || state.kind === "needs-auth") {
      this.#become({ kind: "idle" });
    }
    await this.connect();
  }

  /** Begins a connect in the background when this server failed long enough ago. */
  retryIfDue(): void {
    if (this.#isDue(this.state)) this.connect().catch(() => undefined);
  }

  /**
   * The session, opened when it is not yet; an attempt to open it again that is under way is waited for.
   *
   * @throws {McpMiddlewareError} when the server is failed, waits for the next attempt, is disabled or closed.
   */
  async session(): Promise<Session> {
    const before = this.state;
    if (before.kind === "idle" || before.kind === "connecting" || this.#isDue(before)) await this.connect();
    else if (before.kind === "reconnecting") await before.trying?.catch(() => undefined);
    const { state } = this;
    if (state.kind !== "connected") throw this.#unavailable();
    return state.session;
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
    const turn = this.#callLimit(async () => {
      signal?.throwIfAborted();
      // Taken when it is this request's turn: while it waited the server may have been opened anew.
      const session = await this.#ready(signal);
      try {
        return await this.#send(session, request, signal);
      } catch (cause) {
        const failure = classifyFailure(cause, session);
        if (signal?.aborted === true || !mayRepeat(failure, isRepeatable)) throw cause;
        await rejectOnAbort(this.#checking ?? Promise.resolve(), signal);
        const next = await this.#ready(signal).catch(() => undefined);
        if (next === undefined) throw cause;
        return this.#send(next, request, signal);
      }
    });
    this.#running.add(turn);
    turn.finally(() => this.#running.delete(turn)).catch(() => undefined);
    return rejectOnAbort(turn, signal);
  }

  /** Lists the tools again now, or joins the listing that is under way. The last good list stays. */
  async refresh(): Promise<void> {
    await this.#tools.refresh();
  }

  /** Lists again in the background when the last listing is older than `ttlMs` and the server announces no changes. */
  refreshIfOld(ttlMs: number): void {
    const state = this.state;
    if (state.kind === "connected" && !state.session.announces("tools")) this.#tools.refreshIfOlderThan(ttlMs);
  }

  /**
   * Ends the connection for good.
   *
   * @param drainMs - How long requests that are under way may go on; new ones are refused at once.
   */
  async close(drainMs = 0): Promise<void> {
    this.#isDraining = true;
    if (drainMs > 0 && this.#running.size > 0) await within(Promise.allSettled(this.#running), drainMs);
    const state = this.#state;
    this.#tools.stop();
    if (state.kind !== "closed") {
      this.#become({ kind: "closed" });
      if (state.kind === "connecting" || state.kind === "reconnecting") {
        state.abort.abort(this.#unavailable());
        await state.done.catch(() => undefined);
      } else if (state.kind === "connected") {
        void this.#end(state.session);
      }
    }
    await Promise.all(this.#ending);
  }

  async #ready(signal: AbortSignal | undefined): Promise<Session> {
    const { state } = this;
    return state.kind === "connected" ? state.session : rejectOnAbort(this.session(), signal);
  }

  /** Sends a request past the breaker, and looks at what its failure says about the connection. */
  async #send<Value>(session: Session, request: (session: Session) => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    // What the caller gave up says nothing about the server.
    const isGivenUp = (): boolean => signal?.aborted === true;
    try {
      const value = await this.#guarded(() => request(session), isGivenUp);
      this.#hasBrought = true;
      return value;
    } catch (cause) {
      if (isGivenUp()) throw cause;
      switch (classifyFailure(cause, session)) {
        case "answered":
          this.#hasBrought = true;
          break;
        case "session-lost":
          this.#lose(session, SESSION_UNKNOWN);
          break;
        case "transport":
          if (session.endReason() !== undefined) this.#lose(session);
          else this.#check(session, cause);
          break;
        case "timeout":
          this.#check(session, cause);
          break;
        case "unauthorized":
          break;
      }
      throw cause;
    }
  }

  /** Runs an attempt past the breaker. @throws {McpConnectionError} `BREAKER_OPEN` in place of it. */
  async #guarded<Value>(attempt: () => Promise<Value>, isGivenUp = (): boolean => false): Promise<Value> {
    try {
      return await this.#breaker.guard(attempt, (error) => !isGivenUp() && this.#countsAsFailure(error));
    } catch (error) {
      if (error instanceof BreakerOpen) throw openBreakerError(this.#parts.settings.serverName, this.#breaker.openUntilMs);
      throw error;
    }
  }

  #countsAsFailure(error: unknown): boolean {
    if (McpMiddlewareError.isInstance(error)) return McpConnectionError.isInstance(error) && error.code !== "CLOSED";
    const state = this.#state;
    const failure = classifyFailure(error, state.kind === "connected" ? state.session : undefined);
    return failure === "transport" || failure === "timeout";
  }

  /** Asks a server that may be gone for a sign of life, once at a time; without one the connection counts as lost. */
  #check(session: Session, cause: unknown): void {
    if (this.#checking !== undefined || this.#state.kind !== "connected" || this.#state.session !== session) return;
    const onAnswer = (): void => {
      this.#checking = undefined;
    };
    this.#checking = session.client.ping({ timeout: PING_MS }).then(onAnswer, (error: unknown) => {
      this.#checking = undefined;
      const failure = classifyFailure(error, session);
      if (failure === "answered" || failure === "unauthorized") return;
      this.#lose(session, failure === "session-lost" ? SESSION_UNKNOWN : messageOf(cause));
    });
  }

  /** Closes a session; `close()` waits for it. */
  #end(session: Session): Promise<void> {
    const ending = session.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }

  /** A session of an owner's that has ended: only the owner opens it again. */
  #isLeftToOwner(state: State): boolean {
    return this.#parts.isOwned && state.kind === "failed" && state.error.code === "SESSION_LOST";
  }

  /** A failed server may be tried again by use; one that was running and ended only when it may be opened again. */
  #isDue(state: State): boolean {
    if (state.kind !== "failed" || this.#parts.isOwned || McpConfigError.isInstance(state.error)) return false;
    if (state.error.code === "SESSION_LOST" && this.#parts.settings.reopening === undefined) return false;
    return Date.now() - state.failedAtMs >= this.#parts.retryAfterMs;
  }

  /** One attempt: opened and listed within `connectTimeoutMs`, or nothing left behind. */
  async #attempt(attempt: number, outer: AbortSignal): Promise<void> {
    const { settings, open, events } = this.#parts;
    const startedAt = performance.now();
    const abort = new AbortController();
    const onOuter = (): void => abort.abort(outer.reason);
    outer.addEventListener("abort", onOuter, { once: true });
    const timer = setTimeout(() => abort.abort(timeoutError(settings, attempt)), settings.connectTimeoutMs);
    let session: Session | undefined;
    try {
      outer.throwIfAborted();
      session = await open(abort.signal, {
        onNotification: (method, params) => this.#notified(method, params),
        onEnd: () => session !== undefined && this.#lose(session),
        onTrouble: (error) => session !== undefined && this.#check(session, error),
      });
      const listing = await this.#list(session, abort.signal);
      outer.throwIfAborted();
      events.onListed(listing);
      this.#hasBrought = false;
      this.#become({ kind: "connected", session, connectedAtMs: Date.now(), latencyMs: performance.now() - startedAt });
      if (this.#isAnnouncedEarly) this.#tools.announced();
      this.#isAnnouncedEarly = false;
    } catch (cause) {
      const error = McpMiddlewareError.isInstance(cause) ? cause : listError(settings.serverName, cause, session);
      if (session !== undefined) await this.#end(session);
      throw error;
    } finally {
      clearTimeout(timer);
      outer.removeEventListener("abort", onOuter);
    }
  }

  async #list(session: Session, signal: AbortSignal): Promise<Listing> {
    const { settings, maxListPages } = this.#parts;
    const list = await rejectOnAbort(
      listPages(session.client, "tools", { signal, timeout: settings.requestTimeoutMs, maxPages: maxListPages }),
      signal,
    );
    this.#tools.listed();
    return { ...list, instructions: session.client.getInstructions(), serverInfo: session.client.getServerVersion() };
  }

  async #listAgain(): Promise<boolean> {
    const { settings, events } = this.#parts;
    const session = await this.session();
    let listing: Listing;
    try {
      listing = await this.#send(session, () => this.#list(session, AbortSignal.timeout(settings.requestTimeoutMs)));
    } catch (cause) {
      if (McpMiddlewareError.isInstance(cause)) throw cause;
      const message = `The tools of server "${settings.serverName}" could not be listed again: ${session.mask(messageOf(cause))}. The last list stays.`;
      const code = session.endReason() === undefined ? "CONNECT_FAILED" : "SESSION_LOST";
      throw new McpConnectionError(code, message, { serverName: settings.serverName, cause });
    }
    return this.#state.kind === "connected" && events.onListed(listing);
  }

  #notified(method: string, params: Readonly<Record<string, unknown>>): void {
    this.#hasBrought = true;
    if (method === "notifications/tools/list_changed") {
      if (this.#state.kind === "connected") this.#tools.announced();
      else this.#isAnnouncedEarly = true;
    }
    this.#parts.events.onNotification(method, params);
  }

  /** The connection is gone: opened again by itself where that is wanted, failed otherwise. */
  #lose(session: Session, reason?: string): void {
    const state = this.#state;
    if (state.kind !== "connected" || state.session !== session) return;
    const { settings, remedy } = this.#parts;
    const error = lostError(
      settings.serverName,
      session,
      reason,
      settings.reopening === undefined ? remedy : "It is being opened again.",
    );
    const isSteady = this.#hasBrought || Date.now() - state.connectedAtMs >= STEADY_MS;
    this.#barrenLosses = isSteady ? 0 : this.#barrenLosses + 1;
    void this.#end(session);
    if (settings.reopening === undefined) this.#become({ kind: "failed", error, failedAtMs: Date.now(), attempts: 0 });
    else this.#reopen(error, settings.reopening);
  }

  /** Attempts with growing waits between them; the whole series counts once for the breaker. */
  #reopen(error: McpMiddlewareError, reopening: ReopenSettings): void {
    const { connectLimit, random } = this.#parts;
    const abort = new AbortController();
    let firstTried: () => void = () => undefined;
    const first = new Promise<void>((resolve) => {
      firstTried = resolve;
    });
    let last = error;
    const show = (attempt: number, trying: Promise<void> | undefined, waitMs?: number): void => {
      const state = this.#state;
      if (state.kind !== "reconnecting" || state.abort !== abort) return;
      const nextAtMs = waitMs === undefined ? undefined : Date.now() + waitMs;
      this.#become({ kind: "reconnecting", error: last, attempt, trying, nextAtMs, abort, done });
    };
    const series = (): Promise<void> =>
      reopenSeries(error, {
        ...reopening,
        barrenLosses: this.#barrenLosses,
        random,
        signal: abort.signal,
        attempt: (number) => connectLimit(() => this.#attempt(number, abort.signal)),
        onTrying: (number, trying) => {
          show(number, trying);
          trying.then(firstTried, firstTried);
        },
        onWaiting: (number, waitMs, failed) => {
          last = failed;
          show(number, undefined, waitMs);
          firstTried();
        },
      });
    // Begun behind this function, so that the state is there before the first attempt.
    const done = Promise.resolve().then(() => this.#guarded(series));
    this.#become({ kind: "reconnecting", error, attempt: 0, trying: first, nextAtMs: undefined, abort, done });
    done.catch((failed: unknown) => {
      firstTried();
      const isOwn = McpMiddlewareError.isInstance(failed) && failed.code !== "BREAKER_OPEN";
      this.#fail(abort, isOwn ? failed : last, reopening.waits + 1);
    });
  }

  /** An opening ended without success. */
  #fail(abort: AbortController, error: McpMiddlewareError, attempts: number): void {
    const state = this.#state;
    if ((state.kind !== "connecting" && state.kind !== "reconnecting") || state.abort !== abort) return;
    const kind = McpAuthRequiredError.isInstance(error) ? "needs-auth" : "failed";
    this.#become({ kind, error, failedAtMs: Date.now(), attempts });
  }

  #become(state: State): void {
    this.#state = state;
    this.#parts.events.onState(state);
  }

  #unavailable(): McpMiddlewareError {
    const state = this.#state;
    const { serverName } = this.#parts.settings;
    const untilMs = this.#breaker.openUntilMs;
    if (state.kind === "reconnecting") return reconnectingError(serverName, state);
    if (state.kind === "failed" || state.kind === "needs-auth") {
      return untilMs === undefined ? state.error : openBreakerError(serverName, untilMs, state.error);
    }
    return closedError(serverName, state.kind === "disabled" ? "disabled" : "closed");
  }
}
