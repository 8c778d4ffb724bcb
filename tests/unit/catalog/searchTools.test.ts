import fc from "fast-check";

import { nearestNames, searchTools } from "../../../src/catalog/search/searchTools.js";
import { tokenize } from "../../../src/catalog/search/tokenize.js";
import { catalogOf, type ToolInShort } from "../../support/catalogs.js";

const find = (
  servers: Record<string, readonly ToolInShort[]>,
  query: string,
  limit = 5,
): string[] =>
  searchTools(catalogOf(servers).catalog, { query, limit, accepts: () => true }).tools.map(
    ({ boundName }) => boundName,
  );

const noise = (count: number, description: string): ToolInShort[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `noise_${index}`,
    description: `${description} number ${index}`,
  }));

describe("searchTools", () => {
  it("ranks a tool with a thin description first by its name among 200 noisy ones", () => {
    const servers = {
      a: [
        ...noise(200, "Exports a report of the invoice archive for the accounting export"),
        { name: "export_invoice", description: "" },
      ],
    };
    expect(find(servers, "export invoice")[0]).toBe("mcp__a__export_invoice");
  });

  it("returns nothing, with a hint, when the rare word of a query fits nothing", () => {
    const { catalog } = catalogOf({
      a: noise(311, "Send an alert to the incident channel of the team"),
    });
    const { tools, nearest } = searchTools(catalog, {
      query: "send gmail email",
      limit: 5,
      accepts: () => true,
    });
    expect(tools).toEqual([]);
    expect(nearest).toEqual([]);
  });

  it("finds a bare leaf and a name behind select:, and all tools of one exact name", () => {
    const servers = {
      a: [...noise(100, "Waits"), "get_handoff", "ns.deep/leaf_tool"],
      b: ["search", "x"],
      c: ["search", "y"],
    };
    expect(find(servers, "select:get_handoff")[0]).toBe("mcp__a__get_handoff");
    expect(find(servers, "please use get_handoff now")).toContain("mcp__a__get_handoff");
    expect(find(servers, "leaf_tool")[0]).toMatch(/^mcp__a__ns_deep_leaf_tool_/);
    expect(find(servers, "search", 1)).toEqual(
      expect.arrayContaining(["mcp__b__search", "mcp__c__search"]),
    );
  });

  it.each<[string, ToolInShort, string]>([
    ["space against underscore and another word form", "image_generation_task", "image generate"],
    ["camelCase", "listPullRequests", "list pull request"],
    ["plural", "create_issue", "creating issues"],
    ["kebab and dots", "calendar.create-event", "create an event in the calendar"],
    ["accents", { name: "find", description: "Findet ein Café in der Nähe" }, "cafe nahe"],
    ["Japanese", { name: "t1", description: "天気予報を取得します" }, "東京の天気予報"],
    ["Chinese", { name: "t2", description: "发送电子邮件给联系人" }, "电子邮件"],
    ["Korean", { name: "t3", description: "날씨를 검색합니다" }, "날씨 검색"],
    [
      "argument names",
      {
        name: "run",
        description: "Runs",
        inputSchema: { type: "object", properties: { webhookUrl: { type: "string" } } },
      },
      "webhook url",
    ],
  ])("finds by %s", (_what, tool, query) => {
    const name = typeof tool === "string" ? tool : tool.name;
    const found = searchTools(catalogOf({ a: [...noise(30, "Copies files"), tool] }).catalog, {
      query,
      limit: 5,
      accepts: () => true,
    });
    expect(found.tools[0]?.toolName).toBe(name);
  });

  it("always returns tools whose exact name is in the query, whatever else the query says", () => {
    const { catalog } = catalogOf({ a: noise(60, "Copies files"), b: ["exact_tool", "other"] });
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        fc.constantFrom("exact_tool", "mcp__b__exact_tool"),
        (before, after, name) => {
          const { tools } = searchTools(catalog, {
            query: `${before} ${name} ${after}`,
            limit: 1,
            accepts: () => true,
          });
          expect(tools.map(({ boundName }) => boundName)).toContain("mcp__b__exact_tool");
        },
      ),
    );
  });

  it.each<[string, string, string]>([
    ["between words of another script", "get_weather", "天気はget_weatherで調べて"],
    ["far behind in a long text", "get_weather", `${"word ".repeat(2_000)}get_weather`],
    ["in a script of its own", "天気を調べる", "天気を調べる を使って"],
    ["with a space in it", "Get Weather", "call Get Weather for Rome"],
  ])("finds a name %s", (_where, name, query) => {
    const { tools } = searchTools(
      catalogOf({ a: [...noise(50, "word call Rome"), name] }).catalog,
      {
        query,
        limit: 3,
        accepts: () => true,
      },
    );
    expect(tools.map(({ toolName }) => toolName)).toContain(name);
  });

  it("never returns tools that are not accepted or were removed, in whatever order they were loaded", () => {
    const tools = ["read_file", "write_file", "delete_file"];
    const { catalog, put } = catalogOf({ a: tools, b: tools });
    const names = (query: string) =>
      searchTools(catalog, {
        query,
        limit: 10,
        accepts: ({ serverName }) => serverName === "b",
      }).tools.map(({ boundName }) => boundName);
    expect(names("read_file mcp__a__read_file")).toEqual(
      expect.not.arrayContaining(["mcp__a__read_file"]),
    );
    put("b", ["write_file"]);
    expect(names("file")).toEqual(["mcp__b__write_file"]);
    const servers = { a: tools, b: noise(20, "file"), c: ["list_file"] };
    const backwards = Object.fromEntries(Object.entries(servers).reverse());
    for (const query of ["file", "read file", "list"])
      expect(find(servers, query)).toEqual(find(backwards, query));
  });

  it("never throws, whatever the query is", () => {
    const { catalog } = catalogOf({ a: noise(20, "Copies files") });
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (query) => {
        searchTools(catalog, { query, limit: 3, accepts: () => true });
      }),
    );
    searchTools(catalog, { query: "x".repeat(1_000_000), limit: 3, accepts: () => true });
  });
});

describe("nearestNames", () => {
  it("gives the nearest visible names", () => {
    const { catalog } = catalogOf({ a: ["create_issue", "close_issue"], b: ["create_isue"] });
    expect(nearestNames(catalog, "creat_issue", ({ serverName }) => serverName === "a")).toEqual([
      "mcp__a__create_issue",
    ]);
  });
});

describe("tokenize", () => {
  it.each([
    ["getUserIssues", ["user", "issu", "getuserissu"]],
    ["HTTPServer", ["http", "server", "httpserver"]],
    ["read_text-file.now", ["read", "text", "file", "now"]],
    ["Café Größe", ["cafe", "große"]],
    ["天気", ["天気"]],
    ["天気予報", ["天気", "気予", "予報"]],
    ["the and of", []],
  ])("splits %s", (text, tokens) => {
    expect(tokenize(text)).toEqual(tokens.map((token) => token.normalize("NFC")));
  });
});
