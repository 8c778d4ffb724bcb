import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import pLimit, { type LimitFunction } from "p-limit";

import type { KeptStore } from "../config/store.js";

/** One writer at a time for each file, whichever hub writes. */
const locks = new Map<string, LimitFunction>();

function lockOf(path: string): LimitFunction {
  const known = locks.get(path) ?? pLimit(1);
  locks.set(path, known);
  return known;
}

/** The store of an option: the one that was given, or one in a file. */
export function storeOf(store: KeptStore | string): KeptStore {
  return typeof store === "string" ? fileStore(store) : store;
}

/**
 * A store in one JSON file. Written whole and put in place at once, so that a reader never sees half of it; two
 * processes that write at the same time lose at most what one of them wrote.
 */
export function fileStore(path: string): KeptStore {
  const lock = lockOf(resolve(path));
  const read = async (): Promise<Record<string, unknown>> => {
    try {
      const content: unknown = JSON.parse(await readFile(path, "utf8"));
      return typeof content === "object" && content !== null ? (content as Record<string, unknown>) : {};
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
      throw error;
    }
  };
  return {
    mget: async (keys) => {
      const content = await read();
      return keys.map((key) => (Object.hasOwn(content, key) ? content[key] : undefined));
    },
    mset: (entries) =>
      lock(async () => {
        // A file that cannot be read is of no use: it is written anew.
        const content = await read().catch((): Record<string, unknown> => ({}));
        await mkdir(dirname(path), { recursive: true });
        const next = `${path}.${randomUUID()}.new`;
        await writeFile(next, JSON.stringify({ ...content, ...Object.fromEntries(entries) }), { mode: 0o600 });
        await rename(next, path);
      }),
  };
}
