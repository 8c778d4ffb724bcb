import fc from "fast-check";

import type { McpHubOptions } from "../../../src/config/hubOptions.js";
import type {
  McpRunContext,
  PolicyOptions,
  PolicyRequest,
  PolicyFunction,
} from "../../../src/config/policyOptions.js";
import { resolveHubOptions } from "../../../src/config/settings.js";
import type { Operation } from "../../../src/policy/operation.js";
import { Policy } from "../../../src/policy/policy.js";

type Options = Omit<McpHubOptions, "mcpServers"> & {
  readonly server?: object;
  readonly other?: object;
};

function policyOf({ server = {}, other = {}, ...rest }: Options = {}): Policy {
  const settings = resolveHubOptions({
    ...rest,
    mcpServers: { s: { command: "x", ...server }, o: { command: "x", ...other } },
  });
  return new Policy(settings, settings.policy);
}

const call = (toolName: string, annotations?: object, args: unknown = {}): Operation => ({
  kind: "call",
  serverName: "s",
  toolName,
  arguments: args,
  annotations,
});
const decide = (options: Options, operation: Operation, context: McpRunContext = {}): string =>
  policyOf(options).decide(operation, context).kind;

const DECISIONS = ["allow", "ask", "deny"] as const;
const harshest = (...kinds: string[]): string =>
  DECISIONS[Math.max(...kinds.map((kind) => (DECISIONS as readonly string[]).indexOf(kind)))]!;
const TIERS = {
  open: { read: "allow", write: "allow", destructive: "allow" },
  cautious: { read: "allow", write: "ask", destructive: "ask" },
  strict: { read: "ask", write: "ask", destructive: "ask" },
  readonly: { read: "allow", write: "deny", destructive: "deny" },
} as const;

describe("the table of operation, rule, tier, override, trust and default", () => {
  const operations = [
    ["a call of a reading tool", call("t", { readOnlyHint: true }), "read"],
    ["a call of an adding tool", call("t", { destructiveHint: false }), "write"],
    ["a call of a destructive tool", call("t", { readOnlyHint: false }), "destructive"],
    ["a call without hints", call("t"), "destructive"],
    ["a prompt", { kind: "invoke", serverName: "s", promptName: "t", arguments: {} }, "read"],
    ["a read", { kind: "read", serverName: "s", uri: "t" }, "read"],
    ["a list", { kind: "list", serverName: "s" }, "read"],
  ] as const satisfies [string, Operation, string][];
  const rules = [undefined, ...DECISIONS] as const;
  const overrides = [
    undefined,
    "open",
    "strict",
    "readonly",
    "allow",
    "ask",
    "deny",
    { class: "read" },
  ] as const;

  it.each(operations)("%s", (_name, operation, trustedClass) => {
    let rows = 0;
    for (const rule of rules)
      for (const fallback of DECISIONS)
        for (const tier of Object.keys(TIERS) as (keyof typeof TIERS)[])
          for (const override of overrides)
            for (const trustAnnotations of [true, false]) {
              rows += 1;
              const target = operation.kind === "list" ? "s" : "s:t";
              const decided = decide(
                {
                  policy: {
                    ...(rule === undefined ? {} : { [rule]: [`mcp:${operation.kind}:${target}`] }),
                    default: fallback,
                  },
                  server: {
                    tier,
                    trustAnnotations,
                    ...(override === undefined ? {} : { overrides: { t: override } }),
                  },
                },
                operation,
              );
              const isCall = operation.kind === "call";
              const own = isCall && !trustAnnotations ? "destructive" : trustedClass;
              const toolClass = isCall && typeof override === "object" ? override.class : own;
              const permission = isCall && typeof override === "string" ? override : tier;
              const tiered =
                permission in TIERS
                  ? TIERS[permission as keyof typeof TIERS][toolClass]
                  : permission;
              expect([rule, fallback, tier, override, trustAnnotations, decided]).toEqual([
                rule,
                fallback,
                tier,
                override,
                trustAnnotations,
                harshest(rule ?? fallback, tiered),
              ]);
            }
    expect(rows).toBe(768);
  });
});

describe("rules that are added", () => {
  const part = fc.constantFrom("*", "s", "o", "?");
  const kind = fc.constantFrom("*", "call", "read", "invoke", "{call,read}");
  const target = fc.constantFrom("*", "a*", "*b", "ab", "?b", "{ab,cd}", "c?");
  const permission = fc.tuple(kind, part, target).map(([a, b, c]) => `mcp:${a}:${b}:${c}`);
  const list = fc.array(permission, { maxLength: 4 });
  const tier = fc.constantFrom(...(Object.keys(TIERS) as (keyof typeof TIERS)[]));
  const override = fc.constantFrom("open", "strict", "readonly", "allow", "ask", "deny");
  const policy = fc.record({
    deny: list,
    ask: list,
    allow: list,
    default: fc.constantFrom(...DECISIONS),
  });
  const operation = fc
    .tuple(
      fc.constantFrom("call", "read", "invoke"),
      fc.constantFrom("s", "o"),
      fc.constantFrom("ab", "cd", "b", ""),
    )
    .map(([what, serverName, name]): Operation => {
      if (what === "call") return { kind: what, serverName, toolName: name, arguments: {} };
      return what === "read"
        ? { kind: what, serverName, uri: name }
        : { kind: "invoke", serverName, promptName: name, arguments: {} };
    });
  const rank = (options: Options, wanted: Operation): number =>
    DECISIONS.indexOf(policyOf(options).decide(wanted, {}).kind);

  it("never allow more when they deny", () => {
    fc.assert(
      fc.property(
        policy,
        permission,
        tier,
        fc.dictionary(target, override, { maxKeys: 2 }),
        operation,
        (rules, added, permissionTier, overrides, wanted) => {
          const server = { tier: permissionTier, overrides };
          const before = rank({ policy: rules, server }, wanted);
          const after = rank(
            { policy: { ...rules, deny: [...rules.deny, added] }, server },
            wanted,
          );
          expect(after).toBeGreaterThanOrEqual(before);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("decide the same in any order, and a function never loosens them", () => {
    fc.assert(
      fc.property(
        policy,
        operation,
        fc.constantFrom(...DECISIONS, undefined),
        (rules, wanted, answer) => {
          const turned = {
            ...rules,
            deny: [...rules.deny].reverse(),
            ask: [...rules.ask].reverse(),
            allow: [...rules.allow].reverse(),
          };
          expect(rank({ policy: turned }, wanted)).toBe(rank({ policy: rules }, wanted));
          expect(rank({ policy: { ...rules, decide: () => answer } }, wanted)).toBe(
            Math.max(
              rank({ policy: rules }, wanted),
              answer === undefined ? 0 : DECISIONS.indexOf(answer),
            ),
          );
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

describe("overrides", () => {
  it("let an exact name beat globs, and the most restrictive of several globs win", () => {
    const server = {
      tier: "strict",
      overrides: {
        "get_*": "allow",
        "*_secret": "deny",
        get_one_secret: "ask",
        "drop_*": { tier: "deny" },
        drop_draft: "open",
      },
    };
    const of = (toolName: string): string => decide({ server }, call(toolName));
    expect(
      ["get_x", "get_secret", "get_one_secret", "drop_x", "drop_draft", "other"].map(of),
    ).toEqual(["allow", "deny", "ask", "deny", "allow", "ask"]);
  });

  it("apply the tier of an override to the class of the tool", () => {
    const server = { trustAnnotations: true, overrides: { "*": "readonly", "t*": "strict" } };
    expect(decide({ server }, call("t", { readOnlyHint: true }))).toBe("ask");
    expect(decide({ server }, call("t", { destructiveHint: true }))).toBe("deny");
  });

  it("set the class; of several, the most harmful one wins", () => {
    const server = {
      tier: "cautious",
      overrides: { "*": { class: "read" }, "set_*": { class: "write" } },
    };
    const policy = policyOf({ server });
    expect(policy.decide(call("get"), {})).toMatchObject({ kind: "allow", class: "read" });
    expect(policy.decide(call("set_x"), {})).toMatchObject({ kind: "ask", class: "write" });
  });
});

describe("reads", () => {
  const allowed: PolicyOptions = {
    allow: ["mcp:read:s:file:///docs/*", "mcp:read:s:notes:public/*", "mcp:read:s:public/*"],
    default: "deny",
  };
  it.each([
    ["file:///docs/a.md", "allow"],
    ["file:///docs/a/../b.md", "allow"],
    ["file:///docs/a%20b.md", "allow"],
    ["file:///docs/a.md?x=1#y", "allow"],
    ["file:///docs/../etc/passwd", "deny"],
    ["file:///docs/%2e%2e/etc/passwd", "deny"],
    ["file:///docs/..%2fetc/passwd", "deny"],
    ["file:///docs/..%2fetc/passwd#%", "deny"],
    ["file:///docs/..%2fetc/passwd?%FF", "deny"],
    ["file:///docs/%3F%2F..%2F..%2Fetc/passwd", "deny"],
    ["file:///docs/%252e%252e/etc/passwd", "deny"],
    ["file:///docs/..\\..\\etc\\passwd", "deny"],
    ["notes:public/../private", "deny"],
    ["public/../private", "deny"],
    ["public/page", "allow"],
    ["file:///etc/passwd", "deny"],
    ["FILE:///docs/a.md", "deny"],
    [`file:///docs/${"a".repeat(3_000)}`, "deny"],
  ])("where only some are allowed: %s: %s", (uri, expected) => {
    expect(decide({ policy: allowed }, { kind: "read", serverName: "s", uri })).toBe(expected);
  });

  const denied: PolicyOptions = {
    deny: [
      "mcp:read:s:file:///my docs/*",
      "mcp:read:s:file:///etc/*",
      "mcp:read:s:file:///one",
      "mcp:read:s:notes://secret/*",
    ],
  };
  it.each([
    ["file:///my%20docs/x", "deny"],
    ["file:////etc/passwd", "deny"],
    ["file:///%2565tc/passwd", "deny"],
    ["file:///a/../etc/passwd", "deny"],
    ["file:///one#x", "deny"],
    ["file:///one?x", "deny"],
    ["NOTES://SECRET/x", "deny"],
    ["file:///other", "allow"],
    ["%", "allow"],
    ["", "allow"],
  ])("where some are denied: %s: %s", (uri, expected) => {
    expect(decide({ policy: denied }, { kind: "read", serverName: "s", uri })).toBe(expected);
  });
});

describe("a policy function", () => {
  it("sees exactly what would be sent, on a copy", () => {
    const seen: PolicyRequest[] = [];
    const args = { path: "/a", nested: { x: 1 } };
    const policy: PolicyFunction = (request) => {
      seen.push(request);
      (request.arguments as typeof args).nested.x = 2;
      return "allow";
    };
    const options = { policy, server: { metadata: { team: "core" }, trustAnnotations: true } };
    expect(decide(options, call("t", { readOnlyHint: true }, args))).toBe("allow");
    expect(args.nested.x).toBe(1);
    expect(seen).toEqual([
      {
        operation: "call",
        serverName: "s",
        target: "t",
        arguments: { path: "/a", nested: { x: 2 } },
        permission: "mcp:call:s:t",
        class: "read",
        annotations: { readOnlyHint: true },
        metadata: { team: "core" },
      },
    ]);
  });

  it.each<[string, PolicyFunction, string, RegExp]>([
    [
      "throws",
      () => {
        throw new Error("no database");
      },
      "deny",
      /failed: no database/,
    ],
    ["answers null", () => null as never, "deny", /gave no decision/],
    ["answers with another word", () => "yes" as never, "deny", /gave no decision/],
    ["answers with an empty object", () => ({}) as never, "deny", /gave no decision/],
    [
      "answers later",
      (() => Promise.reject(new Error("late"))) as never,
      "deny",
      /returned a promise/,
    ],
    ["has no opinion", () => undefined, "allow", /.*/],
    [
      "gives a reason",
      () => ({ decision: "ask", reason: "over 100 EUR" }),
      "ask",
      /^over 100 EUR$/,
    ],
    ["denies", () => "deny", "deny", /says deny/],
  ])("that %s", (_name, policy, kind, reason) => {
    const decision = policyOf({ policy }).decide(call("t"), {});
    expect(decision.kind).toBe(kind);
    expect(decision.reason).toMatch(reason);
  });

  it("hides a tool when it denies it without arguments, not when it denies certain arguments", () => {
    const byArguments: PolicyFunction = ({ arguments: args }) =>
      args === undefined ? undefined : "deny";
    expect(policyOf({ policy: byArguments }).decide(call("t"), {})).toMatchObject({
      kind: "deny",
      isHidden: false,
    });
    expect(policyOf({ policy: () => "deny" }).decide(call("t"), {})).toMatchObject({
      kind: "deny",
      isHidden: true,
    });
    expect(policyOf({ policy: { deny: ["mcp:call:s:t"] } }).decide(call("t"), {})).toMatchObject({
      isHidden: true,
    });
  });

  it("gets the context of the run", () => {
    const policy: PolicyFunction = (_request, { user }) => (user === "ann" ? "allow" : "deny");
    expect(decide({ policy }, call("t"), { user: "ann" })).toBe("allow");
    expect(decide({ policy }, call("t"), { user: "bob" })).toBe("deny");
    expect(decide({ policy }, call("t"))).toBe("deny");
  });
});

describe("scopes and workspaces", () => {
  const server = {
    scopes: ["crm"],
    overrides: { "admin_*": { scopes: ["admin"] } },
    workspaces: ["/projects/*"],
  };
  const at = (context: McpRunContext, toolName = "t"): string =>
    decide({ server }, call(toolName), context);

  it("are all required, those of the server and those of the override", () => {
    const workspace = "/projects/a";
    expect(at({ workspace, scopes: ["crm"] })).toBe("allow");
    expect(at({ workspace, scopes: ["admin"] })).toBe("deny");
    expect(at({ workspace })).toBe("deny");
    expect(at({ workspace, scopes: "crm" })).toBe("deny");
    expect(at({ workspace, scopes: ["crm"] }, "admin_x")).toBe("deny");
    expect(at({ workspace, scopes: ["crm", "admin"] }, "admin_x")).toBe("allow");
  });

  it.each([
    ["/projects/a", "allow"],
    ["/projects/a/b", "allow"],
    ["/projects/a/", "allow"],
    ["/projects/../etc", "deny"],
    ["/home/a", "deny"],
    ["", "deny"],
    [7, "deny"],
    [undefined, "deny"],
  ])("workspace %s: %s", (workspace, expected) => {
    expect(at({ workspace, scopes: ["crm"] })).toBe(expected);
  });

  it("give the same key to all contexts that see the same", () => {
    const policy = policyOf({ server });
    const keyOf = (context: McpRunContext): string => policy.audienceOf(context).key;
    expect(keyOf({ workspace: "/projects/a", scopes: ["crm"], user: "a" })).toBe(
      keyOf({ workspace: "/projects/b", scopes: ["crm", "x"] }),
    );
    expect(keyOf({ workspace: "/projects/a", scopes: ["crm"] })).not.toBe(
      keyOf({ workspace: "/projects/a", scopes: ["admin"] }),
    );
    expect(policyOf().audienceOf({ workspace: "/any", scopes: ["x"] }).key).toBe("");
  });
});

describe("a policy as a whole", () => {
  it("has the same key for the same rules, and another one for others", () => {
    const options: Options = { policy: { deny: ["mcp:call:s:a"] }, server: { tier: "cautious" } };
    expect(policyOf(options).key).toBe(policyOf({ ...options }).key);
    expect(policyOf({ ...options, policy: { deny: ["mcp:call:s:b"] } }).key).not.toBe(
      policyOf(options).key,
    );
    expect(policyOf({ ...options, server: { tier: "strict" } }).key).not.toBe(
      policyOf(options).key,
    );
  });

  it("names servers whose tier cannot tell reads from writes, and rules that match no server", () => {
    expect(
      policyOf({ tier: "readonly", other: { trustAnnotations: true } }).serversWithoutClasses(),
    ).toEqual(["s"]);
    expect(policyOf({ tier: "strict" }).serversWithoutClasses()).toEqual([]);
    expect(
      policyOf({
        server: { tier: "cautious", overrides: { "get_*": "allow" } },
      }).serversWithoutClasses(),
    ).toEqual([]);
    expect(
      policyOf({ policy: { deny: ["mcp:call:gihub:*", "mcp:call:*:x"] } }).unusedRules(),
    ).toEqual(["mcp:call:gihub:*"]);
  });
});
