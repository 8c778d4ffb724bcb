import { Embeddings } from "@langchain/core/embeddings";
import { jest } from "@jest/globals";
import fc from "fast-check";

import { HubEvents } from "../../../src/events.js";
import { CatalogSearch } from "../../../src/catalog/search/catalogSearch.js";
import { searchTools } from "../../../src/catalog/search/searchTools.js";
import { catalogOf, type ToolInShort } from "../../support/catalogs.js";

/** A model that knows that three words mean the same, and counts what it is asked. */
class SmallModel extends Embeddings {
  documents = 0;
  fails = false;
  readonly #axes = [["meteo", "weather", "forecast"], ["money", "cash"], ["letter"]];

  constructor() {
    super({});
  }

  embedQuery(text: string): Promise<number[]> {
    if (this.fails) return Promise.reject(new Error("model is down"));
    return Promise.resolve(
      this.#axes.map((words) =>
        words.some((word) => text.toLowerCase().includes(word)) ? 1 : 0.01,
      ),
    );
  }

  async embedDocuments(texts: string[]): Promise<number[][]> {
    this.documents += texts.length;
    return Promise.all(texts.map((text) => this.embedQuery(text)));
  }
}

const tools: ToolInShort[] = [
  { name: "get_forecast", description: "Says how the sky will be" },
  { name: "pay", description: "Pays cash to somebody" },
  { name: "other", description: "Something else" },
];
const all = { limit: 3, accepts: () => true };
const names = ({ tools: found }: { readonly tools: readonly { readonly toolName: string }[] }) =>
  found.map(({ toolName }) => toolName);

/** A search whose vectors are there, with its model and what it reported. */
async function embeddedSearch() {
  const { catalog } = catalogOf({ a: tools });
  const embeddings = new SmallModel();
  const errors: unknown[] = [];
  const events = new HubEvents("silent");
  events.on("warning", (warning) => errors.push(warning));
  const search = new CatalogSearch(catalog, { embeddings }, events);
  search.update();
  await search.settled();
  return { search, embeddings, errors };
}

describe("searching by meaning", () => {
  it("finds a tool that shares no words with the query once its vector exists, and embeds each text once", async () => {
    const { catalog, put } = catalogOf({ a: tools });
    const embeddings = new SmallModel();
    const search = new CatalogSearch(catalog, { embeddings }, new HubEvents("silent"));
    expect(names(await search.find({ query: "meteo", ...all }))).toEqual([]);
    search.update();
    await search.settled();
    expect(names(await search.find({ query: "meteo", ...all }))[0]).toBe("get_forecast");
    put("a", [...tools, "new_one"]);
    search.update();
    await search.settled();
    expect(embeddings.documents).toBe(4);
    expect(
      names(
        await search.find({
          query: "meteo",
          limit: 3,
          accepts: ({ toolName }) => toolName !== "get_forecast",
        }),
      ),
    ).not.toContain("get_forecast");
  });

  it("fuses both rankings and keeps tools whose exact name is in the query", async () => {
    const { search } = await embeddedSearch();
    const found = names(
      await search.find({ query: "weather, then use other", limit: 2, accepts: () => true }),
    );
    expect(found).toEqual(expect.arrayContaining(["get_forecast", "other"]));
  });

  it("ranks by words alone when the model fails, with a warning", async () => {
    const { search, embeddings, errors } = await embeddedSearch();
    embeddings.fails = true;
    expect(names(await search.find({ query: "pay cash", ...all }))[0]).toBe("pay");
    expect(errors).toHaveLength(1);
  });

  it("stops waiting for a slow model, with a warning, and does not ask it again for a while", async () => {
    const { search, embeddings, errors } = await embeddedSearch();
    let asked = 0;
    embeddings.embedQuery = () => {
      asked += 1;
      return new Promise(() => undefined);
    };
    jest.useFakeTimers();
    try {
      const found = search.find({ ...all, query: "pay cash" });
      await jest.advanceTimersByTimeAsync(5_000);
      expect(names(await found)[0]).toBe("pay");
      expect(names(await search.find({ ...all, query: "pay cash" }))[0]).toBe("pay");
      expect(asked).toBe(1);
      jest.advanceTimersByTime(30_000);
      const later = search.find({ ...all, query: "pay cash" });
      await jest.advanceTimersByTimeAsync(5_000);
      await later;
      expect(asked).toBe(2);
    } finally {
      jest.useRealTimers();
    }
    expect(errors).toHaveLength(2);
  });
});

describe("rerank", () => {
  it("reorders candidates, may leave some out, and cannot add others", async () => {
    const { catalog } = catalogOf({ a: ["read_file", "read_mail", "read_page"] });
    const seen: string[][] = [];
    const rerank = (_query: string, candidates: readonly { readonly name: string }[]) => {
      seen.push(candidates.map(({ name }) => name));
      return ["mcp__a__read_page", "mcp__a__delete_everything", "mcp__a__read_file"];
    };
    const search = new CatalogSearch(catalog, { rerank }, new HubEvents("silent"));
    expect(names(await search.find({ query: "read", ...all }))).toEqual(["read_page", "read_file"]);
    expect(seen[0]).toHaveLength(3);
    const failing = new CatalogSearch(
      catalog,
      { rerank: () => Promise.reject(new Error("no")) },
      new HubEvents("silent"),
    );
    expect(names(await failing.find({ query: "read", ...all }))).toHaveLength(3);
  });
});

describe("ranking by words", () => {
  const find = (servers: Record<string, readonly ToolInShort[]>, query: string, options = {}) =>
    searchTools(catalogOf(servers, options).catalog, {
      query,
      limit: 5,
      accepts: () => true,
    }).tools.map(({ toolName }) => toolName);

  it.each<[string, string, string]>([
    ["words the index knows joined", "calculate_bazi", "Ba Zi calculation"],
    ["a word the index knows in two", "create_word_cloud", "wordcloud"],
    ["a slip of the pen", "translate_text", "tranlsate"],
    ["a longer word", "kubernetes_pods", "kubernet"],
    ["another word for the thing", "list_directory", "folder"],
  ])("are found by %s", (_what, tool, query) => {
    expect(find({ a: ["alpha", "beta", tool, "gamma"] }, query)[0]).toBe(tool);
  });

  it("prefers the tool whose name has the words next to each other", () => {
    expect(
      find(
        { a: ["file_read_issue_log", "create_issue", "issue_list_create_label"] },
        "create issue",
      )[0],
    ).toBe("create_issue");
  });

  it("uses keywords of servers and tools, titles and instructions", () => {
    const mcpServers = { a: { keywords: ["helpdesk"], toolKeywords: { "cr*": ["complaint"] } } };
    expect(find({ a: ["create", "list"] }, "complaint", { mcpServers })).toEqual(["create"]);
    expect(find({ a: ["create", "list"] }, "helpdesk", { mcpServers })).toHaveLength(2);
    const { catalog, put } = catalogOf({ a: undefined });
    put("a", ["x"], { title: "Zebra Suite", instructions: "Use for giraffes." });
    for (const query of ["zebra", "giraffes"])
      expect(searchTools(catalog, { query, limit: 1, accepts: () => true }).tools).toHaveLength(1);
  });

  it("gives the same result after any sequence of changes as a fresh index", () => {
    const pool = ["read_file", "write_file", "list_files", "send_mail", "read_mail", "get_weather"];
    const listing = fc.subarray(pool);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("a", "b"), listing), { minLength: 1, maxLength: 6 }),
        fc.constantFrom("read file", "mail", "weather files"),
        (changes, query) => {
          const changed = catalogOf({ a: [], b: [] });
          const last: Record<string, readonly string[]> = { a: [], b: [] };
          for (const [server, names_] of changes) {
            changed.put(server, names_);
            last[server] = names_;
          }
          const fresh = catalogOf({ b: last["b"], a: last["a"] });
          const result = (catalog: typeof changed.catalog) =>
            searchTools(catalog, { query, limit: 4, accepts: () => true }).tools.map(
              ({ boundName }) => boundName,
            );
          expect(result(changed.catalog)).toEqual(result(fresh.catalog));
        },
      ),
    );
  });
});
