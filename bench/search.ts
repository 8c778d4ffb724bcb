// `npm run bench:search`: how well and how fast the search finds tools, beside three baselines, in
// one run. Prints tables and writes bench/search.json. Further query files: `npm run bench:search
// -- catalog.jsonl queries.jsonl`.
import { writeFileSync } from "node:fs";

import Table from "cli-table3";

import { SearchIndex } from "../src/catalog/search/searchIndex.js";
import { baselines, ours, type Method } from "./searchBaselines.js";
import {
  DATA,
  keyOf,
  loadSets,
  readLines,
  score,
  type CatalogTool,
  type Query,
  type QuerySet,
} from "./searchSets.js";
import { quantile } from "./report.js";

const TARGETS: Readonly<Record<string, string>> = {
  "livemcp-llm": "72/95",
  "livemcp-step": "78/92",
  azure: "87/99",
  "mcpm-server": "66/80",
  metatool: "55/76",
  "livemcp-llm in the haystack": "45/76",
};
const SIZES = [200, 2_000, 20_000];

const [catalogPath, queriesPath] = process.argv.slice(2);
const sets: QuerySet[] =
  catalogPath !== undefined && queriesPath !== undefined
    ? [
        {
          name: queriesPath,
          catalog: readLines<CatalogTool>(catalogPath),
          queries: readLines<Query>(queriesPath),
        },
      ]
    : loadSets();
if (sets.length === 0)
  throw new Error(
    `No query sets at ${DATA}. Give a catalog and a query file, or set MCP_TOOL_SEARCH.`,
  );

const methods: readonly Method[] = [ours, ...baselines];
const quality = sets.map((set) => {
  const cells = methods.map((method) => {
    // The fuzzy baseline takes minutes on the haystack and says nothing new there.
    if (set.catalog.length > 5_000 && method.name.startsWith("minisearch")) return undefined;
    const search = method.build(set.catalog);
    return score(set, ({ query }) => search(query, 5));
  });
  return {
    set: set.name,
    tools: set.catalog.length,
    queries: set.queries.length,
    target: TARGETS[set.name] ?? "",
    cells,
  };
});

const table = new Table({
  head: [
    "hit at 1 / recall at 5, %",
    "tools",
    "queries",
    ...methods.map(({ name }) => name),
    "target",
  ],
  style: { head: [], border: [] },
});
for (const { set, tools, queries, target, cells } of quality) {
  table.push([
    set,
    tools,
    queries,
    ...cells.map((cell) =>
      cell === undefined ? "–" : `${cell.hit.toFixed(1)} / ${cell.recall.toFixed(1)}`,
    ),
    target,
  ]);
}
console.log(table.toString());

const haystack = sets.at(-1)!;
const queries = sets
  .flatMap((set) => (set.name.startsWith("livemcp") || set.name === "azure" ? set.queries : []))
  .slice(0, 800);
const speed = SIZES.map((size) => {
  const catalog = Array.from({ length: size }, (_, at): CatalogTool => {
    const tool = haystack.catalog[at % haystack.catalog.length]!;
    const copy = Math.floor(at / haystack.catalog.length);
    return copy === 0 ? tool : { ...tool, server: `${tool.server}-${copy}` };
  });
  globalThis.gc?.();
  const before = process.memoryUsage();
  const startedAt = performance.now();
  const search = ours.build(catalog);
  const buildMs = performance.now() - startedAt;
  globalThis.gc?.();
  const after = process.memoryUsage();
  const times = (queries.length > 0 ? queries : haystack.queries).map(({ query }) => {
    const from = performance.now();
    search(query, 5);
    return performance.now() - from;
  });
  return {
    tools: size,
    buildMs,
    p50Ms: quantile(times, 0.5),
    p95Ms: quantile(times, 0.95),
    maxMs: Math.max(...times),
    updateMs: updateTime(catalog),
    memoryMb:
      (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / 1_000_000,
  };
});

/** Milliseconds to put one server's 50 changed tools into an index. */
function updateTime(catalog: readonly CatalogTool[]): number {
  const index = new SearchIndex();
  const add = ({ server, name, description }: CatalogTool, more: string): void =>
    index.add(keyOf({ server, name }), {
      name,
      server,
      summary: description + more,
      description: "",
      background: "",
      argumentNames: "",
      argumentDescriptions: "",
    });
  for (const tool of catalog) add(tool, "");
  const from = performance.now();
  for (const tool of catalog.slice(0, 50)) add(tool, " changed");
  return performance.now() - from;
}

const speedTable = new Table({
  head: [
    "tools",
    "build ms",
    "p50 ms",
    "p95 ms",
    "slowest ms",
    "update of 50 tools ms",
    "memory MB",
  ],
  style: { head: [], border: [] },
});
for (const row of speed)
  speedTable.push(Object.values(row).map((value) => Number(value.toPrecision(3))));
console.log(speedTable.toString());
if (catalogPath === undefined) {
  const rows = quality.map(({ cells, ...row }) => ({
    ...row,
    results: Object.fromEntries(methods.map(({ name }, at) => [name, cells[at] ?? null])),
  }));
  writeFileSync(
    new URL("search.json", import.meta.url),
    `${JSON.stringify({ quality: rows, speed }, null, 2)}\n`,
  );
}
