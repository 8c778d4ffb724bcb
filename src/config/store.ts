import * as z from "zod";

/**
 * Keeps values from one process to the next: a LangChain store, or anything with its `mget` and
 * `mset`.
 */
export interface KeptStore {
  mget(keys: string[]): Promise<unknown[]>;
  mset(entries: [string, unknown][]): Promise<void>;
}

/** Checks a {@link KeptStore} or the path of a file. */
export const keptStoreSchema = z.union([
  z.string().min(1),
  z.custom<KeptStore>(
    (value) =>
      typeof (value as KeptStore | null)?.mset === "function" &&
      typeof (value as KeptStore).mget === "function",
    "a LangChain store with mget() and mset()",
  ),
]);
