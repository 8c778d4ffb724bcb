import fc from "fast-check";

import { matchGlob } from "../../../src/text/globs.js";
import { McpConfigError } from "../../../src/errors.js";
import { permissionOf, type Operation } from "../../../src/policy/operation.js";
import { parsePermission } from "../../../src/policy/permission.js";
import { Rules } from "../../../src/policy/rules.js";

const call = (serverName: string, toolName: string): Operation => ({
  kind: "call",
  serverName,
  toolName,
  arguments: {},
});
const read = (serverName: string, uri: string): Operation => ({ kind: "read", serverName, uri });
const list = (serverName: string): Operation => ({ kind: "list", serverName });
const invoke = (serverName: string, promptName: string): Operation => ({
  kind: "invoke",
  serverName,
  promptName,
  arguments: {},
});

function matches(permission: string, operation: Operation): boolean {
  const target =
    operation.kind === "call" ? operation.toolName : operation.kind === "read" ? operation.uri : "";
  const name = operation.kind === "invoke" ? operation.promptName : target;
  const { kinds, matchesServer, matchesTarget } = parsePermission(permission, "policy.deny");
  return (
    kinds.includes(operation.kind) && matchesServer(operation.serverName) && matchesTarget(name)
  );
}

describe("permissions", () => {
  it.each([
    ["mcp:call:github:create_issue", call("github", "create_issue"), true],
    ["mcp:call:github:create_issue", call("github", "create_issues"), false],
    ["mcp:call:github:create_*", call("github", "create_issue"), true],
    ["mcp:call:github:*_issue", call("github", "create_issue"), true],
    ["mcp:call:github:get_?", call("github", "get_x"), true],
    ["mcp:call:github:{get,list}_*", call("github", "list_issues"), true],
    ["mcp:call:*:delete_*", call("files", "delete_file"), true],
    ["mcp:call:*:delete_*", call("files", "Delete_file"), false],
    ["mcp:call:git*:*", call("github", "x"), true],
    ["mcp:call:git*:*", call("files", "x"), false],
    ["mcp:*:github:*", call("github", "x"), true],
    ["mcp:*:github:*", read("github", "x://y"), true],
    ["mcp:*:github:*", invoke("github", "p"), true],
    ["mcp:*:github:*", list("github"), true],
    ["mcp:*:*:*", list("github"), true],
    ["mcp:{read,list}:github:*", call("github", "x"), false],
    ["mcp:list:github", list("github"), true],
    ["mcp:list:github:*", list("github"), true],
    ["mcp:list:*", list("github"), true],
    ["mcp:list:github", list("gitlab"), false],
    ["mcp:call:github:repos/*", call("github", "repos/a/b"), true],
    ["mcp:call:github:repos.*", call("github", "repos.get"), true],
    ["mcp:call:github:*", call("github", ".hidden"), true],
    ["mcp:call:github:*", call("github", "two\nlines"), true],
    ["mcp:call:github:a*z", call("github", "a/../z"), true],
    ["mcp:read:docs:file:///a/*", read("docs", "file:///a/b/c.md"), true],
    ["mcp:read:docs:file:///a/*", read("docs", "file:///b"), false],
    ["mcp:read:docs:*", read("docs", "x:y:z"), true],
    ["mcp:read:docs:issue://*:*", read("docs", "issue://4:5"), true],
    ["mcp:read:docs:*.md", read("docs", "file:///a/b.md"), true],
    ["mcp:invoke:docs:My Prompt", invoke("docs", "My Prompt"), true],
    ["mcp:call:a\\:b:c", call("a:b", "c"), true],
    ["mcp:call:a?b:c", call("a:b", "c"), true],
    ["mcp:call:a\\:b:c", call("a", "b:c"), false],
    ["mcp:call:!github:*", call("files", "x"), false],
    ["mcp:call:!(github):*", call("files", "x"), false],
    ["mcp:read:d:file:///app/(admin)/*", read("d", "file:///app/(admin)/page.tsx"), true],
    ["mcp:call:s:a+(b)*", call("s", "a+(b)c"), true],
    ["mcp:call:s:{a*", call("s", "{ab"), true],
    ["mcp:call:s:a[bc]", call("s", "ab"), false],
    ["mcp:call:s:a[bc]", call("s", "a[bc]"), true],
    ['mcp:call:s:"a"|*', call("s", '"a"|b'), true],
    ["mcp:call:s:\\*", call("s", "*"), true],
    ["mcp:call:s:\\*", call("s", "x"), false],
  ])("%s against %j: %s", (permission, operation, expected) => {
    expect(matches(permission, operation)).toBe(expected);
  });

  it.each([
    ["call:github:x", /begins with "mcp:"/],
    ["*", /begins with "mcp:"/],
    ["mcp:cal:github:x", /no kind "cal", did you mean "call"/],
    ["mcp:*:github", /part behind the server is missing/],
    ["mcp:call:github", /part behind the server is missing/],
    ["mcp:call:github:", /part behind the server is missing/],
    ["mcp:call", /server is missing/],
    ["mcp:", /no kind/],
  ])("refuses %s", (permission, message) => {
    const parse = (): unknown => parsePermission(permission, "policy.deny");
    expect(parse).toThrow(McpConfigError);
    expect(parse).toThrow(message);
    expect(parse).toThrow(/"policy.deny" has .*Write mcp:call:<server>:<tool>/s);
  });

  it("name an operation as rules do", () => {
    expect(
      [call("s", "t"), read("s", "a:b"), invoke("s", "p"), list("s")].map(permissionOf),
    ).toEqual(["mcp:call:s:t", "mcp:read:s:a:b", "mcp:invoke:s:p", "mcp:list:s"]);
  });

  it("match any characters with * and one with ?, whatever the text is", () => {
    const char = fc.constantFrom(
      "a",
      "b",
      ".",
      "/",
      "\n",
      "_",
      "-",
      "*",
      "?",
      " ",
      "é",
      "\u2028",
      "\uFFFF",
    );
    const text = fc.array(char, { maxLength: 8 }).map((chars) => chars.join(""));
    fc.assert(
      fc.property(text, text, (pattern, subject) => {
        const glob = pattern.replace(/[.]/g, "\\$&");
        const oracle = Array.from(pattern, (char) =>
          char === "*" ? "[^]*" : char === "?" ? "[^]" : char.replace(/[.]/, "\\."),
        );
        if (pattern === "") return;
        expect(matchGlob(glob)(subject)).toBe(new RegExp(`^${oracle.join("")}$`).test(subject));
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("rules", () => {
  it("let deny beat ask and ask beat allow, in any order, and apply the default otherwise", () => {
    const rules = new Rules({
      allow: ["mcp:call:s:*"],
      ask: ["mcp:call:s:b*", "mcp:call:s:write"],
      deny: ["mcp:call:s:*c", "mcp:call:s:drop"],
      default: "deny",
    });
    const decide = (toolName: string): unknown => rules.decide("call", "s", toolName);
    expect(decide("a")).toEqual({ kind: "allow", rule: "mcp:call:s:*" });
    expect(decide("b")).toEqual({ kind: "ask", rule: "mcp:call:s:b*" });
    expect(decide("write")).toEqual({ kind: "ask", rule: "mcp:call:s:write" });
    expect(decide("bc")).toEqual({ kind: "deny", rule: "mcp:call:s:*c" });
    expect(decide("drop")).toEqual({ kind: "deny", rule: "mcp:call:s:drop" });
    expect(rules.decide("read", "s", "x")).toEqual({ kind: "deny", rule: undefined });
    expect(new Rules({}).decide("call", "s", "x")).toEqual({ kind: "allow", rule: undefined });
  });

  it("know when nothing of a kind can be allowed on a server", () => {
    const denied = new Rules({ deny: ["mcp:*:s:*"] });
    expect([denied.deniesAll("call", "s"), denied.deniesAll("call", "t")]).toEqual([true, false]);
    const listed = new Rules({ allow: ["mcp:call:s:get_*"], default: "deny" });
    expect([
      listed.deniesAll("call", "s"),
      listed.deniesAll("read", "s"),
      listed.deniesAll("call", "t"),
    ]).toEqual([false, true, true]);
  });

  it("refuse an allow list that allows nothing", () => {
    expect(() => new Rules({ allow: ["mcp:call:s:*"] })).toThrow(
      /Add default: "ask" or default: "deny"/,
    );
  });
});
