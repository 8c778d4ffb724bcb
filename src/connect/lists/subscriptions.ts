import { randomUUID } from "node:crypto";

import { LRUCache } from "lru-cache";

import type { Peer } from "../peer.js";
import type { ServerRequest } from "../requests.js";

/** The connection whose resources are watched. */
export interface SubscriptionSource {
  /** The peer that is open now. */
  readonly current: Pick<Peer, "announces" | "client" | "request"> | undefined;
  send(request: ServerRequest): Promise<unknown>;
}

/** A request about a subscription. */
export type SubscriptionMethod = "resources/subscribe" | "resources/unsubscribe";

/** Milliseconds that a reading waits for its subscription at most. */
const SUBSCRIBE_MS = 1_000;
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
  readonly #source: SubscriptionSource;
  /** Watched because a program asked for it, until it says otherwise. */
  readonly #wanted = new Set<string>();
  /** Watched because a thread read them, with the version of each: drawn when the watch began, and at each change. */
  readonly #watched: LRUCache<string, number>;
  readonly #pending = new Map<string, Promise<unknown>>();
  #connection = randomUUID();
  #listVersion = 0;
  /** Never drawn twice, so that what was watched before and is watched again is not taken for unchanged. */
  #lastVersion = 0;
  /** The server offered subscriptions and did not take one: nothing of this connection is watched any more. */
  #isRefused = false;

  constructor(source: SubscriptionSource) {
    this.#source = source;
    this.#watched = new LRUCache({
      max: MAX_WATCHED,
      dispose: (_version, uri, reason) => {
        if (reason === "evict" && !this.#wanted.has(uri)) this.#quietly("resources/unsubscribe", uri);
      },
    });
  }

  /** Asks the server to tell of changes until {@link unsubscribe}, also on later connections. */
  async subscribe(uri: string): Promise<void> {
    await this.#request("resources/subscribe", uri);
    this.#wanted.add(uri);
  }

  /** Ends {@link subscribe}. */
  async unsubscribe(uri: string): Promise<void> {
    this.#wanted.delete(uri);
    this.#watched.delete(uri);
    await this.#request("resources/unsubscribe", uri);
  }

  /** Watches a resource that is about to be read, where the server offers that; waits for it no longer than a second. Never rejects. */
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

  /** The mark of a resource now, to be kept with what is read after this. */
  mark(uri: string): string {
    const kind = this.#watched.has(uri) ? "watched" : "unwatched";
    return `${kind}/${this.#connection}/${this.#listVersion}/${this.#watched.peek(uri) ?? 0}`;
  }

  /** Whether a resource may be another one than was read under this mark, as far as can be known. */
  isMarked(uri: string, mark: string): boolean {
    const [kind, connection, ...versions] = mark.split("/");
    const [, ...now] = this.mark(uri).split("/");
    // What nobody tells of is old only when this very connection said so.
    if (kind === "unwatched") return connection === now[0] && versions[0] !== now[1];
    return [connection, ...versions].join("/") !== now.join("/");
  }

  /** Whether a change since the mark would have been told of. */
  isWatched(uri: string): boolean {
    return this.#watched.has(uri) && this.#source.current?.announces("subscriptions") === true;
  }

  /** A notification came. It may name a part of what is watched. */
  notified(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === LIST_CHANGED) this.#listVersion += 1;
    const { uri } = params;
    if (method !== UPDATED || typeof uri !== "string") return;
    for (const watched of [...this.#watched.keys()]) {
      if (isPartOf(uri, watched)) this.#watched.set(watched, (this.#lastVersion += 1));
    }
  }

  /** The connection is another one: what a program wants is subscribed again, the rest when it is read. */
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

  /** Without taking the place of a call, and with little patience: nothing depends on it. */
  async #requestBriefly(method: SubscriptionMethod, uri: string): Promise<void> {
    await this.#source.current?.request({ method, params: { uri }, timeoutMs: SUBSCRIBE_MS });
  }

  #quietly(method: SubscriptionMethod, uri: string): void {
    // Behind whatever calls this: the connection may just be becoming what it is.
    void Promise.resolve()
      .then(() => this.#requestBriefly(method, uri))
      .catch(() => undefined);
  }
}

/** True for a URI itself and for what lies below it. */
function isPartOf(uri: string, whole: string): boolean {
  if (!uri.startsWith(whole)) return false;
  return uri.length === whole.length || whole.endsWith("/") || ["/", "?", "#"].includes(uri[whole.length]!);
}
