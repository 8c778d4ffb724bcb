// What the base packages do that this package depends on or works around. A failure here after an
// upgrade says that a decision in docs/design.md may have lost its reason.
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { createAgent, createMiddleware } from "langchain";
import * as z from "zod";

import { McpConfigError, McpHub, mcpMiddleware } from "../../src/index.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { answersOf, calling, scripted } from "../support/agents.js";
import { isRunning, stdioFixture } from "../support/servers.js";

describe("@langchain/mcp-adapters", () => {
  const adapter = (servers: object, more: object = {}) =>
    new MultiServerMCPClient({ mcpServers: servers as never, ...more });

  it("loses a parameter's type in a union with null", async () => {
    const tools = [
      {
        name: "t",
        inputSchema: {
          type: "object",
          properties: { a: { anyOf: [{ type: "string" }, { type: "null" }], description: "d" } },
        },
      },
    ];
    const client = adapter({ s: { ...stdioFixture({ tools }), stderr: "ignore" } });
    const found = (await client.getTools()).find(({ name }) => name === "t")!;
    expect((found.schema as { properties: unknown }).properties).toEqual({
      a: { description: "d" },
    });
    await client.close();
    await using hub = new McpHub({ mcpServers: { s: stdioFixture({ tools }) } });
    const ours = (await hub.getTools()).find(({ name }) => name === "mcp__s__t")!;
    expect(ours.schema["properties"]).toEqual(tools[0]!.inputSchema.properties);
  });

  it("opens servers one after the other", async () => {
    const fixtures = await Promise.all([1, 2, 3, 4].map(() => serveHttp({ delayMs: 150 })));
    const client = adapter(
      Object.fromEntries(fixtures.map(({ url }, index) => [`s${index}`, { url }])),
    );
    const startedAt = performance.now();
    await client.getTools();
    expect(performance.now() - startedAt).toBeGreaterThan(4 * 150);
    await client.close();
    await Promise.all(fixtures.map((fixture) => fixture.close()));
  });

  it("starts duplicates for two concurrent uses, which a wrapped hub never does", async () => {
    const plain = await serveHttp({ delayMs: 50 });
    const client = adapter({ s: { url: plain.url } });
    await Promise.all([client.getClient("s"), client.getClient("s")]);
    expect(plain.stats.initialize).toBe(2);
    await client.close();
    await plain.close();
    const guarded = await serveHttp({ delayMs: 50 });
    const wrapped = adapter({ s: { url: guarded.url } });
    const hub = McpHub.wrap(wrapped);
    await Promise.all([hub.connect(), hub.connect(), hub.callTool("s", "echo", { text: "x" })]);
    expect(guarded.stats.initialize).toBe(1);
    await wrapped.close();
    await guarded.close();
  });

  it("fails every server when one fails and onConnectionError is throw; the hub says what to do", async () => {
    const warnings: string[] = [];
    const client = adapter({
      bad: { command: "no-such-command", args: [] },
      good: { ...stdioFixture(), stderr: "ignore" },
    });
    const hub = McpHub.wrap(client);
    hub.on("warning", ({ code }) => warnings.push(code));
    const { failed } = await hub.connect();
    expect(failed.map(({ serverName }) => serverName)).toEqual(["bad", "good"]);
    expect(warnings).toContain("WRAPPED_CLIENT_THROWS");
    await client.close();
    const ignoring = adapter(
      {
        bad: { command: "no-such-command", args: [] },
        good: { ...stdioFixture(), stderr: "ignore" },
      },
      { onConnectionError: "ignore" },
    );
    const report = await McpHub.wrap(ignoring, { warnings: "silent" }).connect();
    expect(report.connected).toEqual(["good"]);
    await ignoring.close();
  });

  it("does not list again when tools change; a wrapped hub does", async () => {
    const http = await serveHttp();
    const client = adapter({ s: { url: http.url } });
    const hub = McpHub.wrap(client);
    await hub.connect();
    const changed = new Promise<{ added: readonly string[] }>((resolve) =>
      hub.on("catalog", resolve),
    );
    await hub.callTool("s", "change_tools", { add: ["fresh"] });
    expect((await changed).added).toEqual(["fresh"]);
    expect((await client.getTools()).map(({ name }) => name)).not.toContain("fresh");
    await client.close();
    await http.close();
  });

  it("gives a client whose end is noticed, and which is requested again only on reconnect", async () => {
    const client = adapter({ s: { ...stdioFixture(), stderr: "ignore" } });
    const hub = McpHub.wrap(client, { warnings: "silent" });
    expect(McpHub.wrap(client, { warnings: "silent" })).toBe(hub);
    expect(() => McpHub.wrap(client, { defer: true })).toThrow(McpConfigError);
    await hub.connect();
    await client.close();
    expect(hub.status()[0]).toMatchObject({ state: "failed", transport: "wrapped" });
    await expect(hub.callTool("s", "echo", { text: "x" })).rejects.toMatchObject({
      code: "SESSION_LOST",
      message: expect.stringContaining("Its owner can open it again"),
    });
    await hub.reconnect("s");
    expect((await hub.callTool("s", "echo", { text: "back" })).content).toContain("back");
    await client.close();
  });
});

function sdkTransport(options: Record<string, unknown>): StdioClientTransport {
  const { command, args } = stdioFixture(options);
  return new StdioClientTransport({ command, args, stderr: "ignore" });
}

describe("@modelcontextprotocol/sdk", () => {
  it("refuses a whole tool list for one tool without type object; ours keeps the rest", async () => {
    const options = { raw: [{ name: "odd", inputSchema: { properties: {} } }] };
    const client = new Client({ name: "t", version: "1" });
    await client.connect(sdkTransport(options));
    await expect(client.listTools()).rejects.toThrow();
    await client.close();
    await using hub = new McpHub({ mcpServers: { s: stdioFixture(options) }, warnings: "silent" });
    await hub.connect();
    expect(hub.status()[0]!.tools).toBe(11);
  });

  it("leaves what a server started alive when it closes; ours does not", async () => {
    const helperFile = join(mkdtempSync(join(tmpdir(), "mcp-helper-")), "pid");
    const client = new Client({ name: "t", version: "1" });
    await client.connect(sdkTransport({ helper: helperFile }));
    await client.close();
    const helper = Number(readFileSync(helperFile, "utf8"));
    expect(isRunning(helper)).toBe(true);
    process.kill(helper, "SIGKILL");
  });
});

describe("langchain", () => {
  const noTools = z.object({});

  it("needs a wrapToolCall somewhere for a tool that a model hook adds", async () => {
    const added = tool(() => "x", { name: "added", description: "d", schema: noTools });
    const adds = createMiddleware({
      name: "adds",
      wrapModelCall: (request, handler) =>
        handler({ ...request, tools: [...request.tools, added] }),
    });
    await expect(
      createAgent({ model: scripted("x"), middleware: [adds] }).invoke({ messages: "go" }),
    ).rejects.toThrow("wrapToolCall");
  });

  it("ends the run when a tool throws beside any wrapToolCall, so that our tools never throw", async () => {
    const throws = tool(
      () => {
        throw new Error("boom");
      },
      { name: "throws", description: "d", schema: noTools },
    );
    const wraps = createMiddleware({
      name: "wraps",
      wrapToolCall: (request, handler) => handler(request),
    });
    const agent = createAgent({
      model: scripted(calling({ name: "throws", id: "1" }), "done"),
      tools: [throws],
      middleware: [wraps],
    });
    await expect(agent.invoke({ messages: "go" })).rejects.toThrow("boom");
  });

  it("lists every registered tool to a model that invents a name, so that ours are not registered", async () => {
    const own = tool(() => "x", { name: "own_tool", description: "d", schema: noTools });
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      timeouts: { startupDeadlineMs: 20_000 },
    });
    const agent = createAgent({
      model: scripted(calling({ name: "invented", id: "1" }), "done"),
      tools: [own],
      middleware: [mcpMiddleware(hub)],
    });
    const { text } = answersOf((await agent.invoke({ messages: "go" })).messages)["1"]!;
    expect(text).toContain("own_tool");
    expect(text).not.toContain("mcp__");
  });

  it("gives wrapModelCall an AIMessage and keeps state from a Command beside it", async () => {
    const seen: boolean[] = [];
    const writes = createMiddleware({
      name: "writes",
      stateSchema: z.object({ noted: z.string().optional() }),
      wrapModelCall: async (request, handler) => {
        const answer = await handler(request);
        seen.push(AIMessage.isInstance(answer));
        return new Command({ update: { noted: "yes" } });
      },
    });
    const result = await createAgent({ model: scripted("hello"), middleware: [writes] }).invoke({
      messages: "go",
    });
    expect(seen).toEqual([true]);
    expect(result.noted).toBe("yes");
    expect(result.messages.at(-1)!.text).toBe("hello");
  });

  it("refuses a second middleware of the same name", async () => {
    await using hub = new McpHub({ mcpServers: { s: stdioFixture() } });
    expect(() =>
      createAgent({ model: scripted("x"), middleware: [mcpMiddleware(hub), mcpMiddleware(hub)] }),
    ).toThrow("mcpMiddleware");
  });
});
