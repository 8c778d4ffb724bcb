import pLimit, { type LimitFunction } from "p-limit";

import type { ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConnectionError, McpMiddlewareError, messageOf } from "../errors.js";
import { listPages, type RawList } from "./listPages.js";
import { rejectOnAbort } from "./openManaged.js";
import type { OpenSession, ServerInfo, Session } from "./session.js";

/** State of one connection; each kind carries only its own data. */
export type State =
  | { readonly kind: "idle" }
  | { readonly kind: "connecting"; readonly attempt: number; readonly abort: AbortController; readonly done: Promise<void> }
  | { readonly kind: "connected"; readonly session: Session; readonly connectedAtMs: number; readonly latencyMs: number }
  | {
      readonly kind: "needs-auth" | "failed";
      readonly error: McpMiddlewareError;
      readonly failedAtMs: number;
      readonly attempts: number;
    }
  | { readonly kind: "disabled" }
  | { readonly kind: "closed" };

/** The tools a server listed, raw, with what it said in the handshake. */
export interface Listing extends RawList {
  readonly instructions: string | undefined;
  readonly serverInfo: ServerInfo | undefined;
}

/** What a connection tells its hub. */
export interface ConnectionEvents {
  readonly onState: (state: State) => void;
  readonly onListed: (listing: Listing) => void;
  readonly onRefreshFailed: (error: unknown) => void;
  readonly onNotification: (method: string, params: Readonly<Record<string, unknown>>) => void;
}

/** What a connection is made of. */
export interface ConnectionParts {
  readonly settings: ServerSettings;
  readonly open: OpenSession;
  readonly maxListPages: number;
  /** Runs connects, a limited number at a time. */
  readonly connectLimit: LimitFunction;
  readonly events: ConnectionEvents;
  /** What to do when the connection is lost or was never there, for error texts. */
  readonly remedy: string;
  /** Whether a lost connection may be opened again by use; otherwise only by `reconnect()`. */
  readonly reopens: boolean;
  /** Milliseconds after which a failed server is tried again by use. */
  readonly retryAfterMs: number;
}

const LIST_CHANGED_DEBOUNCE_MS = 16;
/** The longest pause between listings of a server that announces changes without end. */
const MAX_LIST_PAUSE_MS = 5_000;
const QUIET_MS = 1_000;

/**
 * One server's connection: opened once for all who ask at the same time, listed, listed again when it changes, closed.
 */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #callLimit: LimitFunction;
  #state: State;
  #listedAtMs = 0;
  #refreshing: Promise<void> | undefined;
  #refreshTimer: NodeJS.Timeout | undefined;
  #isStale = false;
  #listPauseMs = LIST_CHANGED_DEBOUNCE_MS;
  #isAnnouncedEarly = false;
  /** Sessions that are being closed; the connection is closed when they are. */
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#callLimit = pLimit(parts.settings.maxConcurrentCalls);
    this.#state = parts.settings.enabled ? { kind: "idle" } : { kind: "disabled" };
  }

  /** The one source of truth about this server, for status, search and calls. */
  get state(): State {
    const state = this.#state;
    if (state.kind === "connected" && state.session.endReason() !== undefined) this.#lose(state.session);
    return this.#state;
  }

  /**
   * Opens the connection, or joins the opening that is under way.
   *
   * @throws {McpMiddlewareError} with the reason when it cannot be opened.
   */
  async connect(): Promise<void> {
    const state = this.state;
    if (state.kind === "connected") return;
    if (state.kind === "connecting") return state.done;
    if (state.kind === "disabled" || state.kind === "closed" || this.#isLeftToOwner(state)) throw this.#unavailable();
    const attempt = state.kind === "idle" ? 1 : state.attempts + 1;
    const abort = new AbortController();
    const done = this.#parts.connectLimit(() => this.#open(attempt, abort));
    // Whoever waits sees the error; nobody waiting is no unhandled rejection.
    done.catch(() => undefined);
    this.#become({ kind: "connecting", attempt, abort, done });
    return done;
  }

  /** Closes what is open and opens anew. */
  async reconnect(): Promise<void> {
    const state = this.state;
    if (state.kind === "connecting") {
      await state.done.catch(() => undefined);
    } else if (state.kind === "connected") {
      this.#become({ kind: "idle" });
      await this.#end(state.session);
    } else if (this.#isLeftToOwner(state)) {
      this.#become({ kind: "idle" });
    }
    await this.connect();
  }

  /** Begins a connect in the background when this server failed long enough ago. */
  retryIfDue(): void {
    if (this.#isDue(this.state)) this.connect().catch(() => undefined);
  }

  /** A request failed in a way that says that the connection is gone, where no closing says so (HTTP, SSE). */
  reportFailure(session: Session, cause: unknown): void {
    if (this.#parts.settings.transport?.kind !== "stdio") this.#lose(session, messageOf(cause));
  }

  /**
   * The session, opened when it is not yet.
   *
   * @throws {McpMiddlewareError} when the server is failed, disabled or closed, with the reason.
   */
  async session(): Promise<Session> {
    const { kind } = this.state;
    if (kind === "idle" || kind === "connecting" || this.#isDue(this.state)) await this.connect();
    const { state } = this;
    if (state.kind !== "connected") throw this.#unavailable();
    return state.session;
  }

  /** Runs a task with the session, at most `maxConcurrentCalls` at the same time. */
  async run<Value>(signal: AbortSignal | undefined, task: (session: Session) => Promise<Value>): Promise<Value> {
    const turn = this.#callLimit(async () => {
      signal?.throwIfAborted();
      // Taken when it is this call's turn: while it waited the server may have been opened anew.
      const { state } = this;
      return task(state.kind === "connected" ? state.session : await rejectOnAbort(this.session(), signal));
    });
    return rejectOnAbort(turn, signal);
  }

  /** Lists again now, or joins the listing that is under way and lists once more after it. The last good list stays. */
  async refresh(): Promise<void> {
    if (this.#refreshing !== undefined) {
      this.#isStale = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#refreshUntilFresh();
    try {
      await this.#refreshing;
    } finally {
      this.#refreshing = undefined;
    }
  }

  /** Lists again in the background when the last listing is older than `ttlMs` and the server announces no changes. */
  refreshIfOld(ttlMs: number): void {
    const state = this.state;
    if (state.kind !== "connected" || this.#refreshing !== undefined || Date.now() - this.#listedAtMs < ttlMs) return;
    if (state.session.announcesChanges()) return;
    this.#refreshInBackground();
  }

  #refreshInBackground(): void {
    this.refresh().catch((error: unknown) => {
      if (this.#state.kind !== "closed") this.#parts.events.onRefreshFailed(error);
    });
  }

  /** Ends the connection for good. */
  async close(): Promise<void> {
    const state = this.#state;
    clearTimeout(this.#refreshTimer);
    if (state.kind !== "closed") {
      this.#become({ kind: "closed" });
      if (state.kind === "connecting") {
        state.abort.abort(this.#unavailable());
        await state.done.catch(() => undefined);
      } else if (state.kind === "connected") {
        void this.#end(state.session);
      }
    }
    await Promise.all(this.#ending);
  }

  /** Closes a session; `close()` waits for it. */
  #end(session: Session): Promise<void> {
    const ending = session.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }

  /** A wrapped client's session that has ended: only its owner opens it again. */
  #isLeftToOwner(state: State): boolean {
    return !this.#parts.reopens && state.kind === "failed" && state.error.code === "SESSION_LOST";
  }

  #isDue(state: State): boolean {
    if (state.kind !== "failed" || !this.#parts.reopens) return false;
    // A remote server that was lost is opened anew at once; a child that ended may be broken.
    const isLostRemote = state.error.code === "SESSION_LOST" && this.#parts.settings.transport?.kind !== "stdio";
    return isLostRemote || Date.now() - state.failedAtMs >= this.#parts.retryAfterMs;
  }

  async #open(attempt: number, abort: AbortController): Promise<void> {
    const { settings, open, events } = this.#parts;
    const isCurrent = (): boolean => this.#state.kind === "connecting" && this.#state.abort === abort;
    const startedAt = performance.now();
    const timer = setTimeout(() => abort.abort(this.#connectTimeout(attempt)), settings.connectTimeoutMs);
    let session: Session | undefined;
    try {
      abort.signal.throwIfAborted();
      session = await open(abort.signal, {
        onNotification: (method, params) => this.#notified(method, params),
        onEnd: () => session !== undefined && this.#lose(session),
      });
      const listing = await this.#list(session, abort.signal);
      if (!isCurrent()) throw this.#unavailable();
      events.onListed(listing);
      this.#become({ kind: "connected", session, connectedAtMs: Date.now(), latencyMs: performance.now() - startedAt });
      if (this.#isAnnouncedEarly) this.#refreshSoon();
      this.#isAnnouncedEarly = false;
    } catch (cause) {
      const error = this.#asConnectError(cause, session);
      if (session !== undefined) await this.#end(session);
      if (isCurrent()) {
        const kind = McpAuthRequiredError.isInstance(error) ? "needs-auth" : "failed";
        this.#become({ kind, error, failedAtMs: Date.now(), attempts: attempt });
      }
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #list(session: Session, signal: AbortSignal): Promise<Listing> {
    const { settings, maxListPages } = this.#parts;
    const list = await rejectOnAbort(
      listPages(session.client, "tools", { signal, timeout: settings.requestTimeoutMs, maxPages: maxListPages }),
      signal,
    );
    this.#listedAtMs = Date.now();
    return { ...list, instructions: session.client.getInstructions(), serverInfo: session.client.getServerVersion() };
  }

  async #refreshUntilFresh(): Promise<void> {
    do {
      this.#isStale = false;
      const session = await this.session();
      let listing: Listing;
      try {
        listing = await this.#list(session, AbortSignal.timeout(this.#parts.settings.requestTimeoutMs));
      } catch (cause) {
        throw this.#refreshError(cause, session);
      }
      if (this.#state.kind === "connected") this.#parts.events.onListed(listing);
    } while (this.#isStale);
  }

  #refreshError(cause: unknown, session: Session): McpConnectionError {
    const { serverName } = this.#parts.settings;
    const message = `The tools of server "${serverName}" could not be listed again: ${session.mask(messageOf(cause))}. The last list stays.`;
    return new McpConnectionError(session.endReason() === undefined ? "CONNECT_FAILED" : "SESSION_LOST", message, { serverName });
  }

  #notified(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === "notifications/tools/list_changed") {
      if (this.#state.kind === "connected") this.#refreshSoon();
      else this.#isAnnouncedEarly = true;
    }
    this.#parts.events.onNotification(method, params);
  }

  /** A burst of announcements leads to one listing after it; one without end to fewer and fewer. */
  #refreshSoon(): void {
    if (this.#refreshTimer !== undefined) return;
    const isQuiet = Date.now() - this.#listedAtMs > QUIET_MS + this.#listPauseMs;
    this.#listPauseMs = isQuiet ? LIST_CHANGED_DEBOUNCE_MS : Math.min(MAX_LIST_PAUSE_MS, this.#listPauseMs * 2);
    this.#refreshTimer = setTimeout(() => {
      this.#refreshTimer = undefined;
      if (this.state.kind === "connected") this.#refreshInBackground();
    }, this.#listPauseMs);
    this.#refreshTimer.unref();
  }

  #lose(session: Session, reason?: string): void {
    const state = this.#state;
    if (state.kind !== "connected" || state.session !== session) return;
    const { serverName } = this.#parts.settings;
    const tail = session.stderrTail();
    const error = new McpConnectionError(
      "SESSION_LOST",
      `Server "${serverName}" was lost: ${session.endReason() ?? session.mask(reason ?? "the connection ended")}. ${this.#parts.remedy}${tail === "" ? "" : ` Its last lines on stderr: ${tail}`}`,
      { serverName },
    );
    this.#become({ kind: "failed", error, failedAtMs: Date.now(), attempts: 0 });
    void this.#end(session);
  }

  #become(state: State): void {
    this.#state = state;
    this.#parts.events.onState(state);
  }

  #asConnectError(cause: unknown, session: Session | undefined): McpMiddlewareError {
    if (McpMiddlewareError.isInstance(cause)) return cause;
    const { serverName } = this.#parts.settings;
    const mask = session?.mask ?? ((text: string) => text);
    const ended = session?.endReason();
    const tail = session?.stderrTail() ?? "";
    return new McpConnectionError(
      "CONNECT_FAILED",
      mask(
        `Server "${serverName}" was reached, but its tools could not be listed: ${ended ?? messageOf(cause)}.${tail === "" ? "" : ` Its last lines on stderr: ${tail}`}`,
      ),
      { serverName, cause },
    );
  }

  #connectTimeout(attempt: number): McpConnectionError {
    const { serverName, connectTimeoutMs } = this.#parts.settings;
    return new McpConnectionError(
      "CONNECT_TIMEOUT",
      `Server "${serverName}" was not ready within ${connectTimeoutMs} ms (attempt ${attempt}). Check that it runs, or raise connectTimeoutMs.`,
      { serverName },
    );
  }

  #unavailable(): McpMiddlewareError {
    const state = this.#state;
    const { serverName } = this.#parts.settings;
    if (state.kind === "failed" || state.kind === "needs-auth") return state.error;
    const why = state.kind === "disabled" ? 'is disabled ("enabled": false)' : "is closed: the hub was closed";
    return new McpConnectionError("CLOSED", `Server "${serverName}" ${why}.`, { serverName });
  }
}
