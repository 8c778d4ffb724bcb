import MiniSearch from "minisearch";
import winkBm25 from "wink-bm25-text-search";

import { SearchIndex } from "../src/catalog/search/searchIndex.js";
import { searchFields } from "../src/catalog/search/searchFields.js";
import { tokenize, wordsOf } from "../src/catalog/search/tokenize.js";
import { keyOf, type CatalogTool } from "./searchSets.js";

/** A way of searching: builds an index of a catalog, answers with keys, best first. */
export interface Method {
  readonly name: string;
  readonly build: (
    catalog: readonly CatalogTool[],
  ) => (query: string, limit: number) => readonly string[];
}

const SETTINGS = {
  description: undefined,
  category: undefined,
  tags: [],
  keywords: [],
  toolKeywords: {},
};

/** Ours: the index of the package, with the fields of the package. */
export const ours: Method = {
  name: "ours",
  build: (catalog) => {
    const index = new SearchIndex();
    for (const tool of catalog) {
      const { server, name, description, inputSchema } = tool;
      const fields = searchFields(
        {
          serverName: server,
          toolName: name,
          title: undefined,
          annotations: undefined,
          description,
          inputSchema,
        },
        SETTINGS,
        { serverInfo: undefined, instructions: undefined },
      );
      index.add(keyOf(tool), fields);
    }
    return (query, limit) => index.search(query, limit, () => true).map(({ key }) => key);
  },
};

const textOf = ({ server, name, description, inputSchema }: CatalogTool): string =>
  [
    server,
    name,
    description,
    ...Object.entries(inputSchema.properties ?? {}).map(
      ([key, schema]) => `${key} ${schema.description ?? ""}`,
    ),
  ].join(" ");

/** MiniSearch with fuzzy and prefix matching on. */
const minisearch: Method = {
  name: "minisearch 7, fuzzy and prefix",
  build: (catalog) => {
    const index = new MiniSearch<{ id: number; name: string; text: string }>({
      fields: ["name", "text"],
      searchOptions: { fuzzy: 0.2, prefix: true, boost: { name: 3 } },
    });
    index.addAll(
      catalog.map((tool, id) => ({ id, name: wordsOf(tool.name).join(" "), text: textOf(tool) })),
    );
    return (query, limit) =>
      index
        .search(query)
        .slice(0, limit)
        .map(({ id }) => keyOf(catalog[Number(id)]!));
  },
};

/** BM25 of a package over our words. */
const bm25: Method = {
  name: "wink-bm25-text-search",
  build: (catalog) => {
    const engine = winkBm25();
    engine.defineConfig({ fldWeights: { text: 1 } });
    engine.definePrepTasks([tokenize]);
    catalog.forEach((tool, id) => engine.addDoc({ text: textOf(tool) }, id));
    engine.consolidate();
    return (query, limit) => engine.search(query, limit).map(([id]) => keyOf(catalog[Number(id)]!));
  },
};

/** The share of the query's words that stand in the tool's text. */
const overlap: Method = {
  name: "token overlap",
  build: (catalog) => {
    const words = catalog.map((tool) => new Set(wordsOf(textOf(tool))));
    return (query, limit) => {
      const wanted = wordsOf(query);
      return words
        .map((known, at) => ({ at, found: wanted.filter((word) => known.has(word)).length }))
        .sort((a, b) => b.found - a.found || a.at - b.at)
        .slice(0, limit)
        .map(({ at }) => keyOf(catalog[at]!));
    };
  },
};

export const baselines: readonly Method[] = [overlap, bm25, minisearch];
