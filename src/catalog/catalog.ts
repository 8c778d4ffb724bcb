import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import { LRUCache } from "lru-cache";

import type { HubSettings, ServerSettings } from "../config/settings.js";
import type { ServerInfo } from "../connect/peer.js";
import { diffTools, type CatalogDiff } from "./changes.js";
import { atOnce, type Steps } from "../text/slices.js";
import { boundName, longName, nameTool } from "./names.js";
import { searchFields } from "./search/searchFields.js";
import { SearchIndex } from "./search/searchIndex.js";
import { toolEntry, type RawTool, type ToolEntry } from "./toolEntry.js";

/** What one server said about itself, as listed last. */
export interface ServerSnapshot {
  readonly tools: readonly RawTool[];
  /** The server's own instructions for models. Untrusted. */
  readonly instructions: string | undefined;
  /** Name, title and version the server gives itself. Untrusted. */
  readonly serverInfo: ServerInfo | undefined;
  /** The protocol's capabilities that the server has. */
  readonly capabilities?: Readonly<Record<string, unknown>> | undefined;
}

/** One server in the catalog. */
export interface ServerCatalog {
  readonly serverName: string;
  /** Counts the changes of this server, from 1. */
  readonly version: number;
  /**
   * Digest of the hashes of the offered tools: equal digests mean equal tools, in every process.
   */
  readonly digest: string;
  /** The offered tools, sorted by raw name. */
  readonly tools: readonly ToolEntry[];
  readonly definitionChars: number;
  readonly snapshot: ServerSnapshot;
  /**
   * True for what was remembered from another process: the server has not been listed in this one.
   */
  readonly isRemembered: boolean;
}

/** What a listing changed. */
export interface CatalogUpdate {
  readonly diff: CatalogDiff | undefined;
  readonly duplicates: readonly string[];
  readonly dropped: readonly string[];
}

const USUAL_NAME = /^[A-Za-z0-9_.:/-]+$/;

const MAX_FORMER = 1_000;
const DIGEST_CHARS = 16;

/**
 * All that the servers of one identity offer: entries, routing table and search index.
 *
 * Routing is by table: a bound name is looked up, never taken apart.
 */
export class Catalog {
  /** Search index over the offered tools, keyed by bound name. */
  readonly index = new SearchIndex();
  readonly #settings: HubSettings;
  readonly #servers = new Map<string, ServerCatalog>();
  /** The last change of each server, with the digest of the list before it. */
  readonly #lastChanges = new Map<
    string,
    { readonly digest: string; readonly diff: CatalogDiff }
  >();
  readonly #byBoundName = new Map<string, ToolEntry>();
  readonly #byToolName = new Map<string, Set<ToolEntry>>();
  readonly #byLeaf = new Map<string, Set<ToolEntry>>();
  readonly #unusualNames = new Set<string>();
  /** Tools that were removed, as they were last. */
  readonly #former = new LRUCache<string, ToolEntry>({ max: MAX_FORMER });
  /** Tools that the update under way renames, in place of which others have their name. */
  readonly #renamed = new Map<ToolEntry, ToolEntry>();
  #version = 0;

  constructor(settings: HubSettings) {
    this.#settings = settings;
  }

  /** Counts all changes; what was derived from the catalog is valid while it stays. */
  get version(): number {
    return this.#version;
  }

  /** The known servers, in the order of the configuration. */
  servers(): ServerCatalog[] {
    return [...this.#settings.servers.keys()].flatMap(
      (serverName) => this.#servers.get(serverName) ?? [],
    );
  }

  /** One server, or `undefined` when it has not been listed yet. */
  server(serverName: string): ServerCatalog | undefined {
    return this.#servers.get(serverName);
  }

  /** All offered tools of all servers. */
  tools(): Iterable<ToolEntry> {
    return this.#byBoundName.values();
  }

  /** The tool of a bound name. */
  tool(boundName: string): ToolEntry | undefined {
    return this.#byBoundName.get(boundName);
  }

  /** The tool of a server by its raw name. */
  toolOf(serverName: string, toolName: string): ToolEntry | undefined {
    return this.toolsNamed(toolName).find((entry) => entry.serverName === serverName);
  }

  /** A tool of a server that was removed, as it was last; `undefined` when it is not remembered. */
  formerTool(serverName: string, toolName: string): ToolEntry | undefined {
    return this.#former.get(JSON.stringify([serverName, toolName]));
  }

  /** Tools of any server with this raw name. */
  toolsNamed(toolName: string): ToolEntry[] {
    return [...(this.#byToolName.get(toolName) ?? [])];
  }

  /** Raw names with characters that names seldom have, such as spaces. */
  unusualNames(): Iterable<string> {
    return this.#unusualNames;
  }

  /** Tools of any server whose raw name ends in this part, after a dot, slash or colon. */
  toolsWithLeaf(leaf: string): ToolEntry[] {
    return [...(this.#byLeaf.get(leaf) ?? [])];
  }

  /**
   * Puts in what a server listed.
   *
   * @returns What changed, `undefined` when no tool did. `duplicates` names raw tool names that
   * came twice, `dropped` those that could not be read.
   */
  setServer(serverName: string, snapshot: ServerSnapshot, isRemembered = false): CatalogUpdate {
    return atOnce(this.update(serverName, snapshot, isRemembered));
  }

  /**
   * Does what {@link setServer} does, in steps. Tools change one by one; two updates must not run
   * at the same time.
   */
  *update(
    serverName: string,
    snapshot: ServerSnapshot,
    isRemembered = false,
  ): Steps<CatalogUpdate> {
    const settings = this.#settings.servers.get(serverName)!;
    const before = this.#servers.get(serverName);
    const duplicates: string[] = [];
    const dropped: string[] = [];
    const offered = new Map<string, RawTool>();
    for (const tool of snapshot.tools) {
      if (!settings.isOffered(tool.name)) continue;
      if (offered.has(tool.name)) duplicates.push(tool.name);
      else offered.set(tool.name, tool);
    }
    const kept = new Map<string, ToolEntry>();
    for (const entry of before?.tools ?? []) {
      yield;
      if (offered.has(entry.toolName)) {
        kept.set(entry.toolName, entry);
        continue;
      }
      this.#drop(entry);
      this.#former.set(JSON.stringify([serverName, entry.toolName]), entry);
    }
    const tools: ToolEntry[] = [];
    const hashes = createHash("sha256");
    let definitionChars = 0;
    // The default order compares UTF-16 units as `<` does, and is much faster than a function.
    for (const name of [...offered.keys()].sort()) {
      yield;
      if (this.index.hasManyHoles) yield* this.index.compact();
      const old = kept.get(name);
      try {
        const entry = this.#place(offered.get(name)!, old, settings, snapshot, before?.snapshot);
        tools.push(entry);
        hashes.update(`${entry.hash}\n`);
        definitionChars += entry.definitionChars;
      } catch {
        // Too deep to be read at all; it must not cost the others.
        dropped.push(name);
        if (old !== undefined) this.#drop(old);
      }
    }
    yield* this.#placeRenamed();
    const diff = yield* diffTools(before?.tools ?? [], tools);
    if (before !== undefined && diff !== undefined)
      this.#lastChanges.set(serverName, { digest: before.digest, diff });
    this.#servers.set(serverName, {
      serverName,
      version: (before?.version ?? 0) + (diff === undefined ? 0 : 1),
      digest: hashes.digest("hex").slice(0, DIGEST_CHARS),
      tools,
      definitionChars,
      snapshot,
      isRemembered,
    });
    const isChanged =
      diff !== undefined ||
      before === undefined ||
      tools.some((entry, position) => entry !== before.tools[position]) ||
      before.snapshot.instructions !== snapshot.instructions ||
      !isDeepStrictEqual(before.snapshot.serverInfo, snapshot.serverInfo) ||
      !isDeepStrictEqual(before.snapshot.capabilities, snapshot.capabilities);
    if (isChanged) this.#version += 1;
    return { diff, duplicates, dropped };
  }

  /**
   * The last change of a server; `undefined` unless it was made to the tool list with this digest.
   */
  diffSince(serverName: string, digestThen: string): CatalogDiff | undefined {
    const last = this.#lastChanges.get(serverName);
    return last?.digest === digestThen ? last.diff : undefined;
  }

  /** The entry of a tool: the one that is there when nothing about it changed. */
  #place(
    tool: RawTool,
    old: ToolEntry | undefined,
    settings: ServerSettings,
    snapshot: ServerSnapshot,
    before: ServerSnapshot | undefined,
  ): ToolEntry {
    const { serverName } = settings;
    const entry = toolEntry(
      serverName,
      old?.boundName ?? this.#freeName(serverName, tool.name),
      tool,
    );
    const isSame =
      old?.hash === entry.hash && before?.serverInfo?.title === snapshot.serverInfo?.title;
    if (isSame) return old;
    if (old !== undefined) this.#drop(old);
    this.#put(entry, settings, snapshot);
    return entry;
  }

  /**
   * The bound name by the `names` option. Of two tools that want the same one, that of the server
   * configured first has it, whichever connected first; the other is named as with `"mcp"`.
   */
  #freeName(serverName: string, toolName: string): string {
    const wanted = nameTool(this.#settings.names, serverName, toolName);
    const holder = this.#byBoundName.get(wanted);
    if (holder === undefined) return wanted;
    const order = [...this.#settings.servers.keys()];
    const own = boundName(serverName, toolName);
    if (
      holder.serverName === serverName ||
      order.indexOf(holder.serverName) < order.indexOf(serverName)
    ) {
      return this.#byBoundName.has(own) ? longName(serverName, toolName) : own;
    }
    this.#rename(holder, boundName(holder.serverName, holder.toolName));
    return wanted;
  }

  #rename(entry: ToolEntry, name: string): void {
    const { snapshot } = this.#servers.get(entry.serverName)!;
    const renamed: ToolEntry = {
      ...entry,
      boundName: this.#byBoundName.has(name) ? longName(entry.serverName, entry.toolName) : name,
    };
    this.#drop(entry);
    this.#put(renamed, this.#settings.servers.get(entry.serverName)!, snapshot);
    this.#renamed.set(entry, renamed);
  }

  /** Puts renamed tools in their place in the lists of their servers. */
  *#placeRenamed(): Steps<void> {
    for (const serverName of new Set([...this.#renamed.keys()].map((entry) => entry.serverName))) {
      yield;
      const server = this.#servers.get(serverName)!;
      this.#servers.set(serverName, {
        ...server,
        tools: server.tools.map((entry) => this.#renamed.get(entry) ?? entry),
      });
    }
    this.#renamed.clear();
  }

  #put(entry: ToolEntry, settings: ServerSettings, snapshot: ServerSnapshot): void {
    this.#byBoundName.set(entry.boundName, entry);
    addTo(this.#byToolName, entry.toolName, entry);
    if (!USUAL_NAME.test(entry.toolName)) this.#unusualNames.add(entry.toolName);
    const leaf = leafOf(entry.toolName);
    if (leaf !== entry.toolName) addTo(this.#byLeaf, leaf, entry);
    this.index.add(entry.boundName, searchFields(entry, settings, snapshot));
  }

  #drop(entry: ToolEntry): void {
    if (this.#byBoundName.get(entry.boundName) === entry) this.#byBoundName.delete(entry.boundName);
    removeFrom(this.#byToolName, entry.toolName, entry);
    if (!this.#byToolName.has(entry.toolName)) this.#unusualNames.delete(entry.toolName);
    removeFrom(this.#byLeaf, leafOf(entry.toolName), entry);
    this.index.remove(entry.boundName);
  }
}

function leafOf(toolName: string): string {
  return toolName.split(/[./:]/).at(-1)!;
}

function addTo(map: Map<string, Set<ToolEntry>>, key: string, entry: ToolEntry): void {
  const entries = map.get(key);
  if (entries === undefined) map.set(key, new Set([entry]));
  else entries.add(entry);
}

function removeFrom(map: Map<string, Set<ToolEntry>>, key: string, entry: ToolEntry): void {
  const entries = map.get(key);
  entries?.delete(entry);
  if (entries?.size === 0) map.delete(key);
}
