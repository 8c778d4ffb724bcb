import type { ToolFingerprintSettings } from "../config/securityOptions.js";
import type { KeptStore } from "../config/store.js";
import { isRecord } from "../text/isRecord.js";
import { digest } from "../text/hash.js";
import { changedFields, Differ, keptTexts, toolTexts, type ToolField, type ToolTexts } from "./toolText.js";
import type { RawTool } from "./toolEntry.js";
import { rejectAfter } from "../text/rejectAfter.js";

/** A tool that is not what it was when it was seen first. Texts are the server's: untrusted. */
export interface ToolChange {
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  /** What changed. */
  readonly fields: readonly ToolField[];
  /** A unified diff for people, at most 4,000 characters. */
  readonly diff: string;
}

/** What is kept of a tool. JSON. */
interface Fingerprint {
  readonly digest: string;
  readonly texts: ToolTexts;
}

/** A change that nobody has accepted. */
interface Pending {
  readonly serverName: string;
  readonly toolName: string;
  /** `undefined`: what was seen first could not be read. */
  readonly before: Fingerprint | undefined;
  readonly now: Fingerprint;
}

/** What {@link ToolFingerprints} is made of. */
export interface ToolFingerprintsParts {
  readonly settings: ToolFingerprintSettings;
  readonly store: KeptStore | undefined;
  /** Whether anybody is told of changes. */
  readonly isHeard: () => boolean;
  readonly onChange: (change: ToolChange) => void;
  readonly onFailed: (error: unknown) => void;
}

const STORE_WAIT_MS = 2_000;
/* Pins of tools that a server does not list any more: they may come back as something else. */
const MAX_FORMER = 1_000;
const NOTHING: ToolTexts = { title: "", description: "", arguments: "", annotations: "" };

/**
 * How tools were when they were seen first, and which of them are others now.
 *
 * A server that is trusted once can put other words under a known name later. What a model and a policy go by (title,
 * description, arguments, annotations) is compared with what was seen first, in this process or, with a store, in any. While
 * the store cannot be read, nobody knows what was seen first: all tools count as changed where that is asked or denied, and
 * nothing is written over what is kept.
 */
export class ToolFingerprints {
  readonly #parts: ToolFingerprintsParts;
  readonly #servers = new Map<string, Map<string, Fingerprint>>();
  /** Servers whose fingerprints were read, or need not be. */
  readonly #read = new Set<string>();
  readonly #loading = new Map<string, Promise<void>>();
  readonly #pending = new Map<string, Pending>();
  readonly #writing = new Set<Promise<void>>();
  #version = 0;

  constructor(parts: ToolFingerprintsParts) {
    this.#parts = parts;
  }

  /** Counts what may change decisions. */
  get version(): number {
    return this.#version;
  }

  /** Whether anything is kept: without it only one listing is compared with the next. */
  get isKeeping(): boolean {
    const { settings, store } = this.#parts;
    return store !== undefined || settings.onChange !== "note";
  }

  /** Tells of tools that changed from one listing to the next, where nothing is kept. */
  compare(serverName: string, before: readonly RawTool[], after: readonly RawTool[], changed: readonly string[]): void {
    if (this.isKeeping || changed.length === 0 || !this.#parts.isHeard()) return;
    const differ = new Differ();
    const old = new Map(before.map((tool) => [tool.name, tool]));
    const now = new Map(after.toReversed().map((tool) => [tool.name, tool]));
    for (const toolName of changed) {
      const [first, second] = [old.get(toolName), now.get(toolName)];
      if (first === undefined || second === undefined) continue;
      this.#parts.onChange(changeOf(serverName, toolName, toolTexts(first), toolTexts(second), differ));
    }
  }

  /** Reads what is kept of a server, before its tools are listed; again when it could not be read. Never rejects. */
  load(serverName: string): Promise<void> {
    if (this.#read.has(serverName)) return Promise.resolve();
    let loading = this.#loading.get(serverName);
    if (loading === undefined) {
      loading = this.#load(serverName).finally(() => this.#loading.delete(serverName));
      this.#loading.set(serverName, loading);
    }
    return loading;
  }

  /**
   * Compares the tools that a server lists with what was seen first. Of tools of one name the first counts.
   *
   * @returns Those that may be offered.
   */
  check(serverName: string, tools: readonly RawTool[]): readonly RawTool[] {
    if (!this.isKeeping) return tools;
    const fingerprints = this.#servers.get(serverName) ?? new Map<string, Fingerprint>();
    this.#servers.set(serverName, fingerprints);
    const differ = new Differ();
    const offered = new Map<string, boolean>();
    let isNew = false;
    const kept = tools.filter((tool) => {
      const decided = offered.get(tool.name);
      // One of the same name: it is told of by others, and never takes the place of one that is withheld.
      if (decided !== undefined) return decided;
      const fingerprint = fingerprintOf(tool);
      const verdict =
        fingerprint === undefined
          ? "withheld"
          : this.#compare(serverName, tool.name, fingerprints.get(tool.name), fingerprint, differ);
      if (verdict === "new") {
        fingerprints.set(tool.name, fingerprint!);
        isNew = true;
      }
      offered.set(tool.name, verdict !== "withheld");
      return verdict !== "withheld";
    });
    if (isNew) {
      prune(fingerprints, offered);
      this.#save(serverName);
    }
    return kept;
  }

  /** True for a tool that nobody has accepted as it is now. */
  isChanged(serverName: string, toolName: string): boolean {
    return this.#pending.size > 0 && this.#pending.has(keyOf(serverName, toolName));
  }

  /** The tools that nobody has accepted as they are now. */
  changes(): ToolChange[] {
    const differ = new Differ();
    return [...this.#pending.values()].map((pending) => describe(pending, differ));
  }

  /** Takes tools as they are now. @param toolNames - Default: all of the server. */
  accept(serverName: string, toolNames?: readonly string[]): void {
    const accepted = [...this.#pending].filter(
      ([, pending]) => pending.serverName === serverName && (toolNames === undefined || toolNames.includes(pending.toolName)),
    );
    for (const [key, { toolName, now }] of accepted) {
      this.#servers.get(serverName)!.set(toolName, now);
      this.#pending.delete(key);
    }
    if (accepted.length === 0) return;
    this.#version += 1;
    this.#save(serverName);
  }

  /** Waits for what is being kept. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** `"new"`: to be kept as it is now. */
  #compare(
    serverName: string,
    toolName: string,
    before: Fingerprint | undefined,
    now: Fingerprint,
    differ: Differ,
  ): "same" | "new" | "changed" | "withheld" {
    const key = keyOf(serverName, toolName);
    if (before?.digest === now.digest) {
      if (this.#pending.delete(key)) this.#version += 1;
      return "same";
    }
    const { settings, isHeard, onChange } = this.#parts;
    const isKnown = before !== undefined || !this.#read.has(serverName);
    if (!isKnown) return "new";
    const isTold = this.#pending.get(key)?.now.digest === now.digest;
    const pending: Pending = { serverName, toolName, before, now };
    if (settings.onChange !== "note") {
      this.#pending.set(key, pending);
      this.#version += 1;
    }
    if (!isTold && before !== undefined && isHeard()) onChange(describe(pending, differ));
    if (settings.onChange === "note") return "new";
    return settings.onChange === "deny" ? "withheld" : "changed";
  }

  async #load(serverName: string): Promise<void> {
    const { store, onFailed } = this.#parts;
    if (store === undefined) {
      this.#read.add(serverName);
      return;
    }
    try {
      const [stored] = await rejectAfter(store.mget([storeKey(serverName)]), STORE_WAIT_MS, "toolFingerprints.store");
      this.#servers.set(serverName, readFingerprints(stored));
      this.#read.add(serverName);
    } catch (error) {
      onFailed(error);
    }
  }

  #save(serverName: string): void {
    const { store, onFailed } = this.#parts;
    if (store === undefined || !this.#read.has(serverName)) return;
    const entry: [string, unknown] = [storeKey(serverName), { v: 1, tools: [...this.#servers.get(serverName)!] }];
    const writing = Promise.resolve()
      .then(() => store.mset([entry]))
      .catch(onFailed)
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }
}

/** A tool as it is kept; `undefined` for one that is too deep to be written, and cannot be told from another. */
function fingerprintOf(tool: RawTool): Fingerprint | undefined {
  try {
    const texts = toolTexts(tool);
    return { digest: digest(JSON.stringify(texts), 32), texts: keptTexts(texts) };
  } catch {
    return undefined;
  }
}

/** Forgets tools that are not listed any more when they are many, the newest first: a flood of names drives out itself. */
function prune(fingerprints: Map<string, Fingerprint>, listed: ReadonlyMap<string, unknown>): void {
  let tooMany = fingerprints.size - listed.size - MAX_FORMER;
  for (const toolName of [...fingerprints.keys()].reverse()) {
    if (tooMany <= 0) return;
    if (listed.has(toolName)) continue;
    fingerprints.delete(toolName);
    tooMany -= 1;
  }
}

function describe({ serverName, toolName, before, now }: Pending, differ: Differ): ToolChange {
  if (before !== undefined) return changeOf(serverName, toolName, before.texts, now.texts, differ);
  return { ...changeOf(serverName, toolName, NOTHING, now.texts, differ), diff: "(What was seen first could not be read.)" };
}

function changeOf(serverName: string, toolName: string, before: ToolTexts, now: ToolTexts, differ: Differ): ToolChange {
  return { serverName, toolName, fields: changedFields(before, now), diff: differ.describe(before, now) };
}

function keyOf(serverName: string, toolName: string): string {
  return JSON.stringify([serverName, toolName]);
}

function storeKey(serverName: string): string {
  return `mcp-tool-fingerprints:${serverName}`;
}

/** Reads what was stored, which may be of another version or by another hand. */
function readFingerprints(stored: unknown): Map<string, Fingerprint> {
  const tools: unknown = isRecord(stored) && stored["v"] === 1 ? stored["tools"] : undefined;
  const entries = (Array.isArray(tools) ? (tools as unknown[]) : []).flatMap((entry): [string, Fingerprint][] => {
    const [toolName, fingerprint] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof toolName !== "string" || !isRecord(fingerprint) || typeof fingerprint["digest"] !== "string") return [];
    const texts = isRecord(fingerprint["texts"]) ? fingerprint["texts"] : {};
    const text = (field: ToolField): string => (typeof texts[field] === "string" ? texts[field] : "");
    const { digest: kept } = fingerprint as { readonly digest: string };
    return [
      [
        toolName,
        {
          digest: kept,
          texts: {
            title: text("title"),
            description: text("description"),
            arguments: text("arguments"),
            annotations: text("annotations"),
          },
        },
      ],
    ];
  });
  return new Map(entries);
}
