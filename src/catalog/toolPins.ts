import type { ToolPinSettings } from "../config/guardSettings.js";
import type { SnapshotStore } from "../config/hubSchema.js";
import { isRecord } from "../config/isRecord.js";
import { digest } from "./hash.js";
import { changedFields, describeChange, keptTexts, toolTexts, type ToolField, type ToolTexts } from "./toolText.js";
import type { RawTool } from "./toolEntry.js";
import { withinMs } from "./withinMs.js";

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
interface Pin {
  readonly digest: string;
  readonly texts: ToolTexts;
}

/** What {@link ToolPins} is made of. */
export interface ToolPinsParts {
  readonly settings: ToolPinSettings;
  readonly store: SnapshotStore | undefined;
  readonly onChange: (change: ToolChange) => void;
  readonly onFailed: (error: unknown) => void;
}

const STORE_WAIT_MS = 2_000;

/**
 * How tools were when they were seen first, and which of them are others now.
 *
 * A server that is trusted once can put other words under a known name later. What a model and a policy go by (title,
 * description, arguments, annotations) is compared with what was seen first, in this process or, with a store, in any.
 */
export class ToolPins {
  readonly #parts: ToolPinsParts;
  readonly #servers = new Map<string, Map<string, Pin>>();
  readonly #loaded = new Map<string, Promise<void>>();
  /** Tools that nobody has accepted as they are now. */
  readonly #changed = new Map<string, { readonly change: ToolChange; readonly pin: Pin }>();

  readonly #writing = new Set<Promise<void>>();

  constructor(parts: ToolPinsParts) {
    this.#parts = parts;
  }

  /** Whether anything is kept: without it only one listing is compared with the next. */
  get #isPinning(): boolean {
    const { settings, store } = this.#parts;
    return store !== undefined || settings.onChange !== "note";
  }

  /** Tells of tools that changed from one listing to the next, where nothing is kept. */
  compare(serverName: string, before: readonly RawTool[], after: readonly RawTool[], changed: readonly string[]): void {
    if (this.#isPinning || changed.length === 0) return;
    for (const toolName of changed) {
      const [old, now] = [before, after].map((tools) => tools.find(({ name }) => name === toolName));
      if (old !== undefined && now !== undefined)
        this.#parts.onChange(changeOf(serverName, toolName, toolTexts(old), toolTexts(now)));
    }
  }

  /** Reads what is kept of a server, once; before its tools are listed. Never rejects. */
  load(serverName: string): Promise<void> {
    let loading = this.#loaded.get(serverName);
    if (loading === undefined) this.#loaded.set(serverName, (loading = this.#load(serverName)));
    return loading;
  }

  /**
   * Compares the tools that a server lists with what was seen first.
   *
   * @returns Those that may be offered.
   */
  check(serverName: string, tools: readonly RawTool[]): readonly RawTool[] {
    if (!this.#isPinning) return tools;
    const pins = this.#servers.get(serverName) ?? new Map<string, Pin>();
    this.#servers.set(serverName, pins);
    const { onChange } = this.#parts.settings;
    let isNew = false;
    const offered = tools.filter((tool) => {
      const texts = toolTexts(tool);
      const pin: Pin = { digest: digest(JSON.stringify(texts), 32), texts: keptTexts(texts) };
      const known = pins.get(tool.name);
      const key = keyOf(serverName, tool.name);
      if (known?.digest === pin.digest) {
        this.#changed.delete(key);
        return true;
      }
      if (known !== undefined) this.#tell(serverName, tool.name, known, pin);
      if (known === undefined || onChange === "note") {
        pins.set(tool.name, pin);
        isNew = true;
        return true;
      }
      return onChange !== "deny";
    });
    if (isNew) this.#save(serverName);
    return offered;
  }

  /** True for a tool that nobody has accepted as it is now. */
  isChanged(serverName: string, toolName: string): boolean {
    return this.#changed.size > 0 && this.#changed.has(keyOf(serverName, toolName));
  }

  /** The tools that nobody has accepted as they are now. */
  changes(): ToolChange[] {
    return [...this.#changed.values()].map(({ change }) => change);
  }

  /** Takes tools as they are now. @param toolNames - Default: all of the server. */
  accept(serverName: string, toolNames?: readonly string[]): void {
    const accepted = [...this.#changed].filter(
      ([, { change }]) => change.serverName === serverName && (toolNames === undefined || toolNames.includes(change.toolName)),
    );
    for (const [key, { change, pin }] of accepted) {
      this.#servers.get(serverName)!.set(change.toolName, pin);
      this.#changed.delete(key);
    }
    if (accepted.length > 0) this.#save(serverName);
  }

  /** Waits for what is being kept. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #tell(serverName: string, toolName: string, before: Pin, now: Pin): void {
    const key = keyOf(serverName, toolName);
    if (this.#changed.get(key)?.pin.digest === now.digest) return;
    const change = changeOf(serverName, toolName, before.texts, now.texts);
    if (this.#parts.settings.onChange !== "note") this.#changed.set(key, { change, pin: now });
    this.#parts.onChange(change);
  }

  async #load(serverName: string): Promise<void> {
    const { store, onFailed } = this.#parts;
    if (store === undefined) return;
    try {
      const [stored] = await withinMs(store.mget([storeKey(serverName)]), STORE_WAIT_MS, "toolPins.store");
      this.#servers.set(serverName, readPins(stored));
    } catch (error) {
      onFailed(error);
    }
  }

  #save(serverName: string): void {
    const { store, onFailed } = this.#parts;
    if (store === undefined) return;
    const entry: [string, unknown] = [storeKey(serverName), { v: 1, tools: [...this.#servers.get(serverName)!] }];
    const writing = Promise.resolve()
      .then(() => store.mset([entry]))
      .catch(onFailed)
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }
}

function changeOf(serverName: string, toolName: string, before: ToolTexts, now: ToolTexts): ToolChange {
  return { serverName, toolName, fields: changedFields(before, now), diff: describeChange(before, now) };
}

function keyOf(serverName: string, toolName: string): string {
  return JSON.stringify([serverName, toolName]);
}

function storeKey(serverName: string): string {
  return `mcp-tool-pins:${serverName}`;
}

/** Reads what was stored, which may be of another version or by another hand. */
function readPins(stored: unknown): Map<string, Pin> {
  const tools: unknown = isRecord(stored) && stored["v"] === 1 ? stored["tools"] : undefined;
  const entries = (Array.isArray(tools) ? (tools as unknown[]) : []).flatMap((entry): [string, Pin][] => {
    const [toolName, pin] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof toolName !== "string" || !isRecord(pin) || typeof pin["digest"] !== "string") return [];
    const texts = isRecord(pin["texts"]) ? pin["texts"] : {};
    const text = (field: ToolField): string => (typeof texts[field] === "string" ? texts[field] : "");
    const { digest: kept } = pin as { readonly digest: string };
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
