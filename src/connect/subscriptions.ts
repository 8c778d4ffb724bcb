import { randomUUID } from "node:crypto";

import { LRUCache } from "lru-cache";

/** What {@link Subscriptions} is made of. */
export interface SubscriptionsParts {
  /** Whether the server takes subscriptions. */
  readonly isOffered: () => boolean;
  /** Whether what it then says is sure to reach us. */
  readonly isReliable: () => boolean;
  readonly request: (method: "resources/subscribe" | "resources/unsubscribe", uri: string) => Promise<unknown>;
}

/** So many resources are watched for threads; a further one ends the watch of the one that was read longest ago. */
const MAX_WATCHED = 200;
const LIST_CHANGED = "notifications/resources/list_changed";
const UPDATED = "notifications/resources/updated";

/**
 * Which resources of one server changed since they were read.
 *
 * A reading is tied to the mark that its resource had before it. Marks hold in one process and one connection: while the
 * connection was away, or in another process, a resource may have changed unseen.
 */
export class Subscriptions {
  readonly #parts: SubscriptionsParts;
  /** Watched because a program asked for it, until it says otherwise. */
  readonly #wanted = new Set<string>();
  /** Watched because a thread read them. */
  readonly #watched: LRUCache<string, true>;
  readonly #pending = new Map<string, Promise<unknown>>();
  readonly #versions = new Map<string, number>();
  #connection = randomUUID();
  #listVersion = 0;

  constructor(parts: SubscriptionsParts) {
    this.#parts = parts;
    this.#watched = new LRUCache({
      max: MAX_WATCHED,
      dispose: (_watched, uri, reason) => {
        this.#versions.delete(uri);
        if (reason === "evict" && !this.#wanted.has(uri)) this.#quietly("resources/unsubscribe", uri);
      },
    });
  }

  /** Asks the server to tell of changes until {@link unsubscribe}, also on later connections. */
  async subscribe(uri: string): Promise<void> {
    await this.#parts.request("resources/subscribe", uri);
    this.#wanted.add(uri);
  }

  /** Ends {@link subscribe}. */
  async unsubscribe(uri: string): Promise<void> {
    this.#wanted.delete(uri);
    this.#watched.delete(uri);
    await this.#parts.request("resources/unsubscribe", uri);
  }

  /** Watches a resource that is about to be read, where the server offers that. Never rejects. */
  async watch(uri: string): Promise<void> {
    if (!this.#parts.isOffered() || this.#watched.get(uri) !== undefined) return;
    let pending = this.#pending.get(uri);
    if (pending === undefined) {
      const connection = this.#connection;
      pending = this.#parts
        .request("resources/subscribe", uri)
        // A server that offers it and refuses is read as one that does not offer it.
        .then(
          () => connection === this.#connection && this.#watched.set(uri, true),
          () => undefined,
        )
        .finally(() => this.#pending.delete(uri));
      this.#pending.set(uri, pending);
    }
    await pending;
  }

  /** The mark of a resource now, to be kept with what is read after this. */
  mark(uri: string): string {
    const kind = this.#watched.has(uri) ? "watched" : "unwatched";
    return `${kind}/${this.#connection}/${this.#listVersion}/${this.#versions.get(uri) ?? 0}`;
  }

  /** Whether a resource may be another one than was read under this mark, as far as can be known. */
  isMarked(uri: string, mark: string): boolean {
    const [kind, connection, ...versions] = mark.split("/");
    const [, ...now] = this.mark(uri).split("/");
    // What nobody tells of is old only when this very connection said so.
    if (kind === "unwatched" && connection !== now[0]) return false;
    return [connection, ...versions].join("/") !== now.join("/");
  }

  /** Whether a change since the mark would have been told of. */
  isWatched(uri: string): boolean {
    return this.#watched.has(uri) && this.#parts.isReliable();
  }

  /** A notification came. */
  notified(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === LIST_CHANGED) this.#listVersion += 1;
    const { uri } = params;
    if (method === UPDATED && typeof uri === "string" && this.#watched.has(uri)) {
      this.#versions.set(uri, (this.#versions.get(uri) ?? 0) + 1);
    }
  }

  /** The connection is another one: what a program wants is subscribed again, the rest when it is read. */
  expire(): void {
    this.#connection = randomUUID();
    this.#pending.clear();
    this.#watched.clear();
    for (const uri of this.#wanted) this.#quietly("resources/subscribe", uri);
  }

  #quietly(method: "resources/subscribe" | "resources/unsubscribe", uri: string): void {
    // Behind whatever calls this: the connection may just be becoming what it is.
    void Promise.resolve()
      .then(() => this.#parts.request(method, uri))
      .catch(() => undefined);
  }
}
