import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A tool of a catalog file. */
export interface CatalogTool {
  readonly server: string;
  readonly name: string;
  readonly description: string;
  readonly inputSchema: {
    readonly properties?: Readonly<
      Record<string, { readonly description?: string; readonly enum?: readonly unknown[] }>
    >;
  };
}

/** One query with the right tools. */
export interface Query {
  readonly query: string;
  readonly gold: readonly {
    readonly server: string;
    readonly name: string;
    readonly alt?: readonly { readonly server: string; readonly name: string }[];
  }[];
  /** `all`: recall is the share of gold entries found; `any`: one of them is enough. */
  readonly mode: "all" | "any";
  readonly server_hint?: string;
}

/** A named set: queries over a catalog. */
export interface QuerySet {
  readonly name: string;
  readonly catalog: readonly CatalogTool[];
  readonly queries: readonly Query[];
}

export const DATA =
  process.env["MCP_TOOL_SEARCH"] ??
  fileURLToPath(new URL("../../shared/data/tool-search", import.meta.url));

export function readLines<Value>(path: string): Value[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Value);
}

const SETS: readonly (readonly [name: string, catalog: string])[] = [
  ["livemcp-llm", "livemcp"],
  ["livemcp-step", "livemcp"],
  ["azure", "azure"],
  ["mcpm-server", "mcpm"],
  ["metatool", "metatool"],
  ["mcpproxy45", "mcpproxy45"],
  ["livemcp-task", "livemcp"],
  ["sealtools", "sealtools"],
  ["stabletoolbench", "stabletoolbench"],
];

/** The sets that are there; empty without the data. */
export function loadSets(): QuerySet[] {
  if (!existsSync(DATA)) return [];
  const sets = SETS.map(([name, catalog]) => ({
    name,
    catalog: readLines<CatalogTool>(`${DATA}/catalog-${catalog}.jsonl`),
    queries: readLines<Query>(`${DATA}/queries-${name}.jsonl`),
  }));
  const llm = sets[0]!;
  const haystack = readLines<CatalogTool>(`${DATA}/catalog-mcp-index.jsonl`);
  const own = new Set(
    llm.catalog.map(({ name, description }) => `${name}\n${description.slice(0, 200)}`),
  );
  const others = haystack.filter(
    ({ name, description }) => !own.has(`${name}\n${description.slice(0, 200)}`),
  );
  return [
    ...sets,
    {
      name: "livemcp-llm in the haystack",
      catalog: [...llm.catalog, ...others],
      queries: llm.queries,
    },
  ];
}

/** A tool's key, `server` and `name` together. */
export const keyOf = ({
  server,
  name,
}: {
  readonly server: string;
  readonly name: string;
}): string => `${server}\u0000${name}`;

/**
 * Hit at 1 and recall at 5, in percent. A gold entry counts as found when it or one of its `alt` is
 * among the first k.
 */
export function score(
  set: QuerySet,
  search: (query: Query) => readonly string[],
): { readonly hit: number; readonly recall: number } {
  let hits = 0;
  let recall = 0;
  for (const query of set.queries) {
    const found = search(query);
    const isFound =
      (k: number) =>
      (entry: Query["gold"][number]): boolean =>
        [entry, ...(entry.alt ?? [])].some((tool) => found.slice(0, k).includes(keyOf(tool)));
    if (query.gold.some(isFound(1))) hits += 1;
    const at5 = query.gold.filter(isFound(5)).length;
    recall += query.mode === "any" ? Math.min(1, at5) : at5 / query.gold.length;
  }
  return { hit: (100 * hits) / set.queries.length, recall: (100 * recall) / set.queries.length };
}
