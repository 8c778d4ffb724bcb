import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createAgent, type AgentMiddleware } from "langchain";

import { createMcpGraph } from "../../src/graph.js";
import { mcpMiddleware } from "../../src/index.js";
import { createMcpTestHub, recordMcpServers, type McpRecording } from "../../src/testing.js";
import { answersOf, calling, scripted } from "../support/agents.js";
import { serving } from "../support/serving.js";

const { serve, hubOf, closeAll } = serving();

const TRACKER: McpRecording = {
  tools: [
    {
      name: "create_issue",
      description: "Creates an issue",
      inputSchema: {
        type: "object",
        properties: { title: { type: "string" } },
        required: ["title"],
      },
    },
    { name: "list_issues", inputSchema: { type: "object" } },
  ],
  instructions: "Titles are short.",
};

afterAll(closeAll);

describe("a recording of real servers", () => {
  let recorded: Record<string, McpRecording>;

  beforeAll(async () => {
    const everything = {
      command: "node",
      args: ["node_modules/@modelcontextprotocol/server-everything/dist/index.js"],
    };
    const { url } = await serve();
    recorded = await recordMcpServers(hubOf({ everything, plain: { url } }));
  });

  it("is JSON, with everything that they offer and nothing else", () => {
    expect(recorded).toEqual(JSON.parse(JSON.stringify(recorded)));
    const { everything, plain } = recorded;
    expect(everything!.tools.map(({ name }) => name)).toContain("get-sum");
    expect(everything!.prompts!.length).toBeGreaterThan(2);
    expect(everything!.resources!.length).toBeGreaterThan(2);
    expect(plain).toMatchObject({ tools: [{ name: "look" }] });
    expect(Object.keys(plain!)).not.toContain("prompts");
  });

  it("makes a hub with the same tools, prompts and resources", async () => {
    const original = hubOf({
      everything: {
        command: "node",
        args: ["node_modules/@modelcontextprotocol/server-everything/dist/index.js"],
      },
    });
    await original.connect();
    await using test = createMcpTestHub({
      mcpServers: {
        everything: { recording: recorded["everything"]!, answers: { "get-sum": "The sum is 5." } },
      },
    });
    const names = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);
    expect(names(await test.hub.getTools())).toEqual(names(await original.getTools()));
    expect(names(await test.hub.listCommands())).toEqual(names(await original.listCommands()));
    expect(names(await test.hub.search("add two numbers"))).toEqual(
      names(await original.search("add two numbers")),
    );
    const { content } = await test.hub.callTool("everything", "get-sum", { a: 2, b: 3 });
    expect(content).toContain("The sum is 5.");
    expect(test.calls).toEqual([
      {
        kind: "tool",
        serverName: "everything",
        target: "get-sum",
        arguments: { a: 2, b: 3 },
        count: 1,
      },
    ]);
  });
});

describe("a test hub", () => {
  it("serves an agent: search, call, policy, wrong arguments; and records what reached the servers", async () => {
    await using test = createMcpTestHub({
      mcpServers: {
        tracker: {
          recording: TRACKER,
          answers: {
            create_issue: ({ arguments: { title }, count }) => `#${count} ${String(title)}`,
          },
          overrides: { list_issues: "deny" },
          defer: true,
        },
      },
    });
    const call = (id: string, name: string, args: Record<string, unknown> = {}) => ({
      id,
      name: `mcp__tracker__${name}`,
      args,
    });
    const model = scripted(
      calling({ id: "0", name: "search_mcp_tools", args: { query: "create issue" } }),
      calling(
        call("1", "create_issue", { title: "a" }),
        call("2", "create_issue"),
        call("3", "list_issues"),
      ),
      calling(call("4", "create_issue", { title: "b" })),
      "done",
    );
    const agent = createAgent({
      model,
      middleware: [mcpMiddleware(test.hub) as unknown as AgentMiddleware],
    });
    const answers = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect(answers["1"]!.text).toContain("#1 a");
    expect(answers["2"]!.status).toBe("error");
    expect(answers["3"]!.text).toContain("not available");
    expect(answers["4"]!.text).toContain("#2 b");
    expect(test.calls.map(({ arguments: args }) => args)).toEqual([{ title: "a" }, { title: "b" }]);
  });

  it("answers by value, result, error, function and sequence; a tool without an answer returns an error", async () => {
    const names = ["text", "result", "error", "throws", "sequence", "none"];
    const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }));
    await using test = createMcpTestHub({
      mcpServers: {
        s: {
          recording: { tools },
          answers: {
            text: "plain",
            result: { structuredContent: { a: 1 } },
            error: new Error("the disk is full"),
            throws: () => {
              throw new Error("on the floor");
            },
            sequence: ["one", () => "two"],
          },
        },
      },
      envelope: false,
    });
    const answer = async (name: string) => {
      const { content, status } = await test.hub.callTool("s", name);
      return `${status}: ${content}`;
    };
    expect(await answer("text")).toBe("success: plain");
    expect(await answer("result")).toContain('"a":1');
    expect(await answer("error")).toBe("error: the disk is full");
    expect(await answer("throws")).toBe("error: on the floor");
    expect([await answer("sequence"), await answer("sequence")]).toEqual([
      "success: one",
      "success: two",
    ]);
    expect(await answer("sequence")).toContain(
      'error: The script of "sequence" has 2 answers; this is call 3.',
    );
    expect(await answer("none")).toContain('error: No answer is scripted for "none"');
  });

  it("has prompts and resources", async () => {
    await using test = createMcpTestHub({
      mcpServers: {
        s: {
          recording: { tools: [], prompts: [{ name: "greet", arguments: [{ name: "who" }] }] },
          prompts: {
            greet: ({ arguments: { who } }) => `Say hello to ${String(who)}.`,
            broken: new Error("no such mood"),
          },
          resources: {
            "memo://a": "the memo",
            "memo://b": { mimeType: "text/markdown", text: "# b" },
          },
        },
      },
    });
    const model = scripted("hello");
    const graph = createMcpGraph(test.hub, { model });
    await graph.invoke({ messages: "/mcp__s__greet who=Ada" });
    const sent = JSON.stringify(model.calls[0]!.messages);
    expect(sent).toContain("Say hello to Ada");
    expect(await test.hub.readResource("s", "memo://b")).toMatchObject({
      contents: [{ uri: "memo://b", mimeType: "text/markdown", text: "# b" }],
    });
    await expect(test.hub.getPrompt("s", "broken")).rejects.toThrow("no such mood");
    await expect(test.hub.readResource("s", "memo://c")).rejects.toThrow("No answer is scripted");
    expect(test.calls.map(({ kind, target }) => [kind, target])).toContainEqual([
      "prompt",
      "greet",
    ]);
  });

  it("simulates a server that changes, fails and is restored", async () => {
    await using test = createMcpTestHub({
      mcpServers: { s: { recording: TRACKER, answers: { list_issues: "none" } } },
    });
    await test.hub.connect();
    await test.offer("s", { tools: [{ name: "list_issues", inputSchema: { type: "object" } }] });
    expect((await test.hub.getTools()).map(({ name }) => name)).toEqual(["mcp__s__list_issues"]);
    await test.fail("s");
    await expect(test.hub.callTool("s", "list_issues")).rejects.toMatchObject({
      name: "McpConnectionError",
    });
    await test.restore("s");
    expect((await test.hub.callTool("s", "list_issues")).content).toContain("none");
  });

  it("offers other prompts, resources and instructions; those of a failed server appear when it is restored", async () => {
    const prompt = (name: string) => [{ name }];
    await using test = createMcpTestHub({
      mcpServers: { s: { recording: { tools: [], prompts: prompt("p") } } },
    });
    await test.hub.connect();
    const names = async () => (await test.hub.listCommands()).map(({ name }) => name);
    expect(await names()).toEqual(["mcp__s__p"]);
    await test.offer("s", { tools: [], prompts: prompt("q") });
    expect(await names()).toEqual(["mcp__s__q"]);
    await test.offer("s", {
      tools: [],
      resources: [{ uri: "memo://a", name: "a" }],
      instructions: "Be kind.",
    });
    expect(await names()).toEqual([]);
    expect(await test.hub.listResources("s")).toHaveLength(1);
    expect(test.hub.snapshot("s")!.instructions).toBe("Be kind.");
    await test.fail("s");
    await test.offer("s", TRACKER);
    await test.restore("s");
    expect((await test.hub.getTools()).map(({ name }) => name)).toEqual([
      "mcp__s__create_issue",
      "mcp__s__list_issues",
    ]);
    await expect(test.offer("s", {} as never)).rejects.toThrow('"recording" needs "tools"');
  });

  it("says what is wrong with an answer", async () => {
    const tools = ["bare", "blocks", "nothing"].map((name) => ({
      name,
      inputSchema: { type: "object" },
    }));
    await using test = createMcpTestHub({
      mcpServers: {
        s: {
          recording: { tools },
          answers: {
            bare: { id: 7 },
            blocks: [{ type: "text", text: "hello" }],
            nothing: () => undefined as never,
          },
          prompts: { greet: () => undefined as never },
        },
      },
    });
    const said = async (name: string) => (await test.hub.callTool("s", name)).content;
    expect(await said("bare")).toContain(
      "A result has one of content, structuredContent, isError, _meta; the script has id.",
    );
    expect(await said("blocks")).toContain(
      "answers with a content block. Give text, an Error, or a result such as",
    );
    expect(await said("nothing")).toContain("answers with undefined");
    await expect(test.hub.getPrompt("s", "greet")).rejects.toThrow("answers with undefined");
  });

  it("says what is wrong with its options", () => {
    for (const options of [undefined, {}, { mcpServers: 5 }]) {
      expect(() => createMcpTestHub(options as never)).toThrow(
        'createMcpTestHub: give "mcpServers"',
      );
    }
    const make = (entry: object) => () => createMcpTestHub({ mcpServers: { s: entry as never } });
    expect(make(null as never)).toThrow('Test server "s": "recording" needs "tools"');
    expect(make({ recording: { tools: [null] } })).toThrow('"recording" needs "tools"');
    expect(make({})).toThrow('Test server "s": "recording" needs "tools"');
    expect(make({ recording: TRACKER, answers: { create_isue: "x" } })).toThrow(
      'did you mean "create_issue"?',
    );
    expect(make({ recording: TRACKER, answer: {} })).toThrow("unknown option");
    expect(make({ recording: TRACKER, command: "node" })).toThrow("not both");
  });
});
