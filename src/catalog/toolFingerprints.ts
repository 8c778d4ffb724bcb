import stringify from "safe-stable-stringify";

import type { SecuritySettings } from "../config/securityOptions.js";
import type { Store } from "../connect/stores.js";
import { messageOf } from "../errors.js";
import type { HubEvents } from "../events.js";
import { rejectAfter } from "../text/abort.js";
import { cut } from "../text/clean.js";
import { digest } from "../text/hash.js";
import { isRecord } from "../text/isRecord.js";
import type { Steps } from "../text/slices.js";
import type { RawTool } from "./toolEntry.js";

/** A part of a tool that a model or a policy uses. */
export type ToolField = "title" | "description" | "arguments" | "annotations";

/** Parts of a tool as text, each cut to 8,000 characters. Untrusted. */
export type ToolTexts = Readonly<Record<ToolField, string>>;

/** A tool that changed since it was first seen. */
export interface ToolChange {
  readonly serverName: string;
  readonly toolName: string;
  readonly fields: readonly ToolField[];
  /** As first seen; empty texts when that could not be read. */
  readonly before: ToolTexts;
  readonly after: ToolTexts;
}

/** Fingerprint of a tool, kept as JSON. */
interface Fingerprint {
  /** Of the whole texts, before they are cut. */
  readonly digest: string;
  readonly texts: ToolTexts;
}

/**
 * A change that nobody accepted; `before` is `undefined` when the first fingerprint could not be
 * read.
 */
interface Pending {
  readonly serverName: string;
  readonly toolName: string;
  readonly before: Fingerprint | undefined;
  readonly now: Fingerprint;
}

/** A fingerprint to be kept, in place of the one with the digest `before`. */
interface Write {
  readonly toolName: string;
  readonly before: string | undefined;
  readonly now: Fingerprint;
}

const FIELDS: readonly ToolField[] = ["title", "description", "arguments", "annotations"];
const NOTHING: ToolTexts = { title: "", description: "", arguments: "", annotations: "" };
const MAX_PART_CHARS = 8_000;
const STORE_WAIT_MS = 2_000;
/** At most this many fingerprints of unlisted tools are kept; these tools may come back changed. */
const MAX_FORMER = 1_000;

/**
 * Compares tools with what they were when first seen, in this process or, with a store, in any; a
 * trusted server may change them. While the store cannot be read, all tools count as changed for
 * `"ask"` and `"deny"`, and nothing in it is overwritten.
 */
export class ToolFingerprints {
  readonly #onChange: "note" | "ask" | "deny";
  readonly #store: Store | undefined;
  readonly #events: HubEvents;
  readonly #servers = new Map<string, Map<string, Fingerprint>>();
  /** Servers whose fingerprints are loaded, or need no loading. */
  readonly #read = new Set<string>();
  readonly #loading = new Map<string, Promise<void>>();
  readonly #pending = new Map<string, Pending>();
  readonly #writing = new Set<Promise<void>>();
  #version = 0;

  constructor(
    { onChange }: SecuritySettings["toolFingerprints"],
    store: Store | undefined,
    events: HubEvents,
  ) {
    this.#onChange = onChange;
    this.#store = store;
    this.#events = events;
  }

  /** Grows when decisions may change. */
  get version(): number {
    return this.#version;
  }

  /** True when fingerprints are kept; otherwise each tool list is compared with the last. */
  get isKeeping(): boolean {
    return this.#store !== undefined || this.#onChange !== "note";
  }

  /**
   * Emits `toolChanged` for tools that changed between two tool lists, where no fingerprints are
   * kept.
   */
  compare(
    serverName: string,
    before: readonly RawTool[],
    after: readonly RawTool[],
    changed: readonly string[],
  ): void {
    if (this.isKeeping || changed.length === 0 || !this.#events.has("toolChanged")) return;
    const old = new Map(before.map((tool) => [tool.name, tool]));
    const now = new Map(after.toReversed().map((tool) => [tool.name, tool]));
    for (const toolName of changed) {
      const [first, second] = [fingerprintOf(old.get(toolName)), fingerprintOf(now.get(toolName))];
      if (first === undefined || second === undefined || first.digest === second.digest) continue;
      this.#events.emit(
        "toolChanged",
        changeOf({ serverName, toolName, before: first, now: second }),
      );
    }
  }

  /**
   * Loads a server's fingerprints before its tools are listed; tries again after a failure. Never
   * rejects.
   */
  load(serverName: string): Promise<void> {
    if (this.#read.has(serverName)) return Promise.resolve();
    const loading =
      this.#loading.get(serverName) ??
      this.#load(serverName).finally(() => this.#loading.delete(serverName));
    this.#loading.set(serverName, loading);
    return loading;
  }

  /**
   * Compares a tool list with the fingerprints, in steps. Of tools with one name the first counts.
   * @returns The tools to offer.
   */
  *check(serverName: string, tools: readonly RawTool[]): Steps<readonly RawTool[]> {
    if (!this.isKeeping) return tools;
    const known = this.#servers.get(serverName) ?? new Map<string, Fingerprint>();
    this.#servers.set(serverName, known);
    const offered = new Map<string, boolean>();
    const writes: Write[] = [];
    for (const tool of tools) {
      yield;
      // A second tool of a name never replaces a withheld one.
      if (offered.has(tool.name)) continue;
      const now = fingerprintOf(tool);
      const verdict =
        now === undefined
          ? "withheld"
          : this.#compare(serverName, tool.name, known.get(tool.name), now);
      offered.set(tool.name, verdict !== "withheld");
      if (verdict !== "new") continue;
      writes.push({ toolName: tool.name, before: known.get(tool.name)?.digest, now: now! });
      known.set(tool.name, now!);
    }
    prune(known, offered);
    if (writes.length > 0) this.#save(serverName, writes);
    return tools.filter(({ name }) => offered.get(name) === true);
  }

  isChanged(serverName: string, toolName: string): boolean {
    return this.#pending.size > 0 && this.#pending.has(keyOf(serverName, toolName));
  }

  /** Changed tools that nobody accepted. */
  changes(): ToolChange[] {
    return [...this.#pending.values()].map(changeOf);
  }

  /** Accepts changed tools as they are now. @param toolNames - Default: all of the server. */
  accept(serverName: string, toolNames?: readonly string[]): void {
    const accepted = [...this.#pending].filter(
      ([, pending]) =>
        pending.serverName === serverName &&
        (toolNames === undefined || toolNames.includes(pending.toolName)),
    );
    if (accepted.length === 0) return;
    const writes: Write[] = [];
    for (const [key, { toolName, before, now }] of accepted) {
      this.#servers.get(serverName)!.set(toolName, now);
      this.#pending.delete(key);
      writes.push({ toolName, before: before?.digest, now });
    }
    this.#version += 1;
    this.#save(serverName, writes);
  }

  /** Waits for pending writes. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** Compares a tool with its fingerprint; `"new"`: its fingerprint has to be kept. */
  #compare(
    serverName: string,
    toolName: string,
    before: Fingerprint | undefined,
    now: Fingerprint,
  ): "same" | "new" | "changed" | "withheld" {
    const key = keyOf(serverName, toolName);
    if (before?.digest === now.digest) {
      if (this.#pending.delete(key)) this.#version += 1;
      return "same";
    }
    if (before === undefined && this.#read.has(serverName)) return "new";
    const pending: Pending = { serverName, toolName, before, now };
    const isTold = this.#pending.get(key)?.now.digest === now.digest;
    if (!isTold && before !== undefined && this.#events.has("toolChanged"))
      this.#events.emit("toolChanged", changeOf(pending));
    if (this.#onChange === "note") return "new";
    this.#pending.set(key, pending);
    this.#version += 1;
    return this.#onChange === "deny" ? "withheld" : "changed";
  }

  async #load(serverName: string): Promise<void> {
    try {
      const stored = this.#store?.get([storeKey(serverName)]) ?? Promise.resolve([undefined]);
      const [kept] = await rejectAfter(stored, STORE_WAIT_MS, "toolFingerprints.store");
      if (this.#store !== undefined) this.#servers.set(serverName, readFingerprints(kept));
      this.#read.add(serverName);
    } catch (error) {
      this.#warn(error);
    }
  }

  /**
   * Keeps new fingerprints. A tool that another process has written since stays as that process
   * wrote it.
   */
  #save(serverName: string, writes: readonly Write[]): void {
    const store = this.#store;
    if (store === undefined || !this.#read.has(serverName)) return;
    const merged = (stored: unknown): unknown => {
      const known = readFingerprints(stored);
      for (const { toolName, before, now } of writes) {
        if (known.get(toolName)?.digest === before) known.set(toolName, now);
      }
      prune(known, this.#servers.get(serverName)!);
      return { v: 1, tools: [...known] };
    };
    const writing = store
      .update(storeKey(serverName), merged)
      .catch((error: unknown) => this.#warn(error))
      .then(() => undefined)
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  #warn(error: unknown): void {
    this.#events.warn(
      "TOOL_FINGERPRINTS_FAILED",
      `The store of tool fingerprints failed: ${messageOf(error)}`,
    );
  }
}

/**
 * The fingerprint of a tool; `undefined` for one nested too deeply, which cannot be told from
 * another.
 */
function fingerprintOf(tool: RawTool | undefined): Fingerprint | undefined {
  if (tool === undefined) return undefined;
  const { title = "", description, inputSchema, annotations } = tool;
  try {
    const texts = {
      title,
      description,
      arguments: json(inputSchema),
      annotations: json(annotations),
    };
    return {
      digest: digest(JSON.stringify(texts), 32),
      texts: mapTexts((field) => detached(texts[field])),
    };
  } catch {
    return undefined;
  }
}

/** JSON with sorted keys. @throws for a value nested too deeply. */
function json(value: unknown): string {
  return value === undefined ? "" : (stringify(value) ?? "");
}

/** The first 8,000 characters, copied: a slice would keep the whole text in memory. */
function detached(text: string): string {
  return text.length <= MAX_PART_CHARS
    ? text
    : Buffer.from(cut(text, MAX_PART_CHARS), "utf16le").toString("utf16le");
}

function mapTexts(textOf: (field: ToolField) => string): ToolTexts {
  return Object.fromEntries(FIELDS.map((field) => [field, textOf(field)])) as ToolTexts;
}

/**
 * Drops unlisted tools beyond 1,000, the newest first, so that a flood of names drives out only
 * itself.
 */
function prune(known: Map<string, Fingerprint>, listed: ReadonlyMap<string, unknown>): void {
  let tooMany = known.size - listed.size - MAX_FORMER;
  for (const toolName of [...known.keys()].reverse()) {
    if (tooMany <= 0) return;
    if (listed.has(toolName)) continue;
    known.delete(toolName);
    tooMany -= 1;
  }
}

function changeOf({ serverName, toolName, before, now }: Pending): ToolChange {
  const old = before?.texts ?? NOTHING;
  const fields = FIELDS.filter((field) => old[field] !== now.texts[field]);
  return { serverName, toolName, fields, before: old, after: now.texts };
}

function keyOf(serverName: string, toolName: string): string {
  return JSON.stringify([serverName, toolName]);
}

function storeKey(serverName: string): string {
  return `mcp-tool-fingerprints:${serverName}`;
}

/**
 * Reads stored fingerprints.
 * @throws for those of another version: nothing is written over them.
 */
function readFingerprints(stored: unknown): Map<string, Fingerprint> {
  const known = new Map<string, Fingerprint>();
  if (stored === undefined || stored === null) return known;
  if (!isRecord(stored) || stored["v"] !== 1)
    throw new Error("it holds fingerprints of another version");
  for (const entry of Array.isArray(stored["tools"]) ? (stored["tools"] as unknown[]) : []) {
    const [toolName, kept] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof toolName !== "string" || !isRecord(kept) || typeof kept["digest"] !== "string")
      continue;
    const texts = isRecord(kept["texts"]) ? kept["texts"] : {};
    known.set(toolName, {
      digest: kept["digest"],
      texts: mapTexts((field) => String(texts[field] ?? "")),
    });
  }
  return known;
}
