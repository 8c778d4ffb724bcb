import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { matchGlobs } from "../../../src/text/globs.js";
import { loadMcpConfig } from "../../../src/config/configFile.js";
import { nearest } from "../../../src/text/nearest.js";
import { expandVariables, maskSecrets } from "../../../src/config/variables.js";

const a = { command: "node", args: ["a.js"] };
const b = { url: "https://b.example/mcp" };

const file = join(mkdtempSync(join(tmpdir(), "mcp-config-")), "mcp.json");
async function load(content: unknown) {
  writeFileSync(file, JSON.stringify(content));
  return loadMcpConfig(file);
}

describe("a configuration file", () => {
  it.each<[string, unknown]>([
    ["mcpServers by name", { mcpServers: { a, b } }],
    ["servers by name", { servers: { a, b }, inputs: [] }],
    ["servers of an editor's settings", { mcp: { servers: { a, b } } }],
    ["servers of an editor's settings under a key with dots", { "mcp.servers": { a, b } }],
    [
      "a list with names",
      {
        servers: [
          { name: "a", ...a },
          { name: "b", ...b },
        ],
      },
    ],
    ["the bare record", { $schema: "x", a, b }],
  ])("with %s is read", async (_what, content) => {
    expect((await load(content)).mcpServers).toEqual({ a, b });
  });

  it("keeps hub options, and turns disabled into enabled", async () => {
    const entry = { ...a, disabled: true, autoApprove: ["x"] };
    expect(await load({ mcpServers: { a: entry }, startup: "lazy" })).toEqual({
      startup: "lazy",
      mcpServers: { a: { ...a, enabled: false } },
    });
  });

  it.each<[string, unknown, RegExp]>([
    ["nothing of ours", { hello: 1 }, /mcp.json" names no MCP servers/],
    ["an empty list", { servers: [] }, /names no MCP servers/],
    ["no servers at all", { mcpServers: {} }, /names no MCP servers/],
    ["a list entry without a name", { servers: [a] }, /server 1 of the list has no "name"/],
    [
      "two servers of one name",
      {
        servers: [
          { name: "a", ...a },
          { name: "a", ...b },
        ],
      },
      /two servers are named "a"/,
    ],
    [
      "a server called __proto__",
      JSON.parse('{"mcpServers":{"a":{"command":"node"},"__proto__":{"command":"node"}}}'),
      /cannot be called "__proto__"/,
    ],
  ])("with %s is refused", async (_what, content, message) => {
    await expect(load(content)).rejects.toThrow(message);
  });
});

describe("loadMcpConfig", () => {
  it("reads comments and trailing commas", async () => {
    writeFileSync(
      file,
      '{\n  // our servers\n  "mcpServers": { "a": { "command": "node", "args": ["a.js"], }, },\n}',
    );
    expect((await loadMcpConfig(file)).mcpServers).toEqual({ a });
  });

  it("names the file and the line of a syntax error, and a missing file", async () => {
    writeFileSync(file, '{\n  "mcpServers": {\n    "a" "b"\n  }\n}');
    await expect(loadMcpConfig(file)).rejects.toThrow(
      /mcp.json" is not JSON: ColonExpected in line 3/,
    );
    await expect(loadMcpConfig(`${file}.nope`)).rejects.toThrow(
      /Cannot read the MCP configuration/,
    );
  });
});

describe("expandVariables", () => {
  const resolve = (name: string): string | undefined =>
    ({ TOKEN: "s3cret-value", EMPTY: "" })[name];

  it("fills in variables everywhere and returns which values are secret", async () => {
    const value = {
      url: "https://x/${TOKEN}",
      headers: { A: "Bearer ${env:TOKEN}" },
      args: ["${MISSING:-8080}", "plain", "$HOME"],
      n: 5,
    };
    expect(await expandVariables(value, resolve, "s")).toEqual({
      value: {
        url: "https://x/s3cret-value",
        headers: { A: "Bearer s3cret-value" },
        args: ["8080", "plain", "$HOME"],
        n: 5,
      },
      secrets: ["s3cret-value"],
      resolved: [["TOKEN", "s3cret-value"]],
    });
  });

  it("names the server and the unknown variable, and accepts an empty value", async () => {
    await expect(expandVariables({ a: "${NOPE}" }, resolve, "tracker")).rejects.toThrow(
      'Server "tracker" needs the variable NOPE, which is not set',
    );
    expect((await expandVariables("x${EMPTY}y", resolve, "s")).value).toBe("xy");
  });
});

describe("maskSecrets", () => {
  it("masks longer secrets first and leaves short ones", () => {
    expect(maskSecrets("abcdef abcd ab", ["abcd", "abcdef", "ab"])).toBe("*** *** ab");
  });
});

describe("matchGlobs", () => {
  it.each<[string, string, boolean]>([
    ["read_*", "read_file", true],
    ["read_*", "xread_file", false],
    ["*", "a/b:c.d", true],
    ["files.*", "files.read/all", true],
    ["{get,list}_?", "get_x", true],
    ["Get_*", "get_x", false],
    [".*", ".hidden", true],
  ])("matches %s against %s: %s", (glob, text, expected) => {
    expect(matchGlobs([glob])(text)).toBe(expected);
  });

  it("matches nothing when there are no globs", () => {
    expect(matchGlobs([])("a") || matchGlobs(undefined)("a")).toBe(false);
  });
});

describe("nearest", () => {
  it("finds a misspelt word in any case, and nothing that is too different", () => {
    expect(nearest("Tooldeny", ["toolDeny", "toolFilter"])).toBe("toolDeny");
    expect(nearest("banana", ["toolDeny", "toolFilter"])).toBeUndefined();
    expect(nearest("x", [])).toBeUndefined();
  });
});
