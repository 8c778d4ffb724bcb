import { isRecord } from "../text/isRecord.js";
import type { Store } from "../connect/stores.js";
import type { ServerSettings } from "../config/settings.js";
import { messageOf } from "../errors.js";
import type { HubEvents } from "../events.js";
import type { ServerSnapshot } from "./catalog.js";
import { digest } from "../text/hash.js";
import { readTool } from "./toolEntry.js";
import { rejectAfter } from "../text/abort.js";

const STORE_WAIT_MS = 2_000;
const VERSION = 1;

/** Keeps last known catalogs of servers from one process to the next. */
export class Snapshots {
  readonly #store: Store;
  readonly #servers: ReadonlyMap<string, ServerSettings>;
  readonly #events: HubEvents;
  readonly #stored = new Map<string, string>();
  readonly #writing = new Set<Promise<void>>();
  #loading: Promise<void> | undefined;

  constructor(store: Store, servers: ReadonlyMap<string, ServerSettings>, events: HubEvents) {
    this.#store = store;
    this.#servers = servers;
    this.#events = events;
  }

  /** Passes on each stored snapshot, once. Never rejects. */
  load(take: (serverName: string, snapshot: ServerSnapshot) => Promise<void>): Promise<void> {
    this.#loading ??= this.#load(take).catch((error: unknown) => this.#warn(error));
    return this.#loading;
  }

  /** Stores a server's snapshot if it changed. Returns at once. */
  save(
    serverName: string,
    { tools, instructions, serverInfo, capabilities }: ServerSnapshot,
  ): void {
    const content = { v: VERSION, tools, instructions, serverInfo, capabilities };
    const mark = digest(JSON.stringify(content));
    if (this.#stored.get(serverName) === mark) return;
    const before = this.#stored.get(serverName);
    this.#stored.set(serverName, mark);
    const update = this.#store.update(this.#key(serverName), () => content);
    const writing: Promise<void> = rejectAfter(update, STORE_WAIT_MS, "snapshotStore")
      .then(() => undefined)
      .catch((error: unknown) => {
        // The next tool list tries again.
        if (before === undefined) this.#stored.delete(serverName);
        else this.#stored.set(serverName, before);
        this.#warn(error);
      })
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  /** Waits for pending writes. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #warn(error: unknown): void {
    this.#events.warn("SNAPSHOTS_FAILED", `The snapshot store failed: ${messageOf(error)}`);
  }

  async #load(
    take: (serverName: string, snapshot: ServerSnapshot) => Promise<void>,
  ): Promise<void> {
    const names = [...this.#servers.keys()];
    const found = await rejectAfter(
      this.#store.get(names.map((serverName) => this.#key(serverName))),
      STORE_WAIT_MS,
      "snapshotStore",
    );
    for (const [index, serverName] of names.entries()) {
      const snapshot = readSnapshot(found[index]);
      if (snapshot !== undefined && this.#servers.get(serverName)!.enabled)
        await take(serverName, snapshot);
    }
  }

  /** A server reached another way is another server. The digest hides secrets. */
  #key(serverName: string): string {
    const { transport } = this.#servers.get(serverName)!;
    const place =
      transport === undefined
        ? "wrapped"
        : "url" in transport
          ? transport.url
          : "command" in transport
            ? [transport.command, transport.args, transport.cwd]
            : transport.kind;
    return `mcp-snapshot:${serverName}:${digest(JSON.stringify(place))}`;
  }
}

/** Reads a stored snapshot; `undefined` for one that is malformed or of another version. */
function readSnapshot(value: unknown): ServerSnapshot | undefined {
  if (!isRecord(value) || value["v"] !== VERSION || !Array.isArray(value["tools"]))
    return undefined;
  const tools = (value["tools"] as unknown[])
    .map(readTool)
    .flatMap((reading) => (reading.kind === "dropped" ? [] : [reading.tool]));
  const { instructions, serverInfo, capabilities } = value;
  return {
    tools,
    instructions: typeof instructions === "string" ? instructions : undefined,
    serverInfo: isRecord(serverInfo) ? serverInfo : undefined,
    capabilities: isRecord(capabilities) ? capabilities : undefined,
  };
}
