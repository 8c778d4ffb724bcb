import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { AIMessage, HumanMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver, REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { createAgent, createMiddleware, providerStrategy, toolStrategy } from "langchain";
import * as z from "zod";

import { McpHub, mcpMiddleware } from "../../src/index.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { answersOf, calling, scripted, spyMiddleware } from "../support/agents.js";
import { stdioFixture, until } from "../support/servers.js";

describe("a thread over many steps", () => {
  it("gets the same listing for ten steps, whatever happens, and is told of changes in notes", async () => {
    const late = await serveHttp({ name: "late", noBase: true, tools: 3, delayMs: 400 });
    await using hub = new McpHub({
      mcpServers: { stable: stdioFixture({ tools: 40 }), late: { url: late.url } },
      warnings: "silent",
      timeouts: { startupDeadlineMs: 20_000 },
      limits: { autoDeferChars: 0 },
    });
    await hub.connect(["stable"]);
    const { seen, middleware } = spyMiddleware();
    const search = (query: string, id: string) =>
      calling({ name: "search_mcp_tools", args: { query, limit: 1 }, id });
    const changes = createMiddleware({
      name: "changes",
      wrapModelCall: async (request, handler) => {
        if (seen.length === 3)
          await until(() => hub.status()[1]!.state === "connected", "the late server");
        if (seen.length === 6) {
          const listed = new Promise((resolve) => hub.on("catalog", resolve));
          await hub.callTool("stable", "change_tools", {
            add: ["brand_new"],
            drop: ["tool_0002"],
            change: { tool_0001: "Now does something else" },
          });
          await listed;
        }
        return handler(request);
      },
    });
    const model = scripted(
      search("tool_0001", "1"),
      search("tool_0002", "2"),
      search("mcp__stable__echo", "3"),
      calling({ name: "mcp__stable__echo", args: { text: "x" }, id: "4" }),
      search("mcp__late__tool_0000", "5"),
      calling({ name: "mcp__stable__tool_0001", args: { query: "q" }, id: "6" }),
      calling({ name: "mcp__stable__tool_0002", args: { query: "q" }, id: "7" }),
      search("brand_new", "8"),
      search("tool_0001", "9"),
      "done",
    );
    const agent = createAgent({
      model,
      middleware: [changes, mcpMiddleware(hub, { timeouts: { startupDeadlineMs: 0 } }), middleware],
    });
    const result = await agent.invoke({ messages: "go" });
    await late.close();

    expect(seen).toHaveLength(10);
    expect(new Set(seen.map(({ system }) => system)).size).toBe(1);
    expect(seen[0]!.system).toContain("Still connecting: late");
    const isChange = (step: number): boolean => step === 6;
    for (let step = 1; step < 10; step += 1) {
      if (!isChange(step))
        expect(seen[step]!.tools.slice(0, seen[step - 1]!.tools.length)).toEqual(
          seen[step - 1]!.tools,
        );
    }
    expect(seen[6]!.tools).toEqual([
      "search_mcp_tools",
      "mcp__stable__echo",
      "mcp__late__tool_0000",
    ]);
    expect(seen[9]!.tools).toEqual([
      "search_mcp_tools",
      "mcp__stable__echo",
      "mcp__late__tool_0000",
      "mcp__stable__brand_new",
      "mcp__late__tool_0001",
      "mcp__stable__tool_0001",
    ]);
    const notes = seen[9]!.messages.filter(
      (message) =>
        HumanMessage.isInstance(message) && message.text.startsWith("<MCP_TOOLS_CHANGED>"),
    );
    expect(notes.map(({ text }) => text)).toEqual([
      "<MCP_TOOLS_CHANGED>\nServer late is connected now: 3 tools, found by search_mcp_tools.\n</MCP_TOOLS_CHANGED>",
      "<MCP_TOOLS_CHANGED>\nServer stable: new: mcp__stable__brand_new; removed: mcp__stable__tool_0002; changed, search again before calling: mcp__stable__tool_0001.\n</MCP_TOOLS_CHANGED>",
    ]);
    // Each request is the one before and more: what was sent once stays where it was.
    for (let step = 1; step < 10; step += 1) {
      const texts = (call: number) => seen[call]!.messages.map(({ text }) => text);
      expect(texts(step).slice(0, texts(step - 1).length)).toEqual(texts(step - 1));
    }
    // Notes are not messages of the thread, and never part a tool call from its result.
    expect(result.messages.some(({ text }) => text.includes("MCP_TOOLS_CHANGED"))).toBe(false);
    for (const { messages } of seen) {
      messages.forEach((message, position) => {
        if (ToolMessage.isInstance(message))
          expect(
            AIMessage.isInstance(messages[position - 1]) ||
              ToolMessage.isInstance(messages[position - 1]),
          ).toBe(true);
      });
    }
    const answers = answersOf(result.messages);
    expect(answers["6"]!.status).toBe("success");
    expect(answers["7"]!.text).toContain("is not available");
  });

  it("keeps promotions when the messages are summarised away", async () => {
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      timeouts: { startupDeadlineMs: 20_000 },
      limits: { autoDeferChars: 0 },
    });
    const { seen, middleware } = spyMiddleware();
    const summarise = createMiddleware({
      name: "summarise",
      beforeModel: (state) =>
        state.messages.length > 2
          ? {
              messages: [
                new RemoveMessage({ id: REMOVE_ALL_MESSAGES }),
                new HumanMessage("Summary of what happened."),
              ],
            }
          : undefined,
    });
    const model = scripted(
      calling({ name: "search_mcp_tools", args: { query: "echo" }, id: "1" }),
      "done",
    );
    const agent = createAgent({ model, middleware: [summarise, mcpMiddleware(hub), middleware] });
    await agent.invoke({ messages: "go" });
    expect(seen[1]!.messages).toHaveLength(1);
    expect(seen[1]!.tools).toContain("mcp__s__echo");
    expect(seen[1]!.system).toBe(seen[0]!.system);
  });

  it("continues in another process with the same SQLite file, and checkpoints do not grow with the catalog", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "mcp-sqlite-")), "threads.db");
    const child = fileURLToPath(new URL("../fixtures/sqliteThread.ts", import.meta.url));
    const run = (
      tools: number,
      thread: string,
      turn: string,
    ): { tools: string[]; system: string; state: number } =>
      JSON.parse(
        execFileSync(
          process.execPath,
          ["--import", "tsx", child, file, String(tools), thread, turn],
          { encoding: "utf8" },
        ),
      ) as never;
    const first = run(50, "a", "search");
    const second = run(50, "a", "again");
    expect(second.tools).toEqual([...first.tools]);
    expect(second.tools).toContain("mcp__s__echo");
    expect(second.system).toBe(first.system);
    const large = run(3_000, "b", "search");
    expect(large.state).toBeLessThan(first.state + 1_000);
    const saver = SqliteSaver.fromConnString(file);
    expect(await saver.getTuple({ configurable: { thread_id: "a" } })).toBeDefined();
  });
});

describe("beside other parts of an agent", () => {
  let hub: McpHub;
  beforeAll(() => {
    hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      warnings: "silent",
      timeouts: { startupDeadlineMs: 20_000 },
      limits: { autoDeferChars: 0 },
    });
  });
  afterAll(() => hub.close());

  it("keeps the structured response of both strategies", async () => {
    const schema = z.object({ answer: z.string() });
    const byTool = toolStrategy(schema);
    const name = (byTool as unknown as { name: string }[])[0]!.name;
    const model = scripted(
      calling({ name: "search_mcp_tools", args: { query: "echo" }, id: "1" }),
      calling({ name, args: { answer: "yes" }, id: "2" }),
    );
    const agent = createAgent({ model, responseFormat: byTool, middleware: [mcpMiddleware(hub)] });
    const result = await agent.invoke({ messages: "go" });
    expect(result.structuredResponse).toEqual({ answer: "yes" });
    expect(Object.keys(result.mcpActivation.promoted)).toContain("mcp__s__echo");

    const native = createAgent({
      model: scripted('{"answer":"no"}'),
      responseFormat: providerStrategy(schema),
      middleware: [mcpMiddleware(hub)],
    });
    expect((await native.invoke({ messages: "go" })).structuredResponse).toEqual({ answer: "no" });
  });

  it("never treats a tool of the agent or of another middleware as an MCP tool", async () => {
    const own = tool(() => "the agent's own echo", {
      name: "echo",
      description: "own",
      schema: z.object({}),
    });
    const namesake = tool(() => "the agent's own mcp__s__echo", {
      name: "mcp__s__echo",
      description: "own",
      schema: z.object({}),
    });
    const dynamic = tool(() => "the middleware's fail", {
      name: "fail",
      description: "dynamic",
      schema: z.object({}),
    });
    const adds = createMiddleware({
      name: "adds",
      wrapModelCall: (request, handler) =>
        handler({ ...request, tools: [...request.tools, dynamic] }),
    });
    const runs = createMiddleware({
      name: "runs",
      wrapToolCall: (request, handler) =>
        handler(request.toolCall.name === "fail" ? { ...request, tool: dynamic } : request),
    });
    const { seen, middleware } = spyMiddleware();
    const model = scripted(
      calling({
        name: "search_mcp_tools",
        args: { query: "mcp__s__echo echo", limit: 50 },
        id: "0",
      }),
      calling(
        { name: "echo", id: "1" },
        { name: "mcp__s__echo", id: "2" },
        { name: "fail", id: "3" },
        { name: "pid", id: "4" },
      ),
      "done",
    );
    const agent = createAgent({
      model,
      tools: [own, namesake],
      middleware: [adds, mcpMiddleware(hub), runs, middleware],
    });
    const answers = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect(answers["1"]!.text).toBe("the agent's own echo");
    expect(answers["2"]!.text).toBe("the agent's own mcp__s__echo");
    expect(answers["3"]!.text).toBe("the middleware's fail");
    expect(answers["4"]!.text).toContain('tool="pid"');
    expect(seen[1]!.tools.filter((name) => name === "mcp__s__echo")).toHaveLength(1);
    expect(new Set(seen[1]!.tools).size).toBe(seen[1]!.tools.length);
  });

  it("puts nothing from a caller's input or another tool's Command into the prompt", async () => {
    const forged = {
      v: 1,
      view: "",
      listing: "FORGED",
      loadsUnset: false,
      pending: [],
      servers: {},
      synthetic: {},
      notes: [],
    };
    const writer = tool(
      () =>
        new Command({
          update: {
            _mcpSent: forged,
            _mcpUnbound: { x: "repair" },
            messages: [new ToolMessage({ content: "ok", tool_call_id: "1" })],
          },
        }),
      { name: "writer", description: "writes", schema: z.object({}) },
    );
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted(calling({ name: "writer", id: "1" }), "done"),
      tools: [writer],
      checkpointer: new MemorySaver(),
      middleware: [mcpMiddleware(hub), middleware],
    });
    const input = { messages: [new HumanMessage("go")], _mcpSent: forged } as {
      messages: HumanMessage[];
    };
    await agent.invoke(input, { configurable: { thread_id: "1" } });
    expect(seen).toHaveLength(2);
    for (const { system, messages } of seen) {
      expect(system).toContain("mcp__s__echo");
      expect(system).not.toContain("FORGED");
      expect(messages.some(({ text }) => text === "ok") || messages.length === 1).toBe(true);
    }
  });

  it("always loads small tool sets and tools it is told to, and these work without a search", async () => {
    await using loaded = new McpHub({
      mcpServers: {
        small: stdioFixture(),
        large: stdioFixture({ tools: 200, noBase: true }, { alwaysLoad: ["tool_0007"] }),
      },
      timeouts: { startupDeadlineMs: 20_000 },
      limits: { autoDeferChars: 0 },
    });
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted(
        calling({ name: "mcp__large__tool_0007", args: { query: "x" }, id: "1" }),
        "done",
      ),
      middleware: [mcpMiddleware(loaded), middleware],
    });
    const result = await agent.invoke({ messages: "go" });
    expect(seen[0]!.tools).toEqual(["search_mcp_tools", "mcp__large__tool_0007"]);
    expect(answersOf(result.messages)["1"]!.status).toBe("success");

    const all = createAgent({
      model: scripted("done"),
      middleware: [
        mcpMiddleware(loaded, { servers: ["small"], limits: { autoDeferChars: 10_000 } }),
        middleware,
      ],
    });
    await all.invoke({ messages: "go" });
    expect(seen.at(-1)!.tools).toHaveLength(10);
    expect(seen.at(-1)!.tools).not.toContain("search_mcp_tools");
    expect(seen.at(-1)!.system).toBe("");
  });

  it("lists a lazy server by its description and opens it when it is searched", async () => {
    await using lazy = new McpHub({
      mcpServers: { s: stdioFixture({}, { description: "Echoes things" }) },
      startup: "lazy",
      timeouts: { searchWaitMs: 20_000 },
    });
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted(
        calling({ name: "search_mcp_tools", args: { query: "echo" }, id: "1" }),
        "done",
      ),
      middleware: [mcpMiddleware(lazy, { limits: { autoDeferChars: 0 } }), middleware],
    });
    await agent.invoke({ messages: "go" });
    expect(seen[0]!.system).toContain("s (opened when searched): Echoes things");
    expect(seen[1]!.tools).toContain("mcp__s__echo");
  });

  it("waits for a hanging server no longer than the deadline", async () => {
    await using slow = new McpHub({
      mcpServers: { s: stdioFixture(), hang: stdioFixture({ hang: true }) },
      timeouts: { startupDeadlineMs: 600 },
    });
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted("one", "two"),
      middleware: [mcpMiddleware(slow), middleware],
    });
    const startedAt = performance.now();
    await agent.invoke({ messages: "go" });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(seen[0]!.system).toContain("Still connecting: hang");
    const again = performance.now();
    await agent.invoke({ messages: "go" });
    expect(performance.now() - again).toBeLessThan(500);
  });
});
