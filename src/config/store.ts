import * as z from "zod";

/** Where something is kept from one process to the next: a LangChain store, or what has its `mget` and `mset`. */
export interface KeptStore {
  mget(keys: string[]): Promise<unknown[]>;
  mset(entries: [string, unknown][]): Promise<void>;
}

/** Option: such a store, or the path of a file. */
export const keptStoreSchema = z.union([
  z.string().min(1),
  z.custom<KeptStore>(
    (value) => typeof (value as KeptStore | null)?.mset === "function" && typeof (value as KeptStore).mget === "function",
    "a LangChain store with mget() and mset()",
  ),
]);
