// Faults found in reviews, each with the test that showed it.
import { getEventListeners } from "node:events";

import { interrupt, MemorySaver, isGraphInterrupt } from "@langchain/langgraph";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent, createMiddleware, humanInTheLoopMiddleware } from "langchain";
import { Command } from "@langchain/langgraph";

import {
  McpHub,
  mcpMiddleware,
  previewContext,
  type McpEvents,
  type McpHubOptions,
} from "../../src/index.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { answersOf, calling, scripted, spyMiddleware } from "../support/agents.js";
import { isRunning, quietFixture, stdioFixture, until } from "../support/servers.js";

const quick = { warnings: "silent" as const, timeouts: { startupDeadlineMs: 20_000 } };

describe("state", () => {
  it("survives a middleware that calls the model twice in one step while there is something to write", async () => {
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      ...quick,
      limits: { autoDeferChars: 0 },
    });
    const twice = createMiddleware({
      name: "twice",
      wrapModelCall: async (request, handler) => {
        await handler(request);
        return handler(request);
      },
    });
    const bare = () => calling({ name: "echo", args: { text: "x" }, id: "1" });
    const agent = createAgent({
      model: scripted(bare(), bare(), "a", "b"),
      middleware: [twice, mcpMiddleware(hub)],
    });
    const result = await agent.invoke({ messages: "go" });
    expect(answersOf(result.messages)["1"]!.status).toBe("success");
  });

  it("runs a bound tool after an interrupt was resumed with a hub that has not connected yet, also with bare names", async () => {
    const checkpointer = new MemorySaver();
    const thread = { configurable: { thread_id: "1" } };
    const hitl = humanInTheLoopMiddleware as unknown as (
      options: object,
    ) => ReturnType<typeof createMiddleware>;
    const make = (hub: McpHub, ...answers: Parameters<typeof scripted>) =>
      createAgent({
        model: scripted(...answers),
        checkpointer,
        middleware: [hitl({ interruptOn: { echo: true } }), mcpMiddleware(hub)],
      });
    const options: McpHubOptions = {
      mcpServers: { s: stdioFixture() },
      ...quick,
      names: "bare",
      limits: { autoDeferChars: 0 },
    };
    const search = calling({ name: "search_mcp_tools", args: { query: "echo" }, id: "1" });
    await using first = new McpHub(options);
    await make(first, search, calling({ name: "echo", args: { text: "resumed" }, id: "2" })).invoke(
      { messages: "go" },
      thread,
    );
    await using second = new McpHub(options);
    const result = (await make(second, "done").invoke(
      new Command({ resume: { decisions: [{ type: "approve" }] } }),
      thread,
    )) as {
      messages: Parameters<typeof answersOf>[0];
    };
    expect(answersOf(result.messages)["2"]!.text).toContain("resumed");
  });
});

describe("secrets", () => {
  it("are masked in what the model reads, in warnings and in refresh errors", async () => {
    const secret = "sk-SUPERSECRET-42";
    const echo = { name: "leak", inputSchema: { type: "object" } };
    const http = await serveHttp({ tools: [echo], leakHeaders: true });
    await using hub = new McpHub({
      mcpServers: { s: { url: http.url, headers: { Authorization: `Bearer ${secret}` } } },
      timeouts: { startupDeadlineMs: 20_000 },
    });
    const warnings: McpEvents["warning"][] = [];
    hub.on("warning", (warning) => warnings.push(warning));
    const agent = createAgent({
      model: scripted(calling({ name: "mcp__s__leak", id: "1" }), "done"),
      middleware: [mcpMiddleware(hub)],
    });
    const result = await agent.invoke({ messages: "go" });
    expect(answersOf(result.messages)["1"]!.text).toContain("token rejected: ***");
    http.options["failList"] = `bad token ${secret}`;
    const error = await hub.refresh("s").catch((caught: unknown) => caught as Error);
    expect(error).toMatchObject({ code: "CONNECT_FAILED", serverName: "s" });
    for (const text of [JSON.stringify(result), JSON.stringify(warnings), (error as Error).message])
      expect(text).not.toContain("SUPERSECRET");
    await hub.close();
    await http.close();
  });

  it("that are written out in env, arguments and URLs are masked, and not shown by option errors", async () => {
    const servers = {
      env: stdioFixture(
        { exitAtStart: 1, stderrLines: ["key sk-literal-123456"] },
        { env: { API_KEY: "sk-literal-123456" } },
      ),
      arg: {
        command: "sh",
        args: ["-c", "echo bad sk-arg-777777 >&2; exit 1", "--token=sk-arg-777777"],
      },
    };
    await using hub = new McpHub({ mcpServers: servers, warnings: "silent" });
    const { failed } = await hub.connect();
    expect(failed.map(({ error }) => error.message).join("\n")).not.toMatch(/sk-(literal|arg)/);
    const wrong = {
      mcpServers: { s: { url: "http://x", headers: "Authorization: Bearer sk-wrong-1" } },
    };
    expect(() => new McpHub(wrong as never)).toThrow(
      /"mcpServers.s.headers" is a value of type string/,
    );
  });
});

describe("opening", () => {
  it("ends a secret resolver that never answers with the connect timeout, and blocks nobody", async () => {
    await using hub = new McpHub({
      mcpServers: {
        a: stdioFixture({}, { env: { T: "${A}" } }),
        b: stdioFixture({}, { env: { T: "${A}" } }),
        c: stdioFixture({}, { env: { T: "${A}" } }),
        good: stdioFixture(),
      },
      warnings: "silent",
      security: { secretResolver: () => new Promise(() => undefined) },
      timeouts: { connectTimeoutMs: 700 },
    });
    const { connected, failed } = await hub.connect();
    expect(connected).toEqual(["good"]);
    expect(failed.map(({ error }) => error.code)).toEqual([
      "CONNECT_TIMEOUT",
      "CONNECT_TIMEOUT",
      "CONNECT_TIMEOUT",
    ]);
    await using sealed = new McpHub({
      mcpServers: { a: stdioFixture({}, { env: { T: "${A}" } }) },
      warnings: "silent",
      security: { secretResolver: () => Promise.reject(new Error("sealed")) },
    });
    expect((await sealed.connect()).failed[0]!.error).toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringContaining("secretResolver failed for A: sealed"),
    });
  });

  it("names the exit code of a child that dies during a write, and keeps the line with the reason", async () => {
    for (let round = 0; round < 5; round += 1) {
      await using hub = new McpHub({
        mcpServers: {
          s: { command: "sh", args: ["-c", "exit 4"] },
          n: { command: "node", args: ["no-such-file.js"] },
        },
        warnings: "silent",
      });
      const { failed } = await hub.connect();
      expect(failed[0]!.error.message).toContain("it exited with code 4");
      expect(failed[1]!.error.message).toContain("Cannot find module");
    }
  });

  it("shows stderr of a server that times out, and says that its stdout is not MCP", async () => {
    const script = "echo waiting for login >&2; echo Hello; exec sleep 60";
    await using hub = new McpHub({
      mcpServers: { s: { command: "sh", args: ["-c", script], connectTimeoutMs: 500 } },
      warnings: "silent",
    });
    const { failed } = await hub.connect();
    expect(failed[0]!.error.message).toMatch(
      /not ready within 500 ms.*1 lines to stdout that are no MCP messages.*waiting for login/,
    );
  });

  it("lists again after a change that was announced during the first listing", async () => {
    const http = await serveHttp({ listDelayMs: 200 });
    await using hub = new McpHub({ mcpServers: { s: { url: http.url } }, ...quick });
    const connecting = hub.connect();
    await until(() => http.stats.listTools === 1, "the first listing");
    http.options["world"] = Object.assign(http.options["world"] as object, { added: ["late"] });
    await http.announce();
    await connecting;
    await until(
      () => hub.snapshot("s")!.tools.some(({ name }) => name === "late"),
      "the late tool",
    );
    await hub.close();
    await http.close();
  });

  it("asks for credentials when SSE answers 401 after streamable HTTP was refused", async () => {
    const http = await serveHttp({ sseOnly: true, sseToken: "right" });
    await using hub = new McpHub({ mcpServers: { s: { url: http.url } }, warnings: "silent" });
    await hub.connect();
    expect(hub.status()[0]!.state).toBe("needs-auth");
    await hub.close();
    await http.close();
  });
});

describe("lost connections", () => {
  it("notices the end of a child whose helper keeps its pipes open", async () => {
    const { command, args } = stdioFixture();
    const script = `sleep 30 & exec ${command} ${args.map((arg) => `'${arg}'`).join(" ")}`;
    await using hub = new McpHub({
      mcpServers: { s: { command: "sh", args: ["-c", script] } },
      warnings: "silent",
    });
    const startedAt = performance.now();
    await expect(hub.callTool("s", "die")).rejects.toMatchObject({ code: "UNANSWERED" });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(hub.status()[0]!.state).toBe("failed");
  });

  it("reconnects a remote server that forgot the session or was unreachable", async () => {
    const http = await serveHttp();
    await using hub = new McpHub({ mcpServers: { s: { url: http.url } }, ...quick });
    const call = () => hub.callTool("s", "echo", { text: "x" });
    await call();
    http.forgetSessions();
    expect((await call()).status).toBe("success");
    expect(http.stats.callsByTool).toEqual({ echo: 2 });
    await hub.close();
    await http.close();
  });

  it("restarts a dead child only with restart, and then also for tools that code bound itself", async () => {
    const servers = {
      restarted: stdioFixture({}, { restart: { enabled: true, delayMs: 1 } }),
      left: stdioFixture(),
    };
    await using hub = new McpHub({
      mcpServers: servers,
      ...quick,
      timeouts: { retryFailedAfterMs: 1 },
    });
    const tools = await hub.getTools({ tools: ["echo"] });
    for (const name of ["restarted", "left"])
      await expect(hub.callTool(name, "die")).rejects.toThrow();
    const answer = async (index: number): Promise<string> =>
      String(await tools[index]!.invoke({ text: "again" }));
    await until(async () => (await answer(0)).includes("\nagain\n"), "the restart");
    expect(await answer(1)).not.toContain("\nagain\n");
    expect(hub.status()[1]!.state).toBe("failed");
  });

  it("waits at close for sessions that are still being closed", async () => {
    const { mkdtempSync, readFileSync } = await import("node:fs");
    const helper = `${mkdtempSync("/tmp/mcp-reviewed-")}/pid`;
    const hub = new McpHub({
      mcpServers: { s: stdioFixture({ stubborn: true, helper }) },
      warnings: "silent",
    });
    await hub.connect();
    const old = Number(readFileSync(helper, "utf8"));
    const again = hub.reconnect("s").catch(() => undefined);
    await hub.close();
    expect(isRunning(old)).toBe(false);
    await again;
    expect(isRunning(Number(readFileSync(helper, "utf8")))).toBe(false);
  });
});

describe("calls", () => {
  it("end at once when they are aborted while the server connects, and leave no listeners on a signal", async () => {
    await using hub = new McpHub({
      mcpServers: { hang: stdioFixture({ hang: true }), s: stdioFixture() },
      ...quick,
    });
    await expect(
      hub.callTool("hang", "echo", {}, { signal: AbortSignal.timeout(100) }),
    ).rejects.toMatchObject({
      name: "TimeoutError",
    });
    const { signal } = new AbortController();
    for (let call = 0; call < 30; call += 1)
      await hub.callTool("s", "echo", { text: "x" }, { signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("let interrupt() of a hook through, give it the state, and report async failures of callbacks", async () => {
    const states: unknown[] = [];
    const warnings: string[] = [];
    const fails = (() => Promise.reject(new Error("async"))) as () => void;
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture(), missing: { command: "no-such-command" } },
      onProgress: fails,
      onConnectionError: fails,
      beforeToolCall: (_call: unknown, state: { messages?: unknown[] }) => {
        states.push(state.messages?.length);
        interrupt("sure?");
      },
      timeouts: { startupDeadlineMs: 20_000 },
    });
    hub.on("warning", ({ code }) => warnings.push(code));
    hub.on("call", fails);
    const agent = createAgent({
      model: scripted(
        calling({ name: "mcp__s__slow", args: { ms: 40, steps: 4 }, id: "1" }),
        "done",
      ),
      checkpointer: new MemorySaver(),
      middleware: [mcpMiddleware(hub)],
    });
    const thread = { configurable: { thread_id: "1" } };
    const result = await agent.invoke({ messages: "go" }, thread).catch((error: unknown) => error);
    expect(
      isGraphInterrupt(result) ||
        (result as { __interrupt__?: unknown[] }).__interrupt__?.length === 1,
    ).toBe(true);
    expect(states[0]).toBe(2);
    const after = await agent.invoke(new Command({ resume: "yes" }), thread);
    expect(answersOf(after.messages)["1"]!.status).toBe("success");
    await until(
      () => ["CALLBACK_FAILED", "LISTENER_FAILED"].every((code) => warnings.includes(code)),
      "the warnings",
    );
  });

  it("read a schema of another dialect as the server means it, and parse JSON text below root branches", async () => {
    const tools = [
      {
        name: "odd",
        inputSchema: {
          type: "object",
          properties: {
            a: { type: "any" },
            n: { type: "number", minimum: 1, exclusiveMinimum: true },
          },
        },
      },
      {
        name: "branch",
        inputSchema: {
          type: "object",
          anyOf: [{ properties: { ids: { type: "array" } }, required: ["ids"] }],
        },
      },
    ];
    await using hub = new McpHub({ mcpServers: { s: stdioFixture({ tools }) } });
    expect((await hub.callTool("s", "odd", { a: [1], n: 2 })).status).toBe("success");
    expect((await hub.callTool("s", "branch", { ids: "[1,2]" })).content).toContain('"ids":[1,2]');
  });
});

describe("a wrapped client", () => {
  it("is not reconnected by use after its owner closed it, keeps its timeout, and gets hooks by option", async () => {
    const http = await serveHttp();
    const client = new MultiServerMCPClient({
      mcpServers: { s: { url: http.url } },
      defaultToolTimeout: 150,
    });
    const hub = McpHub.wrap(client, {
      warnings: "silent",
      beforeToolCall: ({ name }: { name: string }) =>
        name === "echo" ? { args: { text: "hooked" } } : undefined,
    } as never);
    expect((await hub.callTool("s", "echo", { text: "x" })).content).toContain("hooked");
    await expect(hub.callTool("s", "slow", { ms: 5_000 })).rejects.toMatchObject({
      code: "REQUEST_TIMEOUT",
    });
    await client.close();
    const { sessions } = http.stats;
    expect((await hub.connect()).failed[0]!.error.code).toBe("SESSION_LOST");
    await hub.getTools();
    expect(http.stats.sessions).toBe(sessions);
    await hub.close();
    expect(McpHub.wrap(client)).not.toBe(hub);
    await client.close();
    await http.close();
  });

  it("is required: a clear error says so when something else is given", () => {
    expect(() => mcpMiddleware({ mcpServers: {} } as never)).toThrow(
      "mcpMiddleware(hubOrClient) needs a McpHub or a MultiServerMCPClient",
    );
    expect(() => new McpHub({ mcpServer: {} } as never)).toThrow(
      '"mcpServer" was given; did you mean "mcpServers"?',
    );
    expect(() => new McpHub({ servers: {} } as never)).toThrow('did you mean "mcpServers"?');
    expect(() => McpHub.fromServers({ a: { command: "x" }, b: { comand: "x" } } as never)).toThrow(
      'did you mean "command"?',
    );
    expect(() => new McpHub({ a: { command: "x" } } as never)).toThrow(
      "McpHub.fromServers(servers)",
    );
  });
});

describe("a closed hub and previews", () => {
  it("refuses to connect, and to preview with options in the wrong place", async () => {
    const hub = new McpHub({ mcpServers: { s: quietFixture() } });
    await hub.connect();
    await expect(previewContext(hub, { tools: ["x"] } as never)).rejects.toThrow(
      "give it in the third argument",
    );
    const contexts: unknown[] = [];
    hub.on("context", (event) => contexts.push(event));
    await previewContext(hub, {}, { tools: ["echo"], limits: { autoDeferChars: 0 } });
    expect(contexts).toEqual([]);
    expect(() => hub.on("conection" as never, () => undefined)).toThrow("There is no event");
    await hub.close();
    await expect(hub.connect()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(hub.getTools()).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("never treats a tool that a later middleware adds as an MCP tool", async () => {
    const { tool } = await import("@langchain/core/tools");
    const z = await import("zod");
    await using hub = new McpHub({
      mcpServers: { s: quietFixture() },
      ...quick,
      limits: { autoDeferChars: 0 },
    });
    const theirs = tool(() => "theirs", { name: "echo", description: "d", schema: z.object({}) });
    const later = createMiddleware({
      name: "later",
      wrapModelCall: (request, handler) =>
        handler({ ...request, tools: [...request.tools, theirs] }),
      wrapToolCall: (request, handler) =>
        handler(request.toolCall.name === "echo" ? { ...request, tool: theirs } : request),
    });
    const { middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted(calling({ name: "echo", id: "1" }), "done"),
      middleware: [mcpMiddleware(hub), later, middleware],
    });
    expect(answersOf((await agent.invoke({ messages: "go" })).messages)["1"]!.text).toBe("theirs");
  });
});
