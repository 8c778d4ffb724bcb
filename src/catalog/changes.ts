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
export function diffTools(before: readonly Hashed[], after: readonly Hashed[]): CatalogDiff | undefined {
  const old = new Map(before.map((tool) => [tool.toolName, tool.hash]));
  const added: string[] = [];
  const changed: string[] = [];
  for (const tool of after) {
    const hash = old.get(tool.toolName);
    if (hash === undefined) added.push(tool.toolName);
    else if (hash !== tool.hash) changed.push(tool.toolName);
    old.delete(tool.toolName);
  }
  const removed = [...old.keys()];
  return added.length + removed.length + changed.length === 0 ? undefined : { added, removed, changed };
}

/** Two diffs in a row as one: what was added and removed again is gone, what was removed and added again is changed. */
export function joinDiffs(first: CatalogDiff, second: CatalogDiff): CatalogDiff {
  const added = new Set(first.added);
  const removed = new Set(first.removed);
  const changed = new Set(first.changed);
  for (const toolName of second.removed) {
    changed.delete(toolName);
    if (!added.delete(toolName)) removed.add(toolName);
  }
  for (const toolName of second.added) {
    if (removed.delete(toolName)) changed.add(toolName);
    else added.add(toolName);
  }
  for (const toolName of second.changed) if (!added.has(toolName)) changed.add(toolName);
  return { added: [...added], removed: [...removed], changed: [...changed] };
}
