import type { LimitFunction } from "p-limit";
import * as z from "zod";

import type { ReconnectSettings, ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConfigError, McpConnectionError, McpMiddlewareError, messageOf } from "../errors.js";
import { linkSignal, rejectOnAbort } from "../text/abort.js";
import type { BreakerSettings } from "./breaker.js";
import {
  closedError,
  listError,
  lostError,
  openBreakerError,
  reconnectingError,
  timeoutError,
  openedAnewError,
} from "./connectionErrors.js";
import type { State } from "./connectionState.js";
import { listPages, type ListKey, type RawList } from "./lists/listPages.js";
import { maskValue } from "./maskValue.js";
import { ListWatch } from "./lists/listWatch.js";
import { SideLists, type ListDiff, type SideKey } from "./lists/sideLists.js";
import { Subscriptions, type SubscriptionMethod } from "./lists/subscriptions.js";
import { reconnectSeries } from "./reconnect.js";
import type { OpenSession, ServerInfo, Session } from "./peer.js";
import { Traffic } from "./requests.js";

/** The tools a server listed, raw, with what it said in the handshake. */
export interface ToolList extends RawList {
  readonly instructions: string | undefined;
  readonly serverInfo: ServerInfo | undefined;
  readonly capabilities: Readonly<Record<string, unknown>> | undefined;
}

/** What a connection tells its hub. */
export interface ConnectionEvents {
  readonly onState: (state: State) => void;
  /** Says whether anything changed. */
  readonly onListed: (listing: ToolList) => boolean;
  readonly onRefreshFailed: (error: unknown) => void;
  /** Prompts, resources or resource templates that were listed before are others now. */
  readonly onListChanged: (key: SideKey, diff: ListDiff) => void;
  readonly onNotification: (method: string, params: Readonly<Record<string, unknown>>) => void;
}

/** What a connection is made of. */
export interface ConnectionParts {
  readonly settings: ServerSettings;
  readonly open: OpenSession;
  readonly maxListPages: number;
  /** Milliseconds after which lists are made anew whose changes are not announced. */
  readonly listTtlMs: number;
  readonly breaker: BreakerSettings;
  /** Runs connects, a limited number at a time. */
  readonly connectLimit: LimitFunction;
  readonly events: ConnectionEvents;
  /** What to do when the connection is lost or was never there, for error texts. */
  readonly remedy: string;
  /** Whether someone else opens and closes the connection: what ends is then left to them. */
  readonly isOwned: boolean;
  /** Milliseconds after which a failed server is tried again by use. */
  readonly retryAfterMs: number;
  /** Asks whoever has to allow the server, for as long as they need. Rejects with an {@link McpPolicyError}. */
  readonly admit?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** From 0 to 1, for waits. */
  readonly random?: (() => number) | undefined;
}

/** Longest time that a reading waits for its subscription. */
const SUBSCRIBE_MS = 1_000;
/** What is answered does not matter. */
const anyAnswer = z.looseObject({});
/** A connection that stood so long is well, even if it brought nothing. */
const STEADY_MS = 30_000;
/** So often a request looks again for a session while the server is opened anew by others. */
const MAX_LOOKS = 5;

/** One server's connection: opened once for all who ask at the same time, watched, opened again, closed. */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #traffic: Traffic;
  readonly #tools: ListWatch;
  /** What the server lists besides tools. */
  readonly lists: SideLists;
  /** Which of its resources changed. */
  readonly subscriptions: Subscriptions;
  /** Removes what must not be shown from a text about this server, also when its session is gone. */
  mask: (text: string) => string = (text) => text;
  #state: State;
  #isAnnouncedEarly = false;
  /** Connections in a row that ended without having brought anything. */
  #barrenLosses = 0;
  /** Sessions that are being closed; the connection is closed when they are. */
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#traffic = new Traffic({
      settings: parts.settings,
      breaker: parts.breaker,
      current: () => {
        const { state } = this;
        return state.kind === "connected" ? state.session : undefined;
      },
      session: () => this.session(),
      onLost: (session, reason, isAnswering) => this.#lose(session, reason, isAnswering),
      onUnauthorized: (session, error) => {
        const { state } = this;
        if (state.kind !== "connected" || state.session !== session) return;
        this.#become({ kind: "needs-auth", error, failedAtMs: Date.now(), attempts: 0 });
        void this.#end(session, true);
      },
    });
    this.#state = parts.settings.enabled ? { kind: "idle" } : { kind: "disabled" };
    const canList = (): boolean => this.state.kind === "connected";
    const onFailed = (error: unknown): void => {
      if (this.#state.kind !== "closed") parts.events.onRefreshFailed(error);
    };
    this.#tools = new ListWatch({ list: () => this.#listAgain(), canList, onFailed });
    this.lists = new SideLists({
      list: (key) => this.run(undefined, (session) => this.#listPages(session, key), true),
      isAnnounced: (key) => {
        const { state } = this;
        return state.kind === "connected" && state.session.announces(key === "prompts" ? "prompts" : "resources");
      },
      ttlMs: parts.listTtlMs,
      onChanged: (key, diff) => parts.events.onListChanged(key, diff),
      canList,
      onFailed,
    });
    const ask = ({ client }: Session, method: SubscriptionMethod, uri: string, timeout: number): Promise<unknown> =>
      client.request({ method, params: { uri } }, anyAnswer, { timeout });
    this.subscriptions = new Subscriptions({
      isOffered: () => {
        const { state } = this;
        return state.kind === "connected" && state.session.client.getServerCapabilities()?.resources?.subscribe === true;
      },
      isReliable: () => {
        const { state } = this;
        return state.kind === "connected" && state.session.announces("subscriptions");
      },
      request: (method, uri) =>
        this.run(undefined, (session) => ask(session, method, uri, parts.settings.requestTimeoutMs), true),
      requestBriefly: async (method, uri) => {
        const { state } = this;
        if (state.kind === "connected") await ask(state.session, method, uri, SUBSCRIBE_MS);
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
    return this.#traffic.unavailableUntilMs;
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
    const { admit, connectLimit } = this.#parts;
    const open = (): Promise<void> => connectLimit(() => this.#attempt(attempt, abort.signal));
    const done = admit === undefined ? open() : rejectOnAbort(admit(abort.signal), abort.signal).then(open);
    this.#become({ kind: "connecting", attempt, abort, done });
    const settled = done.catch((error: unknown) => this.#fail(abort, error as McpMiddlewareError, attempt));
    // Whoever waits sees the error; nobody waiting is no unhandled rejection.
    await settled;
    return done;
  }

  /** Closes what is open and opens anew, at once and whatever happened before. */
  async reconnect(): Promise<void> {
    const state = this.state;
    this.#traffic.reset();
    this.#barrenLosses = 0;
    if (state.kind === "connecting" || state.kind === "reconnecting") {
      // At once: what is under way may hang.
      this.#become({ kind: "idle" });
      state.abort.abort(openedAnewError(this.#parts.settings.serverName));
    } else if (state.kind === "connected") {
      this.#become({ kind: "idle" });
      await this.#end(state.session);
    } else if (state.kind === "failed" || state.kind === "needs-auth" || (state.kind === "disabled" && "error" in state)) {
      this.#become({ kind: "idle" });
    }
    await this.connect();
  }

  /** Opens it in the background when only a person was missing. */
  allowed(): void {
    if (this.#state.kind !== "disabled" || this.#state.error === undefined) return;
    this.#become({ kind: "idle" });
    this.connect().catch(() => undefined);
  }

  /** Ends the connection until {@link reconnect}, because it is not allowed any more. */
  disable(error: McpMiddlewareError): void {
    const state = this.#state;
    if (state.kind === "closed" || (state.kind === "disabled" && state.error === undefined)) return;
    this.#become({ kind: "disabled", error });
    if (state.kind === "connected") void this.#end(state.session);
    else if (state.kind === "connecting" || state.kind === "reconnecting") state.abort.abort(error);
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
    // While it is waited for, someone may open it anew: then that is waited for.
    for (let look = 0; look < MAX_LOOKS; look += 1) {
      const { state } = this;
      if (state.kind === "connected") return state.session;
      if (state.kind === "idle" || this.#isDue(state)) await this.connect();
      else if (state.kind === "connecting") await state.done.catch(() => undefined);
      else if (state.kind === "reconnecting" && state.trying !== undefined) await state.trying.catch(() => undefined);
      else break;
    }
    throw this.#unavailable();
  }

  /** Runs a request with the session; see {@link Traffic.run}. */
  run<Value>(
    signal: AbortSignal | undefined,
    request: (session: Session) => Promise<Value>,
    isRepeatable: boolean,
  ): Promise<Value> {
    return this.#traffic.run(signal, request, isRepeatable);
  }

  /** Lists the tools again now, or joins the listing that is under way. The last good list stays. */
  async refresh(): Promise<void> {
    await this.#tools.refresh();
  }

  /** Lists again in the background when the last listing is older than `ttlMs` and the server announces no changes. */
  refreshIfOld(ttlMs: number): void {
    const state = this.state;
    if (state.kind !== "connected" || (state.session.announces("tools") && !this.#tools.isOutdated)) return;
    this.#tools.refreshIfOlderThan(ttlMs);
  }

  /**
   * Ends the connection for good.
   *
   * @param drainMs - How long requests that are under way may go on; new ones are refused at once.
   */
  async close(drainMs = 0): Promise<void> {
    await this.#traffic.drain(drainMs);
    const state = this.#state;
    this.#tools.stop();
    this.lists.stop();
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

  /**
   * Closes a session; `close()` waits for it.
   *
   * @param isAnswering - The server is there: each request under way is left to get its own answer first.
   */
  #end(session: Session, isAnswering = false): Promise<void> {
    const ending = (isAnswering ? this.#traffic.answered(session) : Promise.resolve())
      .then(() => session.close())
      .finally(() => this.#ending.delete(ending));
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
    if (state.error.code === "SESSION_LOST" && this.#parts.settings.reconnect === undefined) return false;
    return Date.now() - state.failedAtMs >= this.#parts.retryAfterMs;
  }

  /** One attempt: opened and listed within `connectTimeoutMs`, or nothing left behind. */
  async #attempt(attempt: number, outer: AbortSignal): Promise<void> {
    const { settings, open, events } = this.#parts;
    const startedAt = performance.now();
    const { signal, abort, unlink } = linkSignal(outer);
    const timer = setTimeout(() => abort(timeoutError(settings, attempt)), settings.connectTimeoutMs);
    let session: Session | undefined;
    try {
      outer.throwIfAborted();
      session = await open(signal, {
        onNotification: (method, params) => this.#notified(method, params),
        onEnd: () => session !== undefined && this.#lose(session),
        onTrouble: (error) => session !== undefined && this.#traffic.trouble(session, error),
      });
      this.mask = session.mask;
      const listing = await this.#list(session, signal);
      outer.throwIfAborted();
      events.onListed(listing);
      outer.throwIfAborted();
      this.#traffic.hasBrought = false;
      this.lists.expire();
      this.subscriptions.expire();
      this.#become({ kind: "connected", session, connectedAtMs: Date.now(), latencyMs: performance.now() - startedAt });
      if (this.#isAnnouncedEarly) this.#tools.announced();
      this.#isAnnouncedEarly = false;
    } catch (cause) {
      const error = McpMiddlewareError.isInstance(cause) ? cause : listError(settings.serverName, cause, session);
      if (session !== undefined) await this.#end(session);
      throw error;
    } finally {
      clearTimeout(timer);
      unlink();
    }
  }

  async #list(session: Session, signal: AbortSignal): Promise<ToolList> {
    const list = await rejectOnAbort(this.#listPages(session, "tools", signal), signal);
    this.#tools.listed();
    const { client } = session;
    const handshake = {
      instructions: client.getInstructions(),
      serverInfo: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
    };
    return { ...list, ...(session.maskListing?.(handshake) ?? handshake) };
  }

  async #listPages(session: Session, key: ListKey, signal?: AbortSignal): Promise<RawList> {
    const { settings, maxListPages } = this.#parts;
    const limits = { signal, timeout: settings.requestTimeoutMs, maxPages: maxListPages };
    const list = await listPages(session.client, key, limits);
    return session.maskListing?.(list) ?? list;
  }

  async #listAgain(): Promise<boolean> {
    const { settings, events } = this.#parts;
    const session = await this.session();
    let listing: ToolList;
    try {
      listing = await this.#traffic.send(session, () => this.#list(session, AbortSignal.timeout(settings.requestTimeoutMs)));
    } catch (cause) {
      if (McpMiddlewareError.isInstance(cause)) throw cause;
      const message = `The tools of server "${settings.serverName}" could not be listed again: ${session.mask(messageOf(cause))}. The last list stays.`;
      const code = session.endReason() === undefined ? "CONNECT_FAILED" : "SESSION_LOST";
      throw new McpConnectionError(code, message, {
        serverName: settings.serverName,
        cause: maskValue(cause, session.mask),
      });
    }
    return this.#state.kind === "connected" && events.onListed(listing);
  }

  #notified(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === "notifications/tools/list_changed") {
      if (this.#state.kind === "connected") this.#tools.announced();
      else this.#isAnnouncedEarly = true;
    }
    this.lists.notified(method);
    this.subscriptions.notified(method, params);
    this.#parts.events.onNotification(method, params);
  }

  /** The connection is gone: opened again by itself where that is wanted, failed otherwise. */
  #lose(session: Session, reason?: string, isAnswering = false): void {
    const state = this.#state;
    if (state.kind !== "connected" || state.session !== session) return;
    const { settings, remedy } = this.#parts;
    const error = lostError(
      settings.serverName,
      session,
      reason,
      settings.reconnect === undefined ? remedy : "It is being opened again.",
    );
    const isSteady = this.#traffic.hasBrought || Date.now() - state.connectedAtMs >= STEADY_MS;
    this.#barrenLosses = isSteady ? 0 : this.#barrenLosses + 1;
    // The state first: what closes the session says that it ended.
    if (settings.reconnect === undefined) this.#become({ kind: "failed", error, failedAtMs: Date.now(), attempts: 0 });
    else this.#reconnect(error, settings.reconnect);
    void this.#end(session, isAnswering);
  }

  /** Attempts with growing waits between them; the whole series counts once for the breaker. */
  #reconnect(error: McpMiddlewareError, reconnect: ReconnectSettings): void {
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
      reconnectSeries(error, {
        ...reconnect,
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
    const done = Promise.resolve().then(() => this.#traffic.guarded(series));
    this.#become({ kind: "reconnecting", error, attempt: 0, trying: first, nextAtMs: undefined, abort, done });
    done.catch((failed: unknown) => {
      firstTried();
      const isOwn = McpMiddlewareError.isInstance(failed) && failed.code !== "BREAKER_OPEN";
      this.#fail(abort, isOwn ? failed : last, reconnect.waits + 1);
    });
  }

  /** An opening ended without success. */
  #fail(abort: AbortController, error: McpMiddlewareError, attempts: number): void {
    const state = this.#state;
    if ((state.kind !== "connecting" && state.kind !== "reconnecting") || state.abort !== abort) return;
    if (isForPeople(error)) this.#become({ kind: "disabled", error });
    else {
      const kind = McpAuthRequiredError.isInstance(error) ? "needs-auth" : "failed";
      this.#become({ kind, error, failedAtMs: Date.now(), attempts });
    }
  }

  #become(state: State): void {
    this.#state = state;
    this.#parts.events.onState(state);
  }

  #unavailable(): McpMiddlewareError {
    const state = this.#state;
    const { serverName } = this.#parts.settings;
    const untilMs = this.#traffic.unavailableUntilMs;
    if (state.kind === "reconnecting") return reconnectingError(serverName, state);
    if (state.kind === "failed" || state.kind === "needs-auth") {
      return untilMs === undefined ? state.error : openBreakerError(serverName, untilMs, state.error);
    }
    if (state.kind === "disabled" && state.error !== undefined) return state.error;
    if (state.kind === "disabled" || state.kind === "closed") return closedError(serverName, state.kind);
    return openedAnewError(serverName);
  }
}

/** True for what no further attempt changes, only a person. */
function isForPeople({ code }: McpMiddlewareError): boolean {
  return code === "CONSENT_REQUIRED" || code === "CONSENT_REFUSED";
}
