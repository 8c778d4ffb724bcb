import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";

import { LRUCache } from "lru-cache";
import pLimit, { type LimitFunction } from "p-limit";

import type { KeptStore } from "../config/store.js";
import { messageOf } from "../errors.js";
import { isRecord } from "../text/isRecord.js";

/** A store of an option, whose values are changed one after the other. */
export interface Store {
  /** The values of keys; `undefined` for those that are not there. */
  readonly get: (keys: readonly string[]) => Promise<unknown[]>;
  /**
   * Changes a value: `change` gets the present one and returns the next. Returns the next value;
   * nothing is written when it is the present one. In a file no other process writes in between; a
   * LangChain store has no such promise, so there only hubs of this process take turns.
   */
  readonly update: <Value>(key: string, change: (present: unknown) => Value) => Promise<Value>;
}

/** Bytes of a file: a larger one was not written here. */
const MAX_FILE_BYTES = 100 * 1024 * 1024;
/** How long another process may hold the lock of a file before it counts as dead. */
const STALE_MS = 10_000;
const LOCK_RETRIES = { retries: 60, minTimeout: 5, maxTimeout: 100, factor: 1.5, randomize: true };

/** Hubs of one process write to a store one after the other. */
const turns = new LRUCache<KeptStore | string, LimitFunction>({ max: 100 });

function turnsOf(store: KeptStore | string): LimitFunction {
  const known = turns.get(store) ?? pLimit(1);
  turns.set(store, known);
  return known;
}

/** The store of an option: a LangChain store, or a file. */
export function storeOf(store: KeptStore | string): Store {
  return typeof store === "string" ? fileStore(resolve(store)) : langChainStore(store);
}

function langChainStore(store: KeptStore): Store {
  return {
    get: (keys) => store.mget([...keys]),
    update: (key, change) =>
      turnsOf(store)(async () => {
        const [present] = await store.mget([key]);
        const next = change(present);
        if (next !== present) await store.mset([[key, next]]);
        return next;
      }),
  };
}

/**
 * A store in one JSON file, locked while it is changed, put in place at once, readable by its owner
 * alone.
 *
 * A damaged file is never written over: it is moved to `<path>.damaged` when something has to be
 * kept.
 */
function fileStore(path: string): Store {
  return {
    get: async (keys) => {
      const content = await readStore(path);
      return keys.map((key) => (Object.hasOwn(content, key) ? content[key] : undefined));
    },
    update: (key, change) =>
      turnsOf(path)(async () => {
        await mkdir(dirname(path), { recursive: true });
        const { lock } = await import("proper-lockfile");
        const unlock = await lock(path, {
          realpath: false,
          stale: STALE_MS,
          retries: LOCK_RETRIES,
        });
        try {
          const content = await readStore(path).catch((error: unknown) => setAside(path, error));
          const present = Object.hasOwn(content, key) ? content[key] : undefined;
          const next = change(present);
          if (next !== present) await writeStore(path, { ...content, [key]: next });
          return next;
        } finally {
          await unlock().catch(() => undefined);
        }
      }),
  };
}

async function readStore(path: string): Promise<Readonly<Record<string, unknown>>> {
  let text: string;
  try {
    // No link is followed: another program could point it at another file.
    const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    try {
      const { size } = await file.stat();
      if (size > MAX_FILE_BYTES) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`);
      text = await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return {};
    const why =
      code === "ELOOP"
        ? "it is a symbolic link; give the path of the file itself"
        : messageOf(error);
    throw new Error(`"${path}" cannot be read: ${why}`, { cause: error });
  }
  try {
    const content: unknown = JSON.parse(text);
    if (isRecord(content)) return content;
  } catch {
    // Said below.
  }
  throw new DamagedError(
    `"${path}" is not a JSON object. It is moved to "${path}.damaged" when something has to be kept`,
  );
}

class DamagedError extends Error {}

/** Moves a damaged file away and begins anew. @throws any other error. */
async function setAside(path: string, error: unknown): Promise<Readonly<Record<string, unknown>>> {
  if (!(error instanceof DamagedError)) throw error;
  await rename(path, `${path}.damaged`);
  return {};
}

async function writeStore(path: string, content: object): Promise<void> {
  const next = resolve(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    const file = await open(next, "wx", 0o600);
    try {
      await file.writeFile(JSON.stringify(content));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
}
