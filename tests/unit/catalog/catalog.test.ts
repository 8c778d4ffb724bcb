import fc from "fast-check";

import { diffTools, joinDiffs } from "../../../src/catalog/diff.js";
import { cut, escapeTags, oneLine, removeInvisible } from "../../../src/catalog/text.js";
import { readTool } from "../../../src/catalog/toolEntry.js";
import { catalogOf } from "../../support/catalogs.js";

describe("Catalog", () => {
  it("keeps same-named tools of two servers and routes each by its bound name", () => {
    const { catalog } = catalogOf({ a: ["c"], a__b: ["c"], a_b: ["c"], "my server": ["c"] });
    const bound = [...catalog.tools()].map(({ boundName, serverName }) => [boundName, serverName]);
    expect(new Set(bound.map(([name]) => name)).size).toBe(4);
    for (const [name, serverName] of bound) expect(catalog.tool(name!)).toMatchObject({ serverName, toolName: "c" });
  });

  it("keeps the first of two equal names on one server and says so", () => {
    const { catalog } = catalogOf({ a: [] });
    const tool = (description: string) => readTool({ name: "x", description }) as unknown as { tool: never };
    const { duplicates } = catalog.setServer("a", {
      tools: [tool("first").tool, tool("second").tool],
      instructions: undefined,
      serverInfo: undefined,
    });
    expect(duplicates).toEqual(["x"]);
    expect(catalog.tool("mcp__a__x")!.description).toBe("first");
  });

  it("gives two servers with bare names different bound names, and never renames a tool that is there", () => {
    const { catalog, put } = catalogOf({ a: undefined, b: ["search"] }, { names: "bare" });
    put("a", ["search"]);
    expect(catalog.tool("search")).toMatchObject({ serverName: "b" });
    expect(catalog.tool("mcp__a__search")).toMatchObject({ serverName: "a" });
  });

  it("tells what changed since a digest, over several changes, and not when it was never seen", () => {
    const { catalog, put } = catalogOf({ a: ["one", "two"] });
    const before = catalog.server("a")!.digest;
    put("a", ["one", { name: "two", description: "changed" }, "three"]);
    put("a", ["one", { name: "two", description: "changed" }, "four"]);
    expect(catalog.diffSince("a", before)).toEqual({ added: ["four"], removed: [], changed: ["two"] });
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

describe("joinDiffs", () => {
  it("is what the first and the last listing differ in", () => {
    const listing = fc.uniqueArray(
      fc.record({ toolName: fc.constantFrom("a", "b", "c", "d"), hash: fc.constantFrom("1", "2") }),
      { selector: ({ toolName }) => toolName },
    );
    const none = { added: [], removed: [], changed: [] };
    const sets = (diff: { added: readonly string[]; removed: readonly string[]; changed: readonly string[] }) => [
      new Set(diff.added),
      new Set(diff.removed),
    ];
    fc.assert(
      fc.property(listing, listing, listing, (one, two, three) => {
        const joined = joinDiffs(diffTools(one, two) ?? none, diffTools(two, three) ?? none);
        expect(sets(joined)).toEqual(sets(diffTools(one, three) ?? none));
        // A tool changed there and back counts as changed: the thread saw it in between.
        for (const name of (diffTools(one, three) ?? none).changed) expect(joined.changed).toContain(name);
      }),
    );
  });
});

describe("readTool", () => {
  it("never throws and gives an object schema", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), fc.anything(), fc.anything(), (value, inputSchema, description) => {
        for (const candidate of [value, { name: "x", inputSchema, description }]) {
          const reading = readTool(candidate);
          if (reading.kind !== "dropped") expect(reading.tool.inputSchema["type"]).toBe("object");
        }
      }),
    );
  });
});

describe("text", () => {
  it("removes what cannot be seen and keeps the rest", () => {
    expect(removeInvisible("a\u200Bb\u202Ec\u0007d\n\te\uFEFF😀\uD800")).toBe("abcd\n\te😀");
  });

  it("makes tags harmless and keeps comparisons", () => {
    expect(escapeTags("a < b </X> <b> < /c> <!-- <3")).toBe("a < b &lt;/X> &lt;b> &lt; /c> &lt;!-- <3");
  });

  it("makes one line of at most so many characters, without half characters", () => {
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
