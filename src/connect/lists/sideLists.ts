import { isDeepStrictEqual } from "node:util";

import type { ListKey, RawList } from "./listPages.js";
import type { Peer } from "../peer.js";
import { ListWatch } from "./listWatch.js";

/** A list other than the tool list. */
export type SideKey = Exclude<ListKey, "tools">;

/** Changes between two listings, by name or URI. */
export interface ListDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

export interface ListSource {
  readonly current: Pick<Peer, "announces"> | undefined;
  /** Age in milliseconds at which a list without change notifications is listed again. */
  readonly listTtlMs: number;
  listPages(key: SideKey): Promise<RawList>;
  canList(): boolean;
  onChanged(key: SideKey, diff: ListDiff): void;
  onFailed(error: unknown): void;
}

interface Kept {
  readonly watch: ListWatch;
  list: RawList | undefined;
}

const ANNOUNCED: Readonly<Record<string, readonly SideKey[]>> = {
  "notifications/prompts/list_changed": ["prompts"],
  "notifications/resources/list_changed": ["resources", "resourceTemplates"],
};
const IDENTITIES = { prompts: "name", resources: "uri", resourceTemplates: "uriTemplate" } as const;

/**
 * Prompts, resources and resource templates of one server: listed on demand, cached, kept fresh.
 */
export class SideLists {
  readonly #source: ListSource;
  readonly #kept = new Map<SideKey, Kept>();

  constructor(source: ListSource) {
    this.#source = source;
  }

  /** The list as it is now. @throws when it has to be listed and that fails. */
  async get(key: SideKey): Promise<RawList> {
    const kept = this.#of(key);
    const isAnnounced =
      this.#source.current?.announces(key === "prompts" ? "prompts" : "resources") === true;
    const ttlMs = isAnnounced ? Number.POSITIVE_INFINITY : this.#source.listTtlMs;
    if (kept.watch.isOutdated || kept.watch.isOlderThan(ttlMs)) await kept.watch.refresh();
    return kept.list!;
  }

  /** Lists cached lists again when a notification announces a change. */
  notified(method: string): void {
    const keys = Object.hasOwn(ANNOUNCED, method) ? ANNOUNCED[method]! : [];
    // Also during the first listing, which may have missed the change.
    for (const key of keys) this.#kept.get(key)?.watch.announced();
  }

  /** Marks the lists as outdated after a reconnect. */
  expire(): void {
    for (const { watch } of this.#kept.values()) watch.expire();
  }

  stop(): void {
    for (const { watch } of this.#kept.values()) watch.stop();
  }

  #of(key: SideKey): Kept {
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const source = this.#source;
    const watch = new ListWatch({
      list: () => this.#list(key),
      canList: () => source.canList(),
      onFailed: (error) => source.onFailed(error),
    });
    const kept: Kept = { watch, list: undefined };
    this.#kept.set(key, kept);
    return kept;
  }

  async #list(key: SideKey): Promise<boolean> {
    const kept = this.#of(key);
    const next = await this.#source.listPages(key);
    const before = kept.list;
    kept.list = next;
    if (before === undefined) return true;
    const diff = diffLists(before.elements, next.elements, IDENTITIES[key]);
    if (diff === undefined) return false;
    this.#source.onChanged(key, diff);
    return true;
  }
}

function diffLists(
  before: readonly unknown[],
  after: readonly unknown[],
  identity: string,
): ListDiff | undefined {
  const old = byIdentity(before, identity);
  const now = byIdentity(after, identity);
  const diff: ListDiff = {
    added: [...now.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !now.has(name)),
    changed: [...now]
      .filter(([name, value]) => old.has(name) && !isDeepStrictEqual(old.get(name), value))
      .map(([name]) => name),
  };
  return diff.added.length + diff.removed.length + diff.changed.length === 0 ? undefined : diff;
}

function byIdentity(elements: readonly unknown[], identity: string): Map<string, unknown> {
  return new Map(
    elements.map((element) => [
      String((element as Record<string, unknown> | null)?.[identity]),
      element,
    ]),
  );
}
