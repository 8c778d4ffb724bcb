import { Permits, type Wanted } from "../../../src/call/permits.js";
import { readTool, type RawTool } from "../../../src/catalog/toolEntry.js";
import { ToolFingerprints } from "../../../src/catalog/toolFingerprints.js";
import type { PolicyOptions } from "../../../src/config/policyOptions.js";
import { resolveHubOptions } from "../../../src/config/settings.js";
import { HubEvents, type McpEvents } from "../../../src/events.js";
import { argumentsDigest, type Operation } from "../../../src/policy/operation.js";
import { Policy } from "../../../src/policy/policy.js";
import type { McpAsked, McpDecisions } from "../../../src/state.js";
import { atOnce } from "../../../src/text/slices.js";

const settings = resolveHubOptions({ mcpServers: { s: { command: "x" } } });
const ARGS = { page: "a" };
const CALL: Operation = { kind: "call", serverName: "s", toolName: "put", arguments: ARGS };
const READ: Operation = { kind: "read", serverName: "s", uri: "a://1" };

function permitting(policy: PolicyOptions | undefined, { listens = true } = {}) {
  const events = new HubEvents("silent");
  const told: McpEvents["policy"][] = [];
  if (listens) events.on("policy", (event) => told.push(event));
  const fingerprints = new ToolFingerprints(
    { onChange: "ask", store: undefined },
    undefined,
    events,
  );
  let now = new Policy(settings, policy);
  const permits = new Permits(() => now, events, fingerprints);
  const wantedOf = (operation: Operation, more: Partial<Wanted> = {}): Wanted => ({
    operation,
    decision: permits.decide(operation, {}),
    name: "mcp__s__put",
    toolHash: "hash",
    ...more,
  });
  return {
    permits,
    told,
    fingerprints,
    wantedOf,
    setPolicy: (next: PolicyOptions) => void (now = new Policy(settings, next)),
    change: async () => {
      await fingerprints.load("s");
      atOnce(fingerprints.check("s", [rawTool("before")]));
      atOnce(fingerprints.check("s", [rawTool("after")]));
    },
  };
}

function rawTool(description: string): RawTool {
  const reading = readTool({ name: "put", description });
  if (reading.kind === "dropped") throw new Error(reading.problem);
  return reading.tool;
}

/** Answers whatever is asked, and keeps what that was. */
function person(answer: Partial<McpDecisions[string]>) {
  const seen: McpAsked[] = [];
  const ask = async (asked: McpAsked): Promise<McpDecisions> => {
    seen.push(structuredClone(asked));
    return Object.fromEntries(
      Object.entries(asked).map(([id, { boundName, toolHash, digest }]) => [
        id,
        { boundName, toolHash, digest, type: "approve" as const, ...answer },
      ]),
    );
  };
  return { ask, seen };
}

describe("a decision", () => {
  it("asks no policy function where the policy is open and nobody listens", () => {
    const { permits } = permitting(undefined, { listens: false });
    expect(permits.decide(CALL, {})).toMatchObject({ kind: "allow", reason: "there is no policy" });
  });

  it("is put into words for listeners even where the policy is open", () => {
    expect(permitting(undefined).permits.decide(CALL, {}).reason).not.toBe("there is no policy");
  });

  it("follows the policy in force, whose change is a new version", () => {
    const { permits, setPolicy } = permitting({ deny: ["mcp:call:s:put"] });
    const { version } = permits;
    expect(permits.decide(CALL, {}).kind).toBe("deny");
    setPolicy({ ask: ["mcp:call:s:put"] });
    expect(permits.decide(CALL, {}).kind).toBe("ask");
    expect(permits.version).not.toBe(version);
  });

  it("gives the policy function the caller's context, or an empty one", () => {
    const contexts: unknown[] = [];
    const { permits } = permitting((_request, context) => void contexts.push(context));
    permits.decide(CALL, { context: { user: "ann" } });
    permits.decide(CALL, {});
    expect(contexts).toEqual([{ user: "ann" }, {}]);
  });

  it.each([
    ["allow", undefined, "ask"],
    ["ask", { ask: ["mcp:call:s:put"] }, "ask"],
    ["deny", { deny: ["mcp:call:s:put"] }, "deny"],
  ] as const)(
    "about a changed tool is at least ask where the policy says %s",
    async (_name, policy, kind) => {
      const { permits, change } = permitting(policy, { listens: false });
      const { version } = permits;
      await change();
      expect(permits.decide(CALL, {}).kind).toBe(kind);
      expect(permits.decide({ ...CALL, toolName: "other" }, {}).decidedBy).not.toBe(
        "toolFingerprints",
      );
      expect(permits.version).not.toBe(version);
    },
  );
});

describe("an operation passes", () => {
  it.each<[string, PolicyOptions | undefined, boolean]>([
    ["without a policy", undefined, true],
    ["with a policy that asks", { ask: ["mcp:call:s:put"] }, false],
    ["with a policy function, which may judge the arguments", () => undefined, false],
  ])("with any arguments %s: %s", (_name, policy, isFree) => {
    expect(permitting(policy).permits.isFree(CALL, {})).toBe(isFree);
  });

  it("with any arguments only while its tool is unchanged", async () => {
    const { permits, change } = permitting(undefined);
    await change();
    expect(permits.isFree(CALL, {})).toBe(false);
    expect(permits.isWithheld("s", "put")).toBe(true);
  });

  it("without an audit only when it is allowed and nobody listens", () => {
    for (const [policy, listens, passes] of [
      [undefined, false, true],
      [undefined, true, false],
      [{ ask: ["mcp:call:s:put"] }, false, false],
    ] as const) {
      const { permits, wantedOf } = permitting(policy, { listens });
      expect(permits.passesFreely(wantedOf(CALL))).toBe(passes);
    }
  });

  it("when it is allowed, with one audit and without asking", async () => {
    const { permits, told, wantedOf } = permitting(undefined);
    const { ask, seen } = person({});
    expect(await permits.pass(wantedOf(CALL), { ask })).toBeUndefined();
    expect(told.map(({ decision, answer }) => [decision, answer])).toEqual([["allow", undefined]]);
    expect(seen).toEqual([]);
  });

  it("never when it is denied, whatever was approved", async () => {
    const { permits, told, wantedOf } = permitting({ deny: ["mcp:call:s:put"] });
    const { ask, seen } = person({});
    const approval = { type: "approve", digest: argumentsDigest(ARGS), toolHash: "hash" } as const;
    await expect(permits.pass(wantedOf(CALL), { ask, approval })).rejects.toMatchObject({
      code: "POLICY_DENIED",
      toolName: "put",
      isHidden: true,
      reason: 'rule "mcp:call:s:put" says deny',
    });
    expect([seen, told.map(({ decision }) => decision)]).toEqual([[], ["deny"]]);
  });

  it("not when a person has to approve it and cannot be asked", async () => {
    const { permits, told, wantedOf } = permitting({ default: "ask" });
    await expect(permits.pass(wantedOf(READ), {})).rejects.toMatchObject({
      code: "APPROVAL_REQUIRED",
      serverName: "s",
    });
    expect(told).toMatchObject([{ permission: "mcp:read:s:a://1", answer: "refuse" }]);
  });
});

describe("a person", () => {
  const ASKING: PolicyOptions = { default: "ask" };

  it("is shown what would be sent, and approves exactly that", async () => {
    const { permits, wantedOf } = permitting(ASKING);
    const { ask, seen } = person({ answeredBy: "ann" });
    expect(await permits.pass(wantedOf(CALL), { ask, toolCallId: "1" })).toEqual({
      approval: {
        type: "approve",
        digest: argumentsDigest(ARGS),
        toolHash: "hash",
        answeredBy: "ann",
      },
    });
    expect(seen).toMatchObject([
      {
        "1": {
          boundName: "mcp__s__put",
          request: { operation: "call", target: "put", arguments: ARGS },
        },
      },
    ]);
  });

  it("cannot approve other arguments by changing the request", async () => {
    const { permits, wantedOf } = permitting(ASKING);
    const { ask } = person({});
    const tampering = async (asked: McpAsked): Promise<McpDecisions> => {
      (asked["1"]!.request.arguments as { page: string }).page = "evil";
      asked["1"]!.digest = argumentsDigest({ page: "evil" });
      return ask(asked);
    };
    const answer = await permits.pass(wantedOf(CALL), { ask: tampering, toolCallId: "1" });
    expect(answer?.approval.digest).toBe(argumentsDigest(ARGS));
    expect(ARGS).toEqual({ page: "a" });
  });

  it("edits the arguments of a tool", async () => {
    const { permits, wantedOf } = permitting(ASKING);
    const edited = { page: "b" };
    const { ask } = person({
      type: "edit",
      editedArguments: edited,
      digest: argumentsDigest(edited),
    });
    expect(await permits.pass(wantedOf(CALL), { ask })).toMatchObject({
      edited,
      approval: { type: "edit", digest: argumentsDigest(edited) },
    });
  });

  it("cannot edit what is not a tool call", async () => {
    const { permits, wantedOf } = permitting(ASKING);
    const { ask } = person({ type: "edit", editedArguments: {} });
    await expect(permits.pass(wantedOf(READ), { ask })).rejects.toMatchObject({
      code: "APPROVAL_REFUSED",
      reason: "only the arguments of tools can be edited",
    });
  });

  it.each([
    ["with words", { message: "not today" }, "not today"],
    ["without words", {}, "a person rejected it"],
  ])("rejects %s, and that is audited", async (_name, more, reason) => {
    const { permits, told, wantedOf } = permitting(ASKING);
    const { ask } = person({ type: "reject", answeredBy: "bob", ...more });
    await expect(permits.pass(wantedOf(CALL), { ask })).rejects.toMatchObject({
      code: "APPROVAL_REFUSED",
      reason,
    });
    expect(told).toMatchObject([{ decision: "ask", answer: "reject", answeredBy: "bob" }]);
  });
});

describe("an approval", () => {
  const approve = { type: "approve", digest: argumentsDigest(ARGS), toolHash: "hash" } as const;
  const edit = { ...approve, type: "edit", digest: argumentsDigest({ page: "typed" }) } as const;

  it.each([
    ["of the same tool and arguments is valid", approve, {}, true],
    ["of another tool is void", { ...approve, toolHash: "other" }, {}, false],
    [
      "of other arguments is void",
      { ...approve, digest: argumentsDigest({ page: "b" }) },
      {},
      false,
    ],
    [
      "that edits is valid for what the person wrote, before it is repaired",
      edit,
      { given: { page: "typed" } },
      true,
    ],
    ["that edits is void for anything else", edit, { given: ARGS }, false],
  ])("%s", async (_name, approval, more, isValid) => {
    const { permits, told, wantedOf } = permitting({ default: "ask" });
    const passed = permits.pass(wantedOf(CALL, more), { approval });
    if (isValid) expect(await passed).toBeUndefined();
    else await expect(passed).rejects.toMatchObject({ code: "APPROVAL_REQUIRED" });
    expect(told.map(({ answer }) => answer)).toEqual([isValid ? approval.type : "refuse"]);
  });

  it("of a changed tool covers that call alone, until the tool is accepted", async () => {
    const { permits, wantedOf, change } = permitting(undefined);
    await change();
    expect(await permits.pass(wantedOf(CALL), { approval: approve })).toBeUndefined();
    expect(permits.isWithheld("s", "put")).toBe(true);
    permits.accept({ serverName: "s", toolName: "put" });
    expect(permits.isWithheld("s", "put")).toBe(false);
    expect(permits.decide(CALL, {}).kind).toBe("allow");
  });
});

describe("the audit", () => {
  it("has who and where, and a digest of the arguments in place of them", () => {
    const { permits, told } = permitting(undefined);
    const caller = {
      context: { user: "ann" },
      toolCallId: "1",
      origin: { threadId: "t", runId: "r" },
    };
    permits.audit(CALL, permits.decide(CALL, caller), caller);
    expect(told).toMatchObject([
      {
        permission: "mcp:call:s:put",
        user: "ann",
        toolCallId: "1",
        threadId: "t",
        runId: "r",
        argumentsDigest: argumentsDigest(ARGS),
      },
    ]);
    expect(told[0]).not.toHaveProperty("arguments");
  });

  it('has the arguments with audit "arguments"', () => {
    const { permits, told } = permitting({ audit: "arguments" });
    for (const operation of [CALL, READ])
      permits.audit(operation, permits.decide(operation, {}), {});
    expect(told.map(({ arguments: args }) => args)).toEqual([ARGS, { uri: "a://1" }]);
  });
});
