import { argumentsDigest } from "../../../src/policy/operation.js";
import { readAskResponse, toAskRequest } from "../../../src/ask/request.js";
import type { McpAsked } from "../../../src/state.js";

const asked = (...names: string[]): McpAsked =>
  Object.fromEntries(
    names.map((name, order) => [
      `call_${name}`,
      {
        boundName: `mcp__s__${name}`,
        toolHash: `hash_${name}`,
        digest: `digest_${name}`,
        order,
        request: {
          operation: "call",
          serverName: "s",
          target: name,
          class: "destructive",
          arguments: { name },
          reason: "rule says ask",
        },
      },
    ]),
  );
const types = (...answers: unknown[]): string[] =>
  Object.values(readAskResponse(asked("a", "b", "c"), { decisions: answers })).map(
    ({ type }) => type,
  );

describe("the request", () => {
  it("has LangChain's shape, in the order of the calls, with what a person needs", () => {
    const calls = {
      "2": { ...asked("b")["call_b"]!, order: 1 },
      "10": { ...asked("a")["call_a"]!, order: 0 },
    };
    const { actionRequests, reviewConfigs } = toAskRequest(calls);
    expect(actionRequests.map(({ callId }) => callId)).toEqual(["10", "2"]);
    expect(actionRequests[0]).toEqual({
      name: "mcp__s__a",
      args: { name: "a" },
      description: 'MCP server "s": tool "a" (destructive). Reason: rule says ask.',
      callId: "10",
      operation: "call",
      serverName: "s",
      toolName: "a",
      target: "a",
      class: "destructive",
      reason: "rule says ask",
    });
    expect(reviewConfigs[1]).toEqual({
      actionName: "mcp__s__b",
      allowedDecisions: ["approve", "edit", "reject"],
    });
  });
});

describe("the answer", () => {
  it("is matched by order, or by call id in any order", () => {
    expect(types({ type: "approve" }, { type: "reject" }, { type: "approve" })).toEqual([
      "approve",
      "reject",
      "approve",
    ]);
    expect(
      types(
        { type: "reject", callId: "call_c" },
        { type: "approve", callId: "call_a" },
        { type: "approve", callId: "call_b" },
      ),
    ).toEqual(["approve", "approve", "reject"]);
  });

  it.each([
    ["too few", [{ type: "approve" }]],
    ["too many", Array.from({ length: 4 }, () => ({ type: "approve" }))],
    ["none", []],
    [
      "some with ids, some without",
      [{ type: "approve", callId: "call_a" }, { type: "approve" }, { type: "approve" }],
    ],
    ["one id twice", ["a", "a", "b"].map((name) => ({ type: "approve", callId: `call_${name}` }))],
    [
      "an id that was not asked",
      ["a", "b", "x"].map((name) => ({ type: "approve", callId: `call_${name}` })),
    ],
  ])("refuses all when there are %s", (_name, answers) => {
    expect(types(...answers)).toEqual(["refuse", "refuse", "refuse"]);
  });

  it.each([
    [undefined],
    [null],
    ["approve"],
    [{}],
    [{ decisions: "approve" }],
    [[{ type: "approve" }]],
  ])("refuses all when it is %j", (response) => {
    expect(Object.values(readAskResponse(asked("a"), response)).map(({ type }) => type)).toEqual([
      "refuse",
    ]);
  });

  it("refuses only the call whose answer is wrong", () => {
    expect(
      types(
        { type: "edit", editedAction: { name: "mcp__s__b", args: {} } },
        { type: "edit", editedAction: { args: [1] } },
        null,
      ),
    ).toEqual(["refuse", "refuse", "refuse"]);
    expect(types({ type: "yes" }, { type: "approve" }, { type: "edit" })).toEqual([
      "refuse",
      "approve",
      "refuse",
    ]);
  });

  it("keeps edited arguments, message and who answered, per call", () => {
    const decisions = readAskResponse(asked("a", "b"), {
      decisions: [
        { type: "edit", editedAction: { name: "mcp__s__a", args: { x: 1 } }, answeredBy: "ann" },
        { type: "reject", message: "not now" },
      ],
    });
    expect(decisions["call_a"]).toEqual({
      type: "edit",
      editedArguments: { x: 1 },
      answeredBy: "ann",
      boundName: "mcp__s__a",
      toolHash: "hash_a",
      // Of what the person wrote: nothing else runs.
      digest: argumentsDigest({ x: 1 }),
    });
    expect(decisions["call_b"]).toMatchObject({
      type: "reject",
      message: "not now",
      digest: "digest_b",
    });
  });
});

describe("the digest of arguments", () => {
  it("does not depend on the order of keys, and on everything else", () => {
    expect(argumentsDigest({ a: 1, b: { c: 2, d: 3 } })).toBe(
      argumentsDigest({ b: { d: 3, c: 2 }, a: 1 }),
    );
    expect(argumentsDigest({ a: 1 })).not.toBe(argumentsDigest({ a: "1" }));
    expect(argumentsDigest([1, 2])).not.toBe(argumentsDigest([2, 1]));
    expect(argumentsDigest(undefined)).toBe(argumentsDigest(undefined));
  });
});
