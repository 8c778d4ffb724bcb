import { jest } from "@jest/globals";

import { Gate, type GateCall } from "../../../src/call/gate.js";
import { Permits } from "../../../src/call/permits.js";
import type { RawCallResult } from "../../../src/call/result.js";
import { Catalog } from "../../../src/catalog/catalog.js";
import { readTool, type RawTool } from "../../../src/catalog/toolEntry.js";
import { ToolFingerprints } from "../../../src/catalog/toolFingerprints.js";
import type { McpHubOptions } from "../../../src/config/hubOptions.js";
import type { PolicyFunction, PolicyOptions } from "../../../src/config/policyOptions.js";
import { resolveHubOptions } from "../../../src/config/settings.js";
import type { ServerRequest } from "../../../src/connect/requests.js";
import { HubEvents, type McpEvents } from "../../../src/events.js";
import { argumentsDigest } from "../../../src/policy/operation.js";
import { Policy } from "../../../src/policy/policy.js";
import { atOnce } from "../../../src/text/slices.js";
import type { McpAsked, McpDecisions } from "../../../src/state.js";

const SCHEMA = {
  type: "object",
  properties: { page: { type: "integer" }, lines: { type: "array" } },
  required: ["page"],
};
const put = (description = "Writes a page", more: object = {}): object => ({
  name: "put",
  description,
  inputSchema: SCHEMA,
  ...more,
});

interface GateOptions extends Omit<Partial<McpHubOptions>, "mcpServers"> {
  readonly server?: object;
  readonly tools?: readonly object[];
  /** Runs when a request waits to be sent, before the last look at tool and policy. */
  readonly whileWaiting?: (attempt: number) => void;
  readonly answer?: RawCallResult;
  /** What happens about a changed tool. */
  readonly onChange?: "note" | "ask";
}

/** A gate to a server `s`, of which only the connection is a fake. */
function gateOn({
  server,
  tools = [put()],
  whileWaiting,
  answer = {},
  onChange = "note",
  ...options
}: GateOptions = {}) {
  const log: string[] = [];
  const logged: PolicyFunction = (request) =>
    void log.push(`policy ${JSON.stringify((request as { arguments?: unknown }).arguments)}`);
  const settings = resolveHubOptions({
    warnings: "silent",
    ...options,
    mcpServers: { s: { url: "https://s.example/mcp", ...server } },
  });
  const events = new HubEvents("silent");
  const warnings: string[] = [];
  events.on("warning", ({ code }) => warnings.push(code));
  const catalog = new Catalog(settings);
  const fingerprints = new ToolFingerprints({ onChange, store: undefined }, undefined, events);
  const ready = fingerprints.load("s");
  const offer = (offered: readonly object[], isRemembered = false): void => {
    const read = atOnce(fingerprints.check("s", offered.map(rawTool)));
    catalog.setServer(
      "s",
      { tools: read, instructions: undefined, serverInfo: undefined },
      isRemembered,
    );
  };
  let policy = new Policy(settings, settings.policy ?? logged);
  const sent: ServerRequest[] = [];
  let attempts = 0;
  const connection = {
    settings: settings.servers.get("s")!,
    peer: async () => {
      log.push("connect");
      offer(tools);
    },
    send: async (request: ServerRequest) => {
      attempts += 1;
      whileWaiting?.(attempts);
      request.beforeSend?.();
      log.push(`send ${JSON.stringify(request.params["arguments"])}`);
      sent.push(request);
      return answer;
    },
  };
  const permits = new Permits(() => policy, events, fingerprints);
  const pool = { connection: () => connection };
  const gate = new Gate(settings, catalog, permits, events, pool as never);
  return {
    gate,
    log,
    logged,
    sent,
    warnings,
    events,
    catalog,
    permits,
    connection,
    offer,
    attempts: () => attempts,
    setPolicy: (next: PolicyOptions | undefined) => void (policy = new Policy(settings, next)),
    /** Calls `put` of a server that is listed. */
    call: async (args: unknown = { page: 1 }, more: Partial<GateCall> = {}) => {
      await ready;
      if (catalog.server("s") === undefined) offer(tools);
      return gate.call({ serverName: "s", toolName: "put", arguments: args, ...more });
    },
  };
}

function rawTool(tool: object): RawTool {
  const reading = readTool(tool);
  if (reading.kind === "dropped") throw new Error(reading.problem);
  return reading.tool;
}

/** A person who gives this answer; `first` happens before it. */
function person(answer: Partial<McpDecisions[string]> = {}, first: () => void = () => undefined) {
  return async (asked: McpAsked): Promise<McpDecisions> => {
    first();
    const [id, { boundName, toolHash, digest }] = Object.entries(asked)[0]!;
    return { [id]: { boundName, toolHash, digest, type: "approve", ...answer } };
  };
}

const edited = (args: Record<string, unknown>) =>
  ({ type: "edit", editedArguments: args, digest: argumentsDigest(args) }) as const;
const ASK: PolicyOptions = { ask: ["mcp:call:s:put"] };

afterEach(() => {
  jest.useRealTimers();
});

describe("a call", () => {
  it("looks the tool up, repairs the arguments, asks the policy about these, checks, and sends them", async () => {
    const { gate, log, sent } = gateOn();
    await gate.call({ serverName: "s", toolName: "put", arguments: '{"page":7}' });
    // The tool list came in the meantime, so the policy is asked once more right before sending.
    expect(log).toEqual(["connect", 'policy {"page":7}', 'policy {"page":7}', 'send {"page":7}']);
    expect(sent[0]).toMatchObject({
      method: "tools/call",
      params: { name: "put", arguments: { page: 7 } },
      toolName: "put",
    });
  });

  it("is not sent when its arguments do not fit, which is said after the policy decided", async () => {
    const { call, log } = gateOn();
    await expect(call({ page: "x" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENTS",
      toolName: "put",
    });
    expect(log).toEqual(['policy {"page":"x"}']);
  });

  it("that is denied learns nothing about its arguments, and runs no hook", async () => {
    const hook = jest.fn();
    const { call, sent } = gateOn({ policy: { deny: ["mcp:call:s:put"] }, beforeToolCall: hook });
    await expect(call({ page: "x" })).rejects.toMatchObject({ code: "POLICY_DENIED" });
    expect([hook.mock.calls, sent]).toEqual([[], []]);
  });

  it("connects a server of which only a remembered list is known", async () => {
    const { gate, offer, log } = gateOn();
    offer([put()], true);
    await gate.call({ serverName: "s", toolName: "put", arguments: { page: 1 } });
    expect(log[0]).toBe("connect");
  });

  it("does not connect for a tool that is listed", async () => {
    const { call, log } = gateOn();
    await call();
    expect(log).not.toContain("connect");
  });

  it("ends with the abort reason while it waits for the server", async () => {
    const { gate, connection } = gateOn();
    connection.peer = () => new Promise<never>(() => undefined);
    const abort = new AbortController();
    const calling = gate.call({
      serverName: "s",
      toolName: "put",
      arguments: {},
      signal: abort.signal,
    });
    abort.abort(new Error("stopped"));
    await expect(calling).rejects.toThrow("stopped");
  });

  it.each([
    ["a tool that may run twice by configuration", { idempotent: ["put"] }, {}, true],
    [
      "a read-only tool of a trusted server",
      { trustAnnotations: true },
      { readOnlyHint: true },
      true,
    ],
    [
      "an idempotent tool of a trusted server",
      { trustAnnotations: true },
      { idempotentHint: true },
      true,
    ],
    [
      "a destructive tool of a trusted server",
      { trustAnnotations: true },
      { destructiveHint: true },
      false,
    ],
    ["a tool whose server is not trusted", {}, { readOnlyHint: true, idempotentHint: true }, false],
  ])("of %s is repeatable: %s", async (_name, server, annotations, isRepeatable) => {
    const { call, sent } = gateOn({ server, tools: [put("Writes", { annotations })] });
    await call();
    expect(sent[0]!.isRepeatable).toBe(isRepeatable);
  });

  it("is reported with its outcome, or as an error", async () => {
    const { call, events } = gateOn({
      answer: { content: [{ type: "text", text: "no" }], isError: true },
    });
    const told: McpEvents["call"][] = [];
    events.on("call", (event) => told.push(event));
    const outcome = await call({ page: 1 }, { toolCallId: "1", origin: { threadId: "t" } });
    await expect(call({})).rejects.toThrow();
    expect(told).toMatchObject([
      { status: "error", chars: outcome.content.length, toolCallId: "1", threadId: "t" },
      { status: "error", chars: 0 },
    ]);
    expect(outcome).toMatchObject({ status: "error", artifact: { isError: true } });
  });

  it("tells of the server's progress, by event and by onProgress", async () => {
    const onProgress = jest.fn();
    const { call, events, sent } = gateOn({ onProgress: onProgress });
    const told: unknown[] = [];
    events.on("progress", (event) => told.push(event));
    await call({ page: 1 }, { toolCallId: "1" });
    sent[0]!.onProgress!({ progress: 1, total: 2 });
    expect(told).toMatchObject([
      { serverName: "s", toolName: "put", toolCallId: "1", progress: 1, total: 2 },
    ]);
    expect(onProgress).toHaveBeenCalledTimes(1);
  });
});

describe("a tool that is not there", () => {
  const unknown = { serverName: "s", toolName: "nope", arguments: {} };

  it("is reported with the tools that the caller may know", async () => {
    const { gate, offer } = gateOn({ tools: [], policy: { deny: ["mcp:call:s:secret"] } });
    offer([put(), put("", { name: "secret" })]);
    const error = await gate.call(unknown).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({
      code: "NOT_FOUND",
      message: 'Server "s" has no tool "nope". It has 1: put.',
    });
  });

  it("is reported as withheld when it changed", async () => {
    const { gate, permits, offer } = gateOn();
    offer([put()]);
    jest.spyOn(permits, "isWithheld").mockReturnValue(true);
    await expect(gate.call(unknown)).rejects.toThrow('hub.acceptTools("s", ["nope"]) accepts it');
  });
});

describe("a call that a person has to approve", () => {
  it("is asked about, and decided again with the answer", async () => {
    const { call, log, logged, setPolicy } = gateOn();
    setPolicy((request, context) => {
      logged(request, context);
      return "ask";
    });
    await call('{"page":1}', { ask: person({}, () => log.push("ask")) });
    expect(log).toEqual(['policy {"page":1}', "ask", 'policy {"page":1}', 'send {"page":1}']);
  });

  it("is not asked about while its arguments do not fit", async () => {
    const ask = jest.fn(person());
    const { call } = gateOn({ policy: ASK });
    await expect(call({}, { ask })).rejects.toMatchObject({ code: "INVALID_ARGUMENTS" });
    expect(ask).not.toHaveBeenCalled();
  });

  it("is not sent when nobody can be asked, or the person rejects it", async () => {
    const { call, sent } = gateOn({ policy: ASK });
    await expect(call()).rejects.toMatchObject({ code: "APPROVAL_REQUIRED" });
    await expect(call({ page: 1 }, { ask: person({ type: "reject" }) })).rejects.toMatchObject({
      code: "APPROVAL_REFUSED",
    });
    expect(sent).toEqual([]);
  });

  it("is not sent when the policy denies it by the time of the answer", async () => {
    const { call, sent, setPolicy } = gateOn({ policy: ASK });
    const ask = person({}, () => setPolicy({ deny: ["mcp:call:s:put"] }));
    await expect(call({ page: 1 }, { ask })).rejects.toMatchObject({ code: "POLICY_DENIED" });
    expect(sent).toEqual([]);
  });

  it("is not sent when the tool is another one by the time of the answer", async () => {
    const { call, sent, offer } = gateOn({ policy: ASK });
    const ask = person({}, () => offer([put("Sends a page to everyone")]));
    await expect(call({ page: 1 }, { ask })).rejects.toMatchObject({ code: "APPROVAL_REQUIRED" });
    expect(sent).toEqual([]);
  });

  it("runs edited arguments, and says so before the result", async () => {
    const { call, sent } = gateOn({
      policy: ASK,
      answer: { content: [{ type: "text", text: "done" }] },
    });
    const { content } = await call({ page: 1 }, { ask: person(edited({ page: 2 })) });
    expect(sent.map(({ params }) => params["arguments"])).toEqual([{ page: 2 }]);
    expect(content).toMatch(
      /^\[A person changed the arguments of this call\. It ran with: {"page":2}\]\n<mcp_response /,
    );
  });

  it("says nothing of a change when the arguments were approved as they are", async () => {
    const { call } = gateOn({ policy: ASK });
    expect((await call({ page: 1 }, { ask: person() })).content).not.toContain("A person changed");
  });

  it("repairs, checks and decides about edited arguments like any others", async () => {
    const policy: PolicyOptions = ({ arguments: args }) =>
      (args as { page?: unknown } | undefined)?.page === 13 ? "deny" : "ask";
    const { call, sent } = gateOn({ policy });
    await call({ page: 1 }, { ask: person(edited({ page: 2, lines: "[3]" })) });
    expect(sent[0]!.params["arguments"]).toEqual({ page: 2, lines: [3] });
    await expect(call({ page: 1 }, { ask: person(edited({ page: 13 })) })).rejects.toMatchObject({
      code: "POLICY_DENIED",
    });
    await expect(call({ page: 1 }, { ask: person(edited({})) })).rejects.toMatchObject({
      code: "INVALID_ARGUMENTS",
    });
    expect(sent).toHaveLength(1);
  });

  it("accepts a changed tool with the call that is sent, not with one that is stale", async () => {
    let isChanging = false;
    const { call, offer, permits, sent } = gateOn({
      onChange: "ask",
      whileWaiting: () => {
        if (isChanging) offer([put("Changed once more")]);
      },
    });
    await call();
    offer([put("Changed")]);
    expect(permits.isWithheld("s", "put")).toBe(true);
    isChanging = true;
    await expect(call({ page: 1 }, { ask: person() })).rejects.toMatchObject({
      code: "APPROVAL_REQUIRED",
    });
    expect([permits.isWithheld("s", "put"), sent.length]).toEqual([true, 1]);
    isChanging = false;
    await call({ page: 1 }, { ask: person() });
    expect([permits.isWithheld("s", "put"), sent.length]).toEqual([false, 2]);
  });
});

describe("what changes while a call waits to be sent", () => {
  it("a tool that changed: the call is repaired and decided again, for the tool as it is now", async () => {
    const inputSchema = {
      ...SCHEMA,
      properties: { ...SCHEMA.properties, text: { default: "x" } },
      required: ["page", "text"],
    };
    const { call, offer, log } = gateOn({
      whileWaiting: (attempt) => {
        if (attempt === 1) offer([put("Another", { inputSchema })]);
      },
    });
    await call();
    expect(log).toEqual([
      'policy {"page":1}',
      'policy {"page":1,"text":"x"}',
      'send {"page":1,"text":"x"}',
    ]);
  });

  it("a policy that became stricter: nothing is sent", async () => {
    const { call, sent, setPolicy } = gateOn({
      whileWaiting: () => setPolicy({ deny: ["mcp:call:s:put"] }),
    });
    await expect(call()).rejects.toMatchObject({ code: "POLICY_DENIED" });
    expect(sent).toEqual([]);
  });

  it("a policy that asks by then: a person is asked", async () => {
    const { call, log, setPolicy } = gateOn({
      whileWaiting: (attempt) => attempt === 1 && setPolicy(ASK),
    });
    await call({ page: 1 }, { ask: person({}, () => log.push("ask")) });
    expect(log.slice(-2)).toEqual(["ask", 'send {"page":1}']);
  });

  it("another tool, or a policy that says the same: the call is sent at once", async () => {
    const { call, attempts, offer, setPolicy } = gateOn({
      whileWaiting: () => {
        offer([put(), put("Reads", { name: "get" })]);
        setPolicy({ deny: ["mcp:call:s:get"] });
      },
    });
    await call();
    expect(attempts()).toBe(1);
  });

  it("a tool that keeps changing: the call is decided again three times, and given up", async () => {
    const { call, sent, attempts, offer } = gateOn({
      whileWaiting: (attempt) => offer([put(`Changed ${attempt}`)]),
    });
    await expect(call()).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: 'Tool "put" keeps changing.',
    });
    expect([attempts(), sent]).toEqual([4, []]);
  });
});

describe("beforeToolCall", () => {
  const stamping = ({ args }: { args: object }): object => ({
    args: JSON.stringify({ ...args, page: 99 }),
  });

  it("changes the arguments, about which the policy decides again", async () => {
    const { call, log } = gateOn({ beforeToolCall: stamping });
    await call({ page: 1 });
    expect(log).toEqual(['policy {"page":1}', 'policy {"page":99}', 'send {"page":99}']);
  });

  it("cannot loosen the policy: the stricter decision holds", async () => {
    for (const forbidden of [1, 99]) {
      const policy: PolicyOptions = ({ arguments: args }) =>
        (args as { page?: unknown } | undefined)?.page === forbidden ? "deny" : undefined;
      const { call, sent } = gateOn({ policy, beforeToolCall: stamping });
      await expect(call({ page: 1 })).rejects.toMatchObject({ code: "POLICY_DENIED" });
      expect(sent).toEqual([]);
    }
  });

  it.each([
    ["http", { url: "https://s.example/mcp" }, []],
    ["sse", { url: "https://s.example/sse", transport: "sse" }, []],
    ["stdio", { url: undefined, command: "x" }, ["CALLBACK_FAILED"]],
  ])(
    "gives headers, with a warning where they have no effect: %s",
    async (_name, server, expected) => {
      const headers = { "x-user": "ann" };
      const { call, sent, warnings } = gateOn({ server, beforeToolCall: () => ({ headers }) });
      await call();
      expect([sent[0]!.headers, warnings]).toEqual([headers, expected]);
    },
  );

  it("without headers causes no warning", async () => {
    const { call, warnings } = gateOn({
      server: { url: undefined, command: "x" },
      beforeToolCall: stamping,
    });
    await call();
    expect(warnings).toEqual([]);
  });
});

describe("a result", () => {
  const LARGE = {
    structuredContent: { text: "x".repeat(500) },
    content: [{ type: "text", text: "short" }],
  };
  const storing = (mset: (pairs: [string, unknown][]) => Promise<void>): GateOptions => ({
    answer: LARGE,
    limits: { maxArtifactChars: 100 },
    resultStore: { mset, mget: async () => [] } as never,
  });

  it("that is too large goes to the result store whole, under the key in the artifact", async () => {
    const stored: [string, unknown][] = [];
    const { call } = gateOn(storing(async (pairs) => void stored.push(...pairs)));
    const { artifact, content } = await call();
    expect(stored).toEqual([
      [artifact.truncated!.storeKey, { serverName: "s", toolName: "put", ...LARGE }],
    ]);
    expect(content).toContain("is kept outside of this conversation");
  });

  it("that fits is not stored", async () => {
    const mset = jest.fn(async () => undefined);
    await gateOn({ ...storing(mset), limits: { maxArtifactChars: 10_000 } }).call();
    expect(mset).not.toHaveBeenCalled();
  });

  it("names no key when the store fails, with a warning", async () => {
    const { call, warnings } = gateOn(storing(() => Promise.reject(new Error("full"))));
    const { artifact, content } = await call();
    expect(artifact.truncated).not.toHaveProperty("storeKey");
    expect([content.includes("could not be kept"), warnings]).toEqual([
      true,
      ["RESULT_NOT_STORED"],
    ]);
  });

  it("waits at most ten seconds for the store", async () => {
    jest.useFakeTimers();
    const { call, warnings } = gateOn(storing(() => new Promise<never>(() => undefined)));
    let isDone = false;
    const calling = call().then(() => (isDone = true));
    await jest.advanceTimersByTimeAsync(9_999);
    expect(isDone).toBe(false);
    await jest.advanceTimersByTimeAsync(1);
    await calling;
    expect(warnings).toEqual(["RESULT_NOT_STORED"]);
  });

  it("is replaced by what afterToolCall returns", async () => {
    const { call } = gateOn({
      afterToolCall: () => "mine",
      answer: { content: [{ type: "text", text: "theirs" }] },
    });
    expect((await call()).content).toBe("mine");
  });
});
