import pLimit, { type LimitFunction } from "p-limit";

import type { ServerSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConnectionError, McpMiddlewareError, messageOf } from "../errors.js";
import { listTools, type RawToolList } from "./listTools.js";
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

/** What a server listed, raw, with what it said in the handshake. */
export interface Listing extends RawToolList {
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
}

const LIST_CHANGED_DEBOUNCE_MS = 16;

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

  /** True while a connect is under way or may still be begun by use. */
  get isPending(): boolean {
    return this.state.kind === "connecting" || this.state.kind === "idle";
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
    if (state.kind === "disabled" || state.kind === "closed") throw this.#unavailable();
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
      await state.session.close();
    }
    await this.connect();
  }

  /** Begins a connect in the background when this server failed long enough ago. */
  retryIfDue(retryAfterMs: number): void {
    const state = this.state;
    if (state.kind !== "failed" || Date.now() - state.failedAtMs < retryAfterMs) return;
    this.connect().catch(() => undefined);
  }

  /**
   * The session, opened when it is not yet.
   *
   * @throws {McpMiddlewareError} when the server is failed, disabled or closed, with the reason.
   */
  async session(): Promise<Session> {
    if (this.state.kind === "idle" || this.state.kind === "connecting") await this.connect();
    const state = this.state;
    if (state.kind !== "connected") throw this.#unavailable();
    return state.session;
  }

  /** Runs a task with the session, at most `maxConcurrentCalls` at the same time. */
  async run<Value>(signal: AbortSignal | undefined, task: (session: Session) => Promise<Value>): Promise<Value> {
    const { state } = this;
    const session = state.kind === "connected" ? state.session : await rejectOnAbort(this.session(), signal);
    const turn = this.#callLimit(() => {
      signal?.throwIfAborted();
      return task(session);
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
    if (state.kind === "closed") return;
    this.#become({ kind: "closed" });
    if (state.kind === "connecting") {
      state.abort.abort(this.#unavailable());
      await state.done.catch(() => undefined);
    } else if (state.kind === "connected") {
      await state.session.close();
    }
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
      this.#become({ kind: "connected", session, connectedAtMs: Date.now(), latencyMs: performance.now() - startedAt });
      events.onListed(listing);
    } catch (cause) {
      const error = this.#asConnectError(cause, session);
      await session?.close();
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
      listTools(session.client, { signal, timeout: settings.requestTimeoutMs, maxPages: maxListPages }),
      signal,
    );
    this.#listedAtMs = Date.now();
    return { ...list, instructions: session.client.getInstructions(), serverInfo: session.client.getServerVersion() };
  }

  async #refreshUntilFresh(): Promise<void> {
    do {
      this.#isStale = false;
      const session = await this.session();
      const listing = await this.#list(session, AbortSignal.timeout(this.#parts.settings.requestTimeoutMs));
      if (this.#state.kind === "connected") this.#parts.events.onListed(listing);
    } while (this.#isStale);
  }

  #notified(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === "notifications/tools/list_changed") this.#refreshSoon();
    this.#parts.events.onNotification(method, params);
  }

  /** A burst of announcements leads to one listing after it. */
  #refreshSoon(): void {
    clearTimeout(this.#refreshTimer);
    this.#refreshTimer = setTimeout(() => {
      if (this.state.kind !== "connected") return;
      this.#refreshInBackground();
    }, LIST_CHANGED_DEBOUNCE_MS);
    this.#refreshTimer.unref();
  }

  #lose(session: Session): void {
    const state = this.#state;
    if (state.kind !== "connected" || state.session !== session) return;
    const { serverName } = this.#parts.settings;
    const tail = session.stderrTail();
    const error = new McpConnectionError(
      "SESSION_LOST",
      `Server "${serverName}" was lost: ${session.endReason() ?? "the connection ended"}. ${this.#parts.remedy}${tail === "" ? "" : ` Its last lines on stderr: ${tail}`}`,
      { serverName },
    );
    this.#become({ kind: "failed", error, failedAtMs: Date.now(), attempts: 0 });
    void session.close();
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
