import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";

import { McpHub, mcpMiddleware, previewContext, type McpWrapOptions } from "../../src/index.js";
import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";
import { answersOf, calling, scripted, spyMiddleware } from "../support/agents.js";
import { stdioFixture, until } from "../support/servers.js";

const WAREHOUSE_TOOLS = 60;

/** The same servers, reached in both ways. `hub` is what `mcpMiddleware` gets. */
interface Source {
  readonly hub: McpHub;
  readonly close: () => Promise<void>;
}

const OPTIONS: McpWrapOptions = {
  warnings: "silent",
  timeouts: { startupDeadlineMs: 20_000, searchWaitMs: 20_000 },
};

async function managed(servers: Record<string, object>): Promise<Source> {
  const hub = new McpHub({ mcpServers: servers, ...OPTIONS });
  return { hub, close: () => hub.close() };
}

async function wrapped(servers: Record<string, object>): Promise<Source> {
  const client = new MultiServerMCPClient({
    mcpServers: servers as never,
    onConnectionError: "ignore",
  });
  return { hub: McpHub.wrap(client, OPTIONS), close: () => client.close() };
}

describe.each([
  ["a managed hub", managed],
  ["a wrapped MultiServerMCPClient", wrapped],
])("behaviour over %s", (_name, open) => {
  let http: HttpFixture;
  let source: Source;

  beforeAll(async () => {
    http = await serveHttp({ name: "warehouse", tools: WAREHOUSE_TOOLS, noBase: true });
    source = await open({
      tools: { ...stdioFixture({ instructions: "Be gentle." }), stderr: "ignore" },
      warehouse: { url: http.url },
    });
  });

  afterAll(async () => {
    await source.close();
    await http.close();
  });

  it("shows a listing within the budget as the last block of the system message and binds only the search tool", async () => {
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted("hello"),
      systemPrompt: "You are kind.",
      middleware: [mcpMiddleware(source.hub), middleware],
    });
    await agent.invoke({ messages: "hi" });
    expect(seen[0]!.tools).toEqual(["search_mcp_tools"]);
    expect(seen[0]!.blocks[0]).toBe("You are kind.");
    const listing = seen[0]!.blocks.at(-1)!;
    expect(listing).toMatch(/^\n\n<AVAILABLE_MCP_TOOLS>\n[\s\S]*<\/AVAILABLE_MCP_TOOLS>$/);
    expect(listing.length).toBeLessThanOrEqual(2_000);
    expect(listing).toContain("- mcp__tools__echo");
    expect(listing).toContain(`warehouse (${WAREHOUSE_TOOLS} tools)`);
    expect(listing).toContain("Instructions of server tools: Be gentle.");
  });

  it("starts the block without a leading newline when the agent has no prompt of its own", async () => {
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted("hello"),
      middleware: [mcpMiddleware(source.hub), middleware],
    });
    await agent.invoke({ messages: "hi" });
    expect(seen[0]!.blocks).toHaveLength(1);
    expect(seen[0]!.blocks[0]).toMatch(/^<AVAILABLE_MCP_TOOLS>/);
  });

  it("binds what a search found from the next step on, calls it and keeps the promotion in state", async () => {
    const { seen, middleware } = spyMiddleware();
    const model = scripted(
      calling({ name: "search_mcp_tools", args: { query: "give a text back" }, id: "s1" }),
      calling({ name: "mcp__tools__echo", args: { text: "hallo" }, id: "c1" }),
      "done",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub), middleware] });
    const result = await agent.invoke({ messages: "go" });
    expect(seen[1]!.tools.slice(0, 2)).toEqual(["search_mcp_tools", "mcp__tools__echo"]);
    const answers = answersOf(result.messages);
    expect(answers["s1"]!.text).toContain("mcp__tools__echo(text)");
    expect(answers["c1"]!.text).toBe(
      '<mcp_response server="tools" tool="echo" trust="untrusted">\nhallo\n</mcp_response>',
    );
    expect(answers["c1"]!.artifact).toMatchObject({
      serverName: "tools",
      toolName: "echo",
      isError: false,
      blocks: [],
    });
    expect(Object.keys(result.mcpActivation.promoted)).toContain("mcp__tools__echo");
    expect(result).not.toHaveProperty("_mcpSent");
  });

  it("runs a listed tool that is called without a search, and promotes it", async () => {
    const { seen, middleware } = spyMiddleware();
    const model = scripted(
      calling({ name: "mcp__warehouse__tool_0007", args: { query: "x" }, id: "c1" }),
      "done",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub), middleware] });
    const result = await agent.invoke({ messages: "go" });
    expect(answersOf(result.messages)["c1"]!.text).toContain('"called":"tool_0007"');
    expect(seen[1]!.tools).toEqual(["search_mcp_tools", "mcp__warehouse__tool_0007"]);
  });

  it("corrects a bare name that only one tool has, never guesses, and runs the other calls of the step", async () => {
    const model = scripted(
      calling(
        { name: "mcp__tools__echo", args: { text: "a" }, id: "valid" },
        { name: "tool_0003", args: { query: "b" }, id: "bare" },
        { name: "mcp__tools__ecko", args: { text: "c" }, id: "invented" },
        { name: "no_such_tool", args: {}, id: "foreign" },
      ),
      "done",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub)] });
    const answers = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect(answers["valid"]!.status).toBe("success");
    expect(answers["bare"]!).toMatchObject({ status: "success", name: "tool_0003" });
    expect(answers["bare"]!.text).toContain('"called":"tool_0003"');
    expect(answers["invented"]!.status).toBe("error");
    expect(answers["invented"]!.text).toContain("Similar tools: mcp__tools__echo");
    expect(answers["foreign"]!.status).toBe("error");
    expect(answers["foreign"]!.text).not.toContain("mcp__");
  });

  it("turns isError, refusals, wrong arguments and large results into messages and keeps going", async () => {
    const model = scripted(
      calling(
        { name: "mcp__tools__fail", args: {}, id: "isError" },
        { name: "mcp__tools__rpc_error", args: {}, id: "rpc" },
        { name: "mcp__tools__echo", args: { wrong: 1 }, id: "arguments" },
        { name: "mcp__tools__big", args: { n: 2_000_000 }, id: "big" },
        { name: "mcp__tools__echo", args: { text: "fine" }, id: "fine" },
      ),
      "done",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub)] });
    const result = await agent.invoke({ messages: "go" });
    const answers = answersOf(result.messages);
    expect(answers["isError"]).toMatchObject({
      status: "error",
      artifact: { isError: true, structuredContent: { code: 28, retry_after: 5 } },
    });
    expect(answers["isError"]!.text).toContain("the disk is full");
    expect(answers["rpc"]!.status).toBe("error");
    expect(answers["rpc"]!.text).toContain(
      'Server "tools" refused the call of mcp__tools__rpc_error',
    );
    expect(answers["rpc"]!.text).toContain("bad params here");
    expect(answers["arguments"]!.status).toBe("error");
    expect(answers["arguments"]!.text).toContain("text: string (required)");
    expect(answers["big"]!.text.length).toBeLessThanOrEqual(100_000 + 200);
    expect(answers["big"]!.text).toContain("2000000 characters in all");
    expect(answers["big"]!.artifact).toMatchObject({
      truncated: { totalChars: expect.any(Number) },
    });
    expect(answers["fine"]!.status).toBe("success");
    expect(result.messages.at(-1)!.text).toBe("done");
  });

  it("answers a search for one server, for all servers, without matches, and with several queries", async () => {
    const model = scripted(
      calling(
        { name: "search_mcp_tools", args: { server: "tools" }, id: "server" },
        { name: "search_mcp_tools", args: {}, id: "servers" },
        { name: "search_mcp_tools", args: { query: "send a fax to the moon" }, id: "nothing" },
        {
          name: "search_mcp_tools",
          args: { queries: ["tool_0042", "mcp__tools__echo"], limit: 1 },
          id: "several",
        },
        { name: "search_mcp_tools", args: { query: "echo", server: "warehouse" }, id: "filtered" },
        { name: "search_mcp_tools", args: { query: "echo", server: "nowhere" }, id: "unknown" },
      ),
      "done",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub)] });
    const result = await agent.invoke({ messages: "go" });
    const answers = answersOf(result.messages);
    expect(answers["server"]!.text).toContain("- mcp__tools__echo: Gives the text back");
    expect(answers["servers"]!.text).toContain(`- warehouse (${WAREHOUSE_TOOLS} tools)`);
    expect(answers["nothing"]!.text).toContain('Nothing fits "send a fax to the moon"');
    expect(answers["several"]!.artifact).toEqual({
      matches: ["mcp__warehouse__tool_0042", "mcp__tools__echo"],
    });
    expect(answers["filtered"]!.text).not.toContain("mcp__tools__echo");
    expect(answers["unknown"]!.text).toContain('no server "nowhere". Servers: tools, warehouse');
  });

  it("keeps the tool order a prefix of the next step's and merges two parallel searches", async () => {
    const { seen, middleware } = spyMiddleware();
    const model = scripted(
      calling(
        { name: "search_mcp_tools", args: { query: "tool_0005", limit: 1 }, id: "a" },
        { name: "search_mcp_tools", args: { query: "tool_0001", limit: 1 }, id: "b" },
      ),
      calling({ name: "search_mcp_tools", args: { query: "mcp__tools__echo", limit: 1 }, id: "c" }),
      calling({ name: "mcp__warehouse__tool_0001", args: { query: "q" }, id: "d" }),
      "done",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub), middleware] });
    await agent.invoke({ messages: "go" });
    expect(seen.at(-1)!.tools).toEqual([
      "search_mcp_tools",
      "mcp__warehouse__tool_0001",
      "mcp__warehouse__tool_0005",
      "mcp__tools__echo",
    ]);
    for (let step = 1; step < seen.length; step += 1) {
      expect(seen[step]!.tools.slice(0, seen[step - 1]!.tools.length)).toEqual(
        seen[step - 1]!.tools,
      );
      expect(seen[step]!.system).toBe(seen[0]!.system);
    }
  });

  it("keeps promotions of a thread in its checkpoints and apart from other threads", async () => {
    const { seen, middleware } = spyMiddleware();
    const model = scripted(
      calling({ name: "search_mcp_tools", args: { query: "mcp__tools__echo" }, id: "s" }),
      "one",
      "two",
      "three",
    );
    const agent = createAgent({
      model,
      checkpointer: new MemorySaver(),
      middleware: [mcpMiddleware(source.hub), middleware],
    });
    await agent.invoke({ messages: "go" }, { configurable: { thread_id: "a" } });
    await agent.invoke({ messages: "again" }, { configurable: { thread_id: "a" } });
    await agent.invoke({ messages: "other" }, { configurable: { thread_id: "b" } });
    expect(seen[2]!.tools).toContain("mcp__tools__echo");
    expect(seen[2]!.system).toBe(seen[0]!.system);
    expect(seen[3]!.tools).toEqual(["search_mcp_tools"]);
  });

  it("narrows an agent to servers and tools", async () => {
    const { seen, middleware } = spyMiddleware();
    const model = scripted(
      calling(
        { name: "mcp__tools__echo", args: { text: "x" }, id: "hidden" },
        { name: "search_mcp_tools", args: { query: "mcp__tools__echo echo text" }, id: "search" },
      ),
      "done",
    );
    const agent = createAgent({
      model,
      middleware: [
        mcpMiddleware(source.hub, {
          servers: ["warehouse"],
          tools: ["tool_000*"],
          limits: { autoDeferChars: 0 },
        }),
        middleware,
      ],
    });
    const answers = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect(seen[0]!.system).toContain("mcp__warehouse__tool_0009");
    expect(seen[0]!.system).not.toContain("echo");
    expect(seen[0]!.system).not.toContain("tool_0010");
    expect(answers["hidden"]!.status).toBe("error");
    expect(answers["hidden"]!.text).toContain("is not available");
    expect(answers["search"]!.artifact).toEqual({ matches: [] });
  });

  it("previews what the model would see", async () => {
    const preview = await previewContext(source.hub, {});
    expect(preview.listing).toContain("mcp__tools__echo");
    expect(preview.tools.map(({ name }) => name)).toEqual(["search_mcp_tools"]);
    expect(preview.notes).toEqual([]);
  });

  it("reports searches, calls and context sizes as events", async () => {
    const events: string[] = [];
    const ends = [
      source.hub.on("search", ({ query, matches }) =>
        events.push(`search ${query} ${matches.join()}`),
      ),
      source.hub.on("call", ({ serverName, toolName, status, toolCallId }) =>
        events.push(`call ${serverName} ${toolName} ${status} ${toolCallId}`),
      ),
      source.hub.on("context", ({ withheldChars, threadId }) =>
        events.push(`context ${withheldChars > 10_000} ${threadId}`),
      ),
    ];
    const model = scripted(
      calling({ name: "search_mcp_tools", args: { query: "mcp__tools__echo", limit: 1 }, id: "s" }),
      calling({ name: "mcp__tools__echo", args: { text: "x" }, id: "c" }),
      "done",
    );
    const agent = createAgent({
      model,
      checkpointer: new MemorySaver(),
      middleware: [mcpMiddleware(source.hub)],
    });
    await agent.invoke({ messages: "go" }, { configurable: { thread_id: "t" } });
    for (const end of ends) end();
    expect(events).toEqual([
      "context true t",
      "search mcp__tools__echo mcp__tools__echo",
      "context true t",
      "call tools echo success c",
      "context true t",
    ]);
  });

  it("aborts a call when the run is aborted, and tells the server", async () => {
    const abort = new AbortController();
    const model = scripted(
      calling({ name: "mcp__tools__slow", args: { ms: 60_000 }, id: "c" }),
      "never",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub)] });
    const run = expect(
      agent.invoke({ messages: "go" }, { signal: abort.signal }),
    ).rejects.toThrow();
    await until(async () => (await stats(source.hub)).callsByTool["slow"] === 1, "the call");
    abort.abort();
    await run;
    await until(async () => (await stats(source.hub)).aborted === 1, "the cancellation");
  });

  it("gives guarded tools to code that binds them itself", async () => {
    const tools = await source.hub.getTools({ servers: ["tools"] });
    const echo = tools.find(({ name }) => name === "mcp__tools__echo")!;
    expect(echo.metadata).toMatchObject({ serverName: "tools", toolName: "echo" });
    const message: unknown = await echo.invoke({
      type: "tool_call",
      id: "1",
      name: echo.name,
      args: { text: "direct" },
    });
    expect(ToolMessage.isInstance(message) && message.text).toContain("direct");
    expect(await echo.invoke({ text: "plain" })).toContain("plain");
  });

  it("serves several agents and many threads on one hub", async () => {
    const run = async (thread: number) => {
      const model = scripted(
        calling({ name: "mcp__tools__echo", args: { text: `thread ${thread}` }, id: "c" }),
        "done",
      );
      const agent = createAgent({ model, middleware: [mcpMiddleware(source.hub)] });
      const result = await agent.invoke({ messages: [new HumanMessage("go")] });
      return answersOf(result.messages)["c"]!.text;
    };
    const texts = await Promise.all(Array.from({ length: 20 }, (_, thread) => run(thread)));
    texts.forEach((text, thread) => expect(text).toContain(`thread ${thread}`));
    expect(http.stats.sessions).toBe(1);
  });
});

async function stats(
  hub: McpHub,
): Promise<{ aborted: number; callsByTool: Record<string, number> }> {
  const { content } = await hub.callTool("tools", "stats");
  return JSON.parse(content.split("\n")[1]!) as {
    aborted: number;
    callsByTool: Record<string, number>;
  };
}
