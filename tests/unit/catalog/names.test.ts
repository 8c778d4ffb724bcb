import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import fc from "fast-check";

import { boundName, nameTool } from "../../../src/catalog/names.js";

const LEGAL = /^[A-Za-z0-9_-]{1,64}$/;

describe("boundName", () => {
  it.each([
    ["tracker", "create_issue", "mcp__tracker__create_issue"],
    ["a-b", "c-d", "mcp__a-b__c-d"],
    ["docs", "x__y", "mcp__docs__x__y"],
  ])("takes %s and %s as they are", (server, tool, expected) => {
    expect(boundName(server, tool)).toBe(expected);
  });

  it.each([
    ["my server.v2", "calendar.update"],
    ["a__b", "c"],
    ["a_", "c"],
    ["a", "_c"],
    ["s", "x".repeat(60)],
    ["s".repeat(60), "x".repeat(90)],
    ["日本", "検索"],
    ["s", ""],
    ["", "t"],
  ])("makes a legal, readable name of %s and %s", (server, tool) => {
    const name = boundName(server, tool);
    expect(name).toMatch(LEGAL);
    expect(name).toMatch(/^mcp__.*_[0-9a-f]{8}$/);
  });

  it("is legal and one-to-one for any pair of names", () => {
    const text = fc.string({ minLength: 1, maxLength: 200, unit: "grapheme" });
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(text, text), {
          selector: ([s, t]) => JSON.stringify([s, t]),
          maxLength: 30,
        }),
        (pairs) => {
          const names = pairs.map(([server, tool]) => boundName(server, tool));
          for (const name of names) expect(name).toMatch(LEGAL);
          expect(new Set(names).size).toBe(pairs.length);
        },
      ),
    );
  });

  it("gives different names to pairs that join to the same text", () => {
    const pairs = [
      ["a", "b__c"],
      ["a__b", "c"],
      ["a_", "_b__c"],
      ["a", "_b"],
      ["a_", "b"],
      ["a__", "b"],
    ] as const;
    expect(new Set(pairs.map(([server, tool]) => boundName(server, tool))).size).toBe(pairs.length);
  });

  it("is the same in another process", () => {
    const module = fileURLToPath(new URL("../../../src/catalog/names.ts", import.meta.url));
    const script = `import { boundName } from ${JSON.stringify(module)}; console.log(boundName("my server", "calendar.update"));`;
    const printed = execFileSync(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "-e", script],
      {
        encoding: "utf8",
      },
    );
    expect(printed.trim()).toBe(boundName("my server", "calendar.update"));
  });
});

describe("nameTool", () => {
  it("names by the option and makes any name legal", () => {
    expect(nameTool("bare", "s", "read_file")).toBe("read_file");
    expect(nameTool("bare", "s", "read.file")).toMatch(/^read_file_[0-9a-f]{8}$/);
    expect(nameTool((server, tool) => `${server}.${tool}`, "s", "t")).toMatch(/^s_t_[0-9a-f]{8}$/);
    expect(nameTool((server, tool) => `${server}-${tool}`, "s", "t")).toBe("s-t");
  });
});
