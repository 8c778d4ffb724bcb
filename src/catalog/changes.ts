import type { Steps } from "../text/slices.js";

/** What changed from one listing of a server's tools to the next, by raw tool name. */
export interface CatalogDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

/** One tool as a diff sees it. */
interface Hashed {
  readonly toolName: string;
  readonly hash: string;
}

/** Compares two listings by name and content hash. `undefined` when nothing changed. */
export function* diffTools(
  before: readonly Hashed[],
  after: readonly Hashed[],
): Steps<CatalogDiff | undefined> {
  const old = new Map<string, string>();
  for (const tool of before) {
    yield;
    old.set(tool.toolName, tool.hash);
  }
  const added: string[] = [];
  const changed: string[] = [];
  for (const tool of after) {
    yield;
    const hash = old.get(tool.toolName);
    if (hash === undefined) added.push(tool.toolName);
    else if (hash !== tool.hash) changed.push(tool.toolName);
    old.delete(tool.toolName);
  }
  const removed = [...old.keys()];
  return added.length + removed.length + changed.length === 0
    ? undefined
    : { added, removed, changed };
}
