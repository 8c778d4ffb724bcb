import fc from "fast-check";

import { boundName } from "../../../src/catalog/names.js";
import { cut, escapeTags, oneLine, removeInvisible } from "../../../src/text/clean.js";
import { readTool } from "../../../src/catalog/toolEntry.js";
import { catalogOf } from "../../support/catalogs.js";

describe("Catalog", () => {
  it("keeps same-named tools of two servers and routes each by its bound name", () => {
    const { catalog } = catalogOf({ a: ["c"], a__b: ["c"], a_b: ["c"], "my server": ["c"] });
    const bound = [...catalog.tools()].map(({ boundName, serverName }) => [boundName, serverName]);
    expect(new Set(bound.map(([name]) => name)).size).toBe(4);
    for (const [name, serverName] of bound)
      expect(catalog.tool(name!)).toMatchObject({ serverName, toolName: "c" });
  });

  it("keeps the first of two equal names on one server, and reports the second", () => {
    const { catalog } = catalogOf({ a: [] });
    const tool = (description: string) =>
      readTool({ name: "x", description }) as unknown as { tool: never };
    const { duplicates } = catalog.setServer("a", {
      tools: [tool("first").tool, tool("second").tool],
      instructions: undefined,
      serverInfo: undefined,
    });
    expect(duplicates).toEqual(["x"]);
    expect(catalog.tool("mcp__a__x")!.description).toBe("first");
  });

  it("gives a bare name to the server configured first, whichever connected first", () => {
    const late = catalogOf({ a: undefined, b: ["search"] }, { names: "bare" });
    late.put("a", ["search"]);
    const early = catalogOf({ a: ["search"], b: ["search"] }, { names: "bare" });
    for (const { catalog } of [late, early]) {
      expect(catalog.tool("search")).toMatchObject({ serverName: "a" });
      expect(catalog.tool("mcp__b__search")).toMatchObject({ serverName: "b" });
      expect(catalog.server("b")!.tools.map(({ boundName }) => boundName)).toEqual([
        "mcp__b__search",
      ]);
    }
    expect(catalogOf({ a: ["search"] }).catalog.tool("mcp__a__search")!.hash).not.toBe(
      catalogOf({ b: ["search"] }).catalog.tool("mcp__b__search")!.hash,
    );
  });

  it("lets no server take another tool's name, not even a hashed one", () => {
    const { catalog } = catalogOf({
      "git hub": ["read"],
      git_hub: [boundName("git hub", "read").replace("mcp__git_hub__", "")],
    });
    expect([...catalog.tools()].map(({ serverName }) => serverName).sort()).toEqual([
      "git hub",
      "git_hub",
    ]);
    const bare = catalogOf(
      { evil: ["mcp__files__search", "search"], files: ["search"] },
      { names: "bare" },
    );
    expect([...bare.catalog.tools()]).toHaveLength(3);
  });

  it("survives a names function that throws, and a schema too deep to be read", () => {
    const { catalog } = catalogOf(
      { a: ["x"] },
      {
        names: () => {
          throw new Error("no");
        },
      },
    );
    expect(catalog.tool("mcp__a__x")).toBeDefined();
    let deep: object = {};
    for (let depth = 0; depth < 20_000; depth += 1) deep = { properties: { a: deep } };
    const tools = [{ name: "deep", inputSchema: deep }, { name: "good" }].map(
      (tool) => (readTool(tool) as unknown as { tool: never }).tool,
    );
    const { dropped } = catalog.setServer("a", {
      tools,
      instructions: undefined,
      serverInfo: undefined,
    });
    expect(dropped).toEqual(["deep"]);
    expect(catalog.server("a")!.tools.map(({ toolName }) => toolName)).toEqual(["good"]);
  });

  it("updates changed annotations and instructions", () => {
    const { catalog, view, put } = catalogOf({
      a: [{ name: "x", annotations: { readOnlyHint: true } }],
    });
    put("a", [{ name: "x", annotations: { readOnlyHint: false } }], { instructions: "new" });
    expect(catalog.tool("mcp__a__x")!.annotations).toEqual({ readOnlyHint: false });
    expect(view.servers()[0]!.instructions).toBe("new");
  });

  it("gives the last change since a digest, and no earlier ones", () => {
    const { catalog, put } = catalogOf({ a: ["one", "two"] });
    const before = catalog.server("a")!.digest;
    put("a", ["one", { name: "two", description: "changed" }, "three"]);
    expect(catalog.diffSince("a", before)).toEqual({
      added: ["three"],
      removed: [],
      changed: ["two"],
    });
    put("a", ["one", { name: "two", description: "changed" }, "four"]);
    expect(catalog.diffSince("a", before)).toBeUndefined();
    expect(catalog.diffSince("a", "unknown")).toBeUndefined();
    const { version } = catalog;
    put("a", ["one", { name: "two", description: "changed" }, "four"]);
    expect(catalog.version).toBe(version);
  });

  it("has the same digest whatever the order of the list", () => {
    expect(catalogOf({ a: ["x", "y"] }).catalog.server("a")!.digest).toBe(
      catalogOf({ a: ["y", "x"] }).catalog.server("a")!.digest,
    );
  });
});

describe("readTool", () => {
  it("never throws and gives an object schema", () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true }),
        fc.anything(),
        fc.anything(),
        (value, inputSchema, description) => {
          for (const candidate of [value, { name: "x", inputSchema, description }]) {
            const reading = readTool(candidate);
            if (reading.kind !== "dropped") expect(reading.tool.inputSchema["type"]).toBe("object");
          }
        },
      ),
    );
  });
});

describe("text", () => {
  it("removes invisible characters and keeps the rest", () => {
    expect(removeInvisible("a\u200Bb\u202Ec\u0007d\n\te\uFEFF😀\uD800")).toBe("abcd\n\te😀");
  });

  it("makes tags harmless and keeps comparisons", () => {
    expect(escapeTags("a < b </X> <b> < /c> <!-- <3")).toBe(
      "a < b &lt;/X> &lt;b> &lt; /c> &lt;!-- <3",
    );
  });

  it("makes one line of a maximum length, without half characters", () => {
    expect(oneLine(" a\n\n b\tc ", 100)).toBe("a b c");
    expect(oneLine("x".repeat(10_000_000), 10)).toBe("xxxxxxxxx…");
    expect(cut("ab😀cd", 4)).toBe("ab…");
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 50 }), (text, max) => {
        const line = oneLine(text, max);
        expect(line.length).toBeLessThanOrEqual(max);
        expect(line).not.toMatch(/[\n\r]/);
        expect(line.isWellFormed()).toBe(true);
      }),
    );
  });
});
