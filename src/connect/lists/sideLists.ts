import { isDeepStrictEqual } from "node:util";

import type { ListKey, RawList } from "./listPages.js";
import { ListWatch } from "./listWatch.js";

/** What a server lists besides tools. */
export type SideKey = Exclude<ListKey, "tools">;

/** What changed between two listings, by name or URI. */
export interface ListDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

/** What {@link SideLists} is made of. */
export interface SideListsParts {
  readonly list: (key: SideKey) => Promise<RawList>;
  /** Whether the server announces changes of the list. */
  readonly isAnnounced: (key: SideKey) => boolean;
  readonly canList: () => boolean;
  /** Milliseconds after which a list is made anew that is not announced. */
  readonly ttlMs: number;
  readonly onChanged: (key: SideKey, diff: ListDiff) => void;
  readonly onFailed: (error: unknown) => void;
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

/** Prompts, resources and resource templates of one server: listed when they are asked for, kept, and kept fresh. */
export class SideLists {
  readonly #parts: SideListsParts;
  readonly #kept = new Map<SideKey, Kept>();

  constructor(parts: SideListsParts) {
    this.#parts = parts;
  }

  /**
   * A list as it is now.
   *
   * @throws when it has to be listed and that fails.
   */
  async get(key: SideKey): Promise<RawList> {
    const kept = this.#of(key);
    const ttlMs = this.#parts.isAnnounced(key) ? Number.POSITIVE_INFINITY : this.#parts.ttlMs;
    if (kept.watch.isOutdated || kept.watch.isOlderThan(ttlMs)) await kept.watch.refresh();
    return kept.list!;
  }

  /** A notification came: lists that are kept are made anew when it announces a change of them. */
  notified(method: string): void {
    const keys = Object.hasOwn(ANNOUNCED, method) ? ANNOUNCED[method]! : [];
    // Also while the first listing is under way: it may have missed the change.
    for (const key of keys) this.#kept.get(key)?.watch.announced();
  }

  /** The connection is another one: what is kept may be old. */
  expire(): void {
    for (const { watch } of this.#kept.values()) watch.expire();
  }

  /** Ends what is planned. */
  stop(): void {
    for (const { watch } of this.#kept.values()) watch.stop();
  }

  #of(key: SideKey): Kept {
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const { canList, onFailed } = this.#parts;
    const kept: Kept = {
      watch: new ListWatch({ list: () => this.#list(key), canList, onFailed }),
      list: undefined,
    };
    this.#kept.set(key, kept);
    return kept;
  }

  async #list(key: SideKey): Promise<boolean> {
    const kept = this.#of(key);
    const next = await this.#parts.list(key);
    const before = kept.list;
    kept.list = next;
    if (before === undefined) return true;
    const diff = diffLists(before.elements, next.elements, IDENTITIES[key]);
    if (diff === undefined) return false;
    this.#parts.onChanged(key, diff);
    return true;
  }
}

function diffLists(before: readonly unknown[], after: readonly unknown[], identity: string): ListDiff | undefined {
  const old = byIdentity(before, identity);
  const now = byIdentity(after, identity);
  const diff: ListDiff = {
    added: [...now.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !now.has(name)),
    changed: [...now].filter(([name, value]) => old.has(name) && !isDeepStrictEqual(old.get(name), value)).map(([name]) => name),
  };
  return diff.added.length + diff.removed.length + diff.changed.length === 0 ? undefined : diff;
}

function byIdentity(elements: readonly unknown[], identity: string): Map<string, unknown> {
  return new Map(elements.map((element) => [String((element as Record<string, unknown> | null)?.[identity]), element]));
}
