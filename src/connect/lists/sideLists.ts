import { isDeepStrictEqual } from "node:util";

import type { ListKey, RawList } from "./listPages.js";
import type { Peer } from "../peer.js";
import { ListWatch } from "./listWatch.js";

/** A list besides that of tools. */
export type SideKey = Exclude<ListKey, "tools">;

/** Changes from one listing to the next, by name or URI. */
export interface ListDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

/** The connection whose lists are kept. */
export interface ListSource {
  /** The peer that is open now. */
  readonly current: Pick<Peer, "announces"> | undefined;
  /** Milliseconds after which a list is made again whose changes are not announced. */
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

/** Prompts, resources and resource templates of one server: listed when they are asked for, kept, and kept fresh. */
export class SideLists {
  readonly #source: ListSource;
  readonly #kept = new Map<SideKey, Kept>();

  constructor(source: ListSource) {
    this.#source = source;
  }

  /**
   * A list as it is now.
   *
   * @throws when it has to be listed and that fails.
   */
  async get(key: SideKey): Promise<RawList> {
    const kept = this.#of(key);
    const isAnnounced = this.#source.current?.announces(key === "prompts" ? "prompts" : "resources") === true;
    const ttlMs = isAnnounced ? Number.POSITIVE_INFINITY : this.#source.listTtlMs;
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
