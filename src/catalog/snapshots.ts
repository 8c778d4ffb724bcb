import { isRecord } from "../text/isRecord.js";
import type { KeptStore } from "../config/store.js";
import type { ServerSettings } from "../config/settings.js";
import { messageOf } from "../errors.js";
import type { HubEvents } from "../events.js";
import type { ServerSnapshot } from "./catalog.js";
import { digest } from "../text/hash.js";
import { readTool } from "./toolEntry.js";
import { rejectAfter } from "../text/abort.js";

const STORE_WAIT_MS = 2_000;
const VERSION = 1;

/** The last known catalogs of servers, kept from one process to the next. */
export class Snapshots {
  readonly #store: KeptStore;
  readonly #servers: ReadonlyMap<string, ServerSettings>;
  readonly #events: HubEvents;
  readonly #stored = new Map<string, string>();
  readonly #writing = new Set<Promise<void>>();
  #loading: Promise<void> | undefined;

  constructor(store: KeptStore, servers: ReadonlyMap<string, ServerSettings>, events: HubEvents) {
    this.#store = store;
    this.#servers = servers;
    this.#events = events;
  }

  /** Hands on what is known of each server, once. Never rejects. */
  load(take: (serverName: string, snapshot: ServerSnapshot) => void): Promise<void> {
    this.#loading ??= this.#load(take).catch((error: unknown) => this.#warn(error));
    return this.#loading;
  }

  /** Keeps what a server said, when it is not what is kept already. Returns at once. */
  save(serverName: string, { tools, instructions, serverInfo, capabilities }: ServerSnapshot): void {
    const content = { v: VERSION, tools, instructions, serverInfo, capabilities };
    const mark = digest(JSON.stringify(content));
    if (this.#stored.get(serverName) === mark) return;
    const before = this.#stored.get(serverName);
    this.#stored.set(serverName, mark);
    const entry: [string, unknown] = [this.#key(serverName), content];
    const writing = rejectAfter(
      Promise.resolve().then(() => this.#store.mset([entry])),
      STORE_WAIT_MS,
      "snapshotStore",
    )
      .catch((error: unknown) => {
        // It is tried again with the next listing.
        if (before === undefined) this.#stored.delete(serverName);
        else this.#stored.set(serverName, before);
        this.#warn(error);
      })
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  /** Waits for what is being kept. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** The store failed: servers are then known when they are opened. */
  #warn(error: unknown): void {
    this.#events.warn("SNAPSHOTS_FAILED", `The snapshot store failed: ${messageOf(error)}`);
  }

  async #load(take: (serverName: string, snapshot: ServerSnapshot) => void): Promise<void> {
    const names = [...this.#servers.keys()];
    const found = await rejectAfter(
      this.#store.mget(names.map((serverName) => this.#key(serverName))),
      STORE_WAIT_MS,
      "snapshotStore",
    );
    names.forEach((serverName, index) => {
      const snapshot = readSnapshot(found[index]);
      if (snapshot !== undefined && this.#servers.get(serverName)!.enabled) take(serverName, snapshot);
    });
  }

  /** A server that is reached otherwise is another one. What may be secret goes into the digest alone. */
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

/** Reads what was stored, which may be of another version or by another hand. */
function readSnapshot(value: unknown): ServerSnapshot | undefined {
  if (!isRecord(value) || value["v"] !== VERSION || !Array.isArray(value["tools"])) return undefined;
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
