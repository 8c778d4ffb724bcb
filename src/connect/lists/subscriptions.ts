import { randomUUID } from "node:crypto";

import { LRUCache } from "lru-cache";

import type { Peer } from "../peer.js";
import type { ServerRequest } from "../requests.js";

export interface SubscriptionSource {
  readonly current: Pick<Peer, "announces" | "client" | "request"> | undefined;
  send(request: ServerRequest): Promise<unknown>;
}

export type SubscriptionMethod = "resources/subscribe" | "resources/unsubscribe";

/** Milliseconds that a read waits for its subscription. */
const SUBSCRIBE_MS = 1_000;
/** Most resources watched for threads; the least recently read is dropped. */
const MAX_WATCHED = 200;
const LIST_CHANGED = "notifications/resources/list_changed";
const UPDATED = "notifications/resources/updated";

/**
 * Tells which resources of one server changed since they were read. A mark is valid in one process
 * and one connection only.
 */
export class Subscriptions {
  readonly #source: SubscriptionSource;
  /** Subscribed by the program, until it unsubscribes. */
  readonly #wanted = new Set<string>();
  /** Watched because a thread read them, with a version that rises with each change. */
  readonly #watched: LRUCache<string, number>;
  readonly #pending = new Map<string, Promise<unknown>>();
  #connection = randomUUID();
  #listVersion = 0;
  /** Never reused, so that a resource watched again does not look unchanged. */
  #lastVersion = 0;
  /** The server rejected a subscription: nothing more is watched on this connection. */
  #isRefused = false;

  constructor(source: SubscriptionSource) {
    this.#source = source;
    this.#watched = new LRUCache({
      max: MAX_WATCHED,
      dispose: (_version, uri, reason) => {
        if (reason === "evict" && !this.#wanted.has(uri))
          this.#quietly("resources/unsubscribe", uri);
      },
    });
  }

  /** Subscribes to a resource until {@link unsubscribe}, also after a reconnect. */
  async subscribe(uri: string): Promise<void> {
    await this.#request("resources/subscribe", uri);
    this.#wanted.add(uri);
  }

  async unsubscribe(uri: string): Promise<void> {
    this.#wanted.delete(uri);
    this.#watched.delete(uri);
    await this.#request("resources/unsubscribe", uri);
  }

  /**
   * Watches a resource before it is read, if the server offers subscriptions. Waits at most a
   * second; never rejects.
   */
  async watch(uri: string): Promise<void> {
    if (this.#isRefused || !this.#isOffered || this.#watched.get(uri) !== undefined) return;
    let pending = this.#pending.get(uri);
    if (pending === undefined) {
      const connection = this.#connection;
      pending = this.#requestBriefly("resources/subscribe", uri)
        .then(
          () => {
            if (connection === this.#connection) this.#watched.set(uri, (this.#lastVersion += 1));
          },
          () => {
            if (connection === this.#connection) this.#isRefused = true;
          },
        )
        .finally(() => this.#pending.delete(uri));
      this.#pending.set(uri, pending);
    }
    await pending;
  }

  /** The current mark of a resource, to keep with what is read after it. */
  mark(uri: string): string {
    const kind = this.#watched.has(uri) ? "watched" : "unwatched";
    return `${kind}/${this.#connection}/${this.#listVersion}/${this.#watched.peek(uri) ?? 0}`;
  }

  /** Whether a resource may have changed since it had this mark, as far as can be known. */
  isMarked(uri: string, mark: string): boolean {
    const [kind, connection, ...versions] = mark.split("/");
    const [, ...now] = this.mark(uri).split("/");
    // An unwatched resource is outdated only if this connection announced a new list.
    if (kind === "unwatched") return connection === now[0] && versions[0] !== now[1];
    return [connection, ...versions].join("/") !== now.join("/");
  }

  /** Whether a change since the mark would have been announced. */
  isWatched(uri: string): boolean {
    return this.#watched.has(uri) && this.#source.current?.announces("subscriptions") === true;
  }

  /** Handles a notification. Its URI may be a part of a watched resource. */
  notified(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === LIST_CHANGED) this.#listVersion += 1;
    const { uri } = params;
    if (method !== UPDATED || typeof uri !== "string") return;
    for (const watched of [...this.#watched.keys()]) {
      if (isPartOf(uri, watched)) this.#watched.set(watched, (this.#lastVersion += 1));
    }
  }

  /** Handles a new connection: subscribes again for the program; threads do so when they read. */
  expire(): void {
    this.#connection = randomUUID();
    this.#isRefused = false;
    this.#pending.clear();
    this.#watched.clear();
    for (const uri of this.#wanted) this.#quietly("resources/subscribe", uri);
  }

  get #isOffered(): boolean {
    return this.#source.current?.client.getServerCapabilities()?.resources?.subscribe === true;
  }

  async #request(method: SubscriptionMethod, uri: string): Promise<void> {
    const subject = `the ${method.slice("resources/".length)} request for resource "${uri}"`;
    await this.#source.send({ method, params: { uri }, subject, isRepeatable: true });
  }

  /** Bypasses the concurrency limit, with a short timeout: nothing depends on the answer. */
  async #requestBriefly(method: SubscriptionMethod, uri: string): Promise<void> {
    await this.#source.current?.request({ method, params: { uri }, timeoutMs: SUBSCRIBE_MS });
  }

  #quietly(method: SubscriptionMethod, uri: string): void {
    // Deferred: the caller may be in the middle of a state change.
    void Promise.resolve()
      .then(() => this.#requestBriefly(method, uri))
      .catch(() => undefined);
  }
}

function isPartOf(uri: string, whole: string): boolean {
  if (!uri.startsWith(whole)) return false;
  return (
    uri.length === whole.length ||
    whole.endsWith("/") ||
    ["/", "?", "#"].includes(uri[whole.length]!)
  );
}
