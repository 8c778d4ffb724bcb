import { afterEach, describe, expect, it } from "@jest/globals";
import { AIMessage } from "@langchain/core/messages";

import { createAgent } from "langchain";

import { mcpMiddleware, type McpHub } from "../../src/index.js";
import { calling, scripted } from "../support/agents.js";
import { converse, FACES } from "../support/conversation.js";
import { policyServer, type PolicyServer } from "../support/policyServer.js";
import { serving } from "../support/serving.js";

const { serve, hubOf, closeAll } = serving();
afterEach(closeAll);

/** An answer as a client parses it when the arguments of some calls are no JSON. */
const parsed = (
  invalid: readonly { name?: string; args?: string; id?: string }[],
  calls: readonly { name: string; args: Record<string, unknown>; id?: string }[] = [],
): AIMessage =>
  new AIMessage({
    content: "",
    tool_calls: calls.map((call) => ({ type: "tool_call" as const, ...call })),
    invalid_tool_calls: invalid.map((call) => ({
      type: "invalid_tool_call" as const,
      error: "Malformed args.",
      ...call,
    })),
  });

describe.each(FACES)("a broken call in %s", (face) => {
  const use = async (run: (server: PolicyServer) => Promise<void>): Promise<void> => {
    await using server = await policyServer({ policy: { ask: ["mcp:call:wiki:put_*"] } });
    await run(server);
  };
  const GET = "mcp__wiki__get_page";
  const PUT = "mcp__wiki__put_page";

  it("alone is answered with the reason, and the model goes on", () =>
    use(async ({ hub, ran }) => {
      const broken = parsed([{ name: GET, args: '{"page": "x', id: "a" }]);
      const { say } = converse(hub, [broken, "sorry"], { face });
      const { answers, last, calls } = await say();
      expect(answers["a"]).toMatchObject({ status: "error" });
      expect(answers["a"]!.text).toMatch(
        /mcp__wiki__get_page was not run: its arguments are not valid JSON/,
      );
      expect([last, calls.length, ran]).toEqual(["sorry", 2, {}]);
    }));

  it("beside a good one does not keep that from running", () =>
    use(async ({ hub, ran }) => {
      const broken = parsed(
        [{ name: GET, args: "{page", id: "a" }],
        [{ name: GET, args: { page: "x" }, id: "b" }],
      );
      const { answers, last } = await converse(hub, [broken, "done"], { face }).say();
      expect([answers["a"]!.status, answers["b"]!.status]).toEqual(["error", "success"]);
      expect([last, ran]).toEqual(["done", { get_page: 1 }]);
    }));

  it("is answered again when a cache gives the same answer to another thread", () =>
    use(async ({ hub, ran }) => {
      const broken = parsed([{ name: GET, args: "{page", id: "a" }]);
      await converse(hub, [broken, "sorry"], { face }).say();
      const { answers, last } = await converse(hub, [broken, "sorry"], { face }).say();
      expect([answers["a"]!.status, last, ran]).toEqual(["error", "sorry", {}]);
    }));

  it("of a tool that is asked is not asked about", () =>
    use(async ({ hub, ran }) => {
      const broken = parsed([{ name: PUT, args: "{{", id: "a" }]);
      const { asked, answers } = await converse(hub, [broken, "done"], { face }).say();
      expect([asked, answers["a"]!.status, ran]).toEqual([undefined, "error", {}]);
    }));

  it("with empty arguments is a call without arguments", () =>
    use(async ({ hub, ran }) => {
      const { answers } = await converse(
        hub,
        [parsed([{ name: GET, args: " ", id: "a" }]), "done"],
        {
          face,
        },
      ).say();
      expect([answers["a"]!.status, ran]).toEqual(["success", { get_page: 1 }]);
    }));

  it("without an id gets one, and is asked about", () =>
    use(async ({ hub, ran }) => {
      const call = parsed([], [{ name: PUT, args: { page: "x" } }]);
      const { say } = converse(hub, [call, "done"], { face });
      const { asked, last } = await say("go", {
        decide: ({ actionRequests }) => actionRequests.map(() => ({ type: "approve" })),
      });
      expect(asked?.actionRequests).toHaveLength(1);
      expect([last, ran]).toEqual(["done", { put_page: 1 }]);
    }));
});

describe("a call that does not fit the schema", () => {
  const FILTER = {
    type: "object",
    properties: { filter: { $ref: "#/$defs/Filter" }, after: { type: "string" } },
    required: ["filter"],
    $defs: {
      Filter: {
        type: "object",
        properties: { state: { $ref: "#/$defs/State" }, limit: { type: "integer" } },
        required: ["state"],
      },
      State: { enum: ["open", "closed"] },
    },
  };

  async function hub(inputSchema: object): Promise<McpHub> {
    const tools = [{ name: "list_issues", description: "Lists issues", inputSchema }];
    const http = await serve({ tools });
    return hubOf({ t: { url: http.url } }, { limits: { autoDeferChars: 0 } });
  }

  it("of a tool that is not bound shows the resolved schema, and binds the tool", async () => {
    const wrong = calling({
      name: "mcp__t__list_issues",
      args: { filter: { state: "new" } },
      id: "a",
    });
    const { answers, calls } = await converse(await hub(FILTER), [wrong, "done"]).say();
    expect(answers["a"]!.text).toContain(
      'Expected: filter: object { state: one of ["open","closed"] (required), limit: integer } (required), after: string.',
    );
    expect(calls[0]!.tools).not.toContain("mcp__t__list_issues");
    expect(calls[1]!.tools).toContain("mcp__t__list_issues");
  });

  it("but says the same in the way of models runs, as the server wants it", async () => {
    const sent = { filter: { state: "open", limit: "10" }, after: null };
    const opened = await hub(FILTER);
    const { content } = await opened.callTool("t", "list_issues", sent);
    expect(content).toContain('{"filter":{"state":"open","limit":10}}');
  });

  it("of a closed object names the argument that is not known", async () => {
    const closed = { type: "object", properties: { a: {} }, additionalProperties: false };
    await expect((await hub(closed)).callTool("t", "list_issues", { b: 1 })).rejects.toThrow(
      /b: is not an argument of this tool/,
    );
  });
});

describe("whether tools are deferred", () => {
  const Node = {
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 30 }, (_, n) => [
        `field_${n}`,
        { type: "string", description: "Some text" },
      ]),
    ),
  };
  const inputSchema = {
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 30 }, (_, n) => [`part_${n}`, { $ref: "#/$defs/Node" }]),
    ),
    $defs: { Node },
    "x-internal": "x".repeat(20_000),
  };

  it.each([
    ["ChatGoogleGenerativeAI", ["search_mcp_tools"]],
    ["ChatOpenAI", ["mcp__t__one", "mcp__t__two"]],
  ])("is decided by what is sent to %s", async (className, expected) => {
    const tools = ["one", "two"].map((name) => ({ name, description: name, inputSchema }));
    const http = await serve({ tools });
    const opened = hubOf({ t: { url: http.url } }, { limits: { autoDeferChars: 10_000 } });
    const model = scripted("ok", "ok");
    Object.defineProperty(model, "lc_id", { get: () => ["langchain", className] });
    const bound: string[][] = [];
    const bindTools = model.bindTools.bind(model);
    model.bindTools = (given) => {
      bound.push(given.map((tool) => String((tool as { name?: unknown }).name)));
      return bindTools(given);
    };
    const agent = createAgent({ model, middleware: [mcpMiddleware(opened)] });
    await agent.invoke({ messages: "go" });
    expect(bound.at(-1)).toEqual(expected);
  });
});
