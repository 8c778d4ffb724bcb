import { partsOf } from "../../src/hub/hubParts.js";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createAgent } from "langchain";

import {
  McpAuthRequiredError,
  McpConnectionError,
  McpHub,
  McpNotFoundError,
  McpProtocolError,
  mcpMiddleware,
  type McpEvents,
} from "../../src/index.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { answersOf, calling, scripted, spyMiddleware } from "../support/agents.js";
import { isRunning, stdioFixture, until } from "../support/servers.js";

const folder = mkdtempSync(join(tmpdir(), "mcp-faults-"));
let count = 0;
const pidFile = (): string => join(folder, `pid-${(count += 1)}`);
const pidIn = (file: string): number => Number(readFileSync(file, "utf8"));

/**
 * A hub with one faulty and one good server; checks that the good one works and nothing is left.
 */
async function beside(
  faulty: object,
  check: (hub: McpHub, failure: Error | undefined) => Promise<void> | void,
  more: object = {},
): Promise<void> {
  const warnings: McpEvents["warning"][] = [];
  const hub = new McpHub({ mcpServers: { faulty, good: stdioFixture() }, ...more });
  hub.on("warning", (warning) => warnings.push(warning));
  try {
    const { connected, failed } = await hub.connect();
    expect(connected).toContain("good");
    expect((await hub.callTool("good", "echo", { text: "still here" })).content).toContain(
      "still here",
    );
    await check(hub, failed[0]?.error);
  } finally {
    await hub.close();
  }
}

describe("servers with faults, beside a good one", () => {
  it("names a command that does not exist", async () => {
    await beside({ command: "no-such-command-anywhere" }, (hub, failure) => {
      expect(McpConnectionError.isInstance(failure)).toBe(true);
      expect(failure!.message).toMatch(
        /Server "faulty" could not be opened: .*ENOENT.*Check that "command" is a program on the PATH/,
      );
      expect(hub.status()[0]).toMatchObject({
        serverName: "faulty",
        state: "failed",
        error: expect.stringContaining("ENOENT"),
      });
    });
  });

  it("reads 1 MiB on stderr before the handshake without blocking", async () => {
    await beside(stdioFixture({ stderrKiB: 1024 }), (hub, failure) => {
      expect(failure).toBeUndefined();
      expect(hub.status()[0]!.state).toBe("connected");
    });
  });

  it("gives the last stderr lines of a server that dies at start, with secrets masked", async () => {
    process.env["FAULTS_SECRET"] = "hunter2-hunter2";
    const entry = stdioFixture(
      { exitAtStart: 7, stderrLines: ["first", "no database at hunter2-hunter2"] },
      { env: { TOKEN: "${FAULTS_SECRET}" } },
    );
    await beside(entry, (_hub, failure) => {
      expect(failure!.message).toContain("it exited with code 7");
      expect(failure!.message).toContain("no database at ***");
      expect(failure!.message).not.toContain("hunter2");
    });
  });

  it("ends a server that never answers, and leaves no process", async () => {
    const file = pidFile();
    await beside(
      stdioFixture({ hang: true, pidFile: file, stubborn: true }, { connectTimeoutMs: 400 }),
      (hub, failure) => {
        expect(failure).toMatchObject({ code: "CONNECT_TIMEOUT", serverName: "faulty" });
        expect(failure!.message).toContain("was not ready within 400 ms");
        expect(hub.status()[0]!.state).toBe("failed");
        expect(isRunning(pidIn(file))).toBe(false);
      },
    );
  });

  it("ends a server that connects and never lists", async () => {
    const file = pidFile();
    await beside(
      stdioFixture({ hangList: true, pidFile: file }, { connectTimeoutMs: 600 }),
      (_hub, failure) => {
        expect(failure).toMatchObject({ code: "CONNECT_TIMEOUT" });
        expect(isRunning(pidIn(file))).toBe(false);
      },
    );
  });

  it("names a server whose tool list fails", async () => {
    await beside(stdioFixture({ failList: true }), (_hub, failure) => {
      expect(failure!.message).toContain(
        'Server "faulty" was reached, but its tools could not be listed',
      );
      expect(failure!.message).toContain("the list exploded");
    });
  });

  it("ignores a line on stdout that is no message", async () => {
    await beside(stdioFixture({ strayLine: true }), (_hub, failure) =>
      expect(failure).toBeUndefined(),
    );
  });

  it("has no tools from a server without the tools capability", async () => {
    await beside(stdioFixture({ noToolsCapability: true }), (hub, failure) => {
      expect(failure).toBeUndefined();
      expect(hub.status()[0]).toMatchObject({ state: "connected" });
    });
  });

  it("names a missing variable and fails only that server", async () => {
    await beside(
      stdioFixture({}, { env: { TOKEN: "${NO_SUCH_VARIABLE_SET}" } }),
      (_hub, failure) => {
        expect(failure).toMatchObject({ code: "INVALID_CONFIG", serverName: "faulty" });
        expect(failure!.message).toContain("NO_SUCH_VARIABLE_SET");
      },
    );
  });

  it("names a refused port, a 500 and a 401", async () => {
    const refused = await serveHttp();
    await refused.close();
    await beside({ url: refused.url }, (_hub, failure) =>
      expect(failure!.message).toContain("ECONNREFUSED"),
    );
    const broken = await serveHttp({ status: 500, body: "boom" });
    await beside({ url: broken.url }, (_hub, failure) => expect(failure!.message).toContain("500"));
    await broken.close();
    const locked = await serveHttp({ token: "right" });
    await beside(
      { url: locked.url, headers: { Authorization: "Bearer wrong-secret" } },
      (hub, failure) => {
        expect(McpAuthRequiredError.isInstance(failure)).toBe(true);
        expect(hub.status()[0]!.state).toBe("needs-auth");
        expect(failure!.message).not.toContain("wrong-secret");
      },
    );
    await beside(
      { url: locked.url, auth: { headers: { Authorization: "Bearer ${LOCK:-right}" } } },
      (_hub, failure) => expect(failure).toBeUndefined(),
    );
    await locked.close();
  });

  it("connects a server later that was down at first", async () => {
    const server = await serveHttp({ status: 503 });
    await beside(
      { url: server.url },
      async (hub, failure) => {
        expect(failure).toBeDefined();
        const { middleware, seen } = spyMiddleware();
        const agent = createAgent({
          model: scripted("a", "b", "c"),
          middleware: [mcpMiddleware(hub), middleware],
        });
        await until(
          async () =>
            (await agent.invoke({ messages: "go" })) !== undefined &&
            hub.status()[0]!.state === "failed",
        );
        expect(seen[0]!.system).toContain("Not available now: faulty");
        delete server.options["status"];
        await until(() => {
          partsOf(hub).pool.use(["faulty"]);
          return hub.status()[0]!.state === "connected";
        }, "the retry");
        await agent.invoke({ messages: "go" });
        expect(seen.at(-1)!.tools).toContain("mcp__faulty__echo");
      },
      { timeouts: { retryFailedAfterMs: 1 } },
    );
    await server.close();
  });

  it("hub.reconnect opens a server that died, and held tools work again", async () => {
    await beside(stdioFixture(), async (hub) => {
      const echo = (await hub.getTools({ servers: ["faulty"], tools: ["echo"] }))[0]!;
      await expect(hub.callTool("faulty", "die")).rejects.toMatchObject({ code: "UNANSWERED" });
      expect(hub.status()[0]).toMatchObject({
        state: "failed",
        error: expect.stringContaining("exited with code 3"),
      });
      await expect(hub.callTool("faulty", "echo", { text: "x" })).rejects.toMatchObject({
        code: "SESSION_LOST",
        message: expect.stringContaining('hub.reconnect("faulty")'),
      });
      expect(await echo.invoke({ text: "x" })).toContain("is not available now");
      await hub.reconnect("faulty");
      expect(await echo.invoke({ text: "back" })).toContain("back");
    });
  });
});

describe("tool lists with faults", () => {
  it.each([
    ["that repeats a page", { loopPages: true }, 8],
    ["with an empty cursor that ends", { emptyCursor: "end" }, 10],
    ["with an empty cursor that loops", { emptyCursor: "loop" }, 10],
    ["of 2,000 tools in pages of 50", { tools: 1_990, pageSize: 50 }, 2_000],
    ["without end", { endlessPages: true }, 20],
  ])("reads a listing %s", async (_what, options, tools) => {
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture(options) },
      warnings: "silent",
      limits: { maxListPages: "pageSize" in options ? 200 : 20 },
    });
    await hub.connect(["s"], { onFailure: "throw" });
    expect(hub.status()[0]!.tools).toBe(tools);
  });

  it("repairs malformed tools, drops unusable ones, keeps the rest, and reports it", async () => {
    const raw = [
      { name: "no_type", inputSchema: { properties: { a: { type: "string" } }, required: ["a"] } },
      { name: "bad_output", inputSchema: { type: "object" }, outputSchema: "nonsense" },
      { name: "no_schema" },
      { description: "nameless", inputSchema: { type: "object" } },
      null,
      { name: "echo", description: "a second one", inputSchema: { type: "object" } },
    ];
    const warnings: string[] = [];
    await using hub = new McpHub({ mcpServers: { s: stdioFixture({ raw }) } });
    hub.on("warning", ({ code, message }) => warnings.push(`${code} ${message}`));
    await hub.connect();
    const names = hub.snapshot("s")!.tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "no_type", "bad_output", "no_schema"]));
    expect(hub.status()[0]!.tools).toBe(13);
    expect(warnings.filter((text) => text.startsWith("TOOL_DROPPED"))).toHaveLength(3);
    expect(warnings.filter((text) => text.startsWith("TOOL_MENDED"))).toHaveLength(2);
    expect((await hub.callTool("s", "no_type", { a: "x" })).content).toContain(
      '"called":"no_type"',
    );
    await expect(hub.callTool("s", "no_type", {})).rejects.toMatchObject({
      code: "INVALID_ARGUMENTS",
      rpcCode: -32602,
    });
  });
});

describe("calls with faults", () => {
  it("isolates parallel calls, one of which times out", async () => {
    const servers = { s: stdioFixture({}, { toolTimeoutMs: 300 }) };
    await using hub = new McpHub({ mcpServers: servers, timeouts: { startupDeadlineMs: 20_000 } });
    const model = scripted(
      calling(
        { name: "mcp__s__echo", args: { text: "a" }, id: "a" },
        { name: "mcp__s__slow", args: { ms: 60_000 }, id: "b" },
        { name: "mcp__s__echo", args: { text: "c" }, id: "c" },
      ),
      "done",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(hub)] });
    const answers = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect([answers["a"]!.status, answers["b"]!.status, answers["c"]!.status]).toEqual([
      "success",
      "error",
      "success",
    ]);
    expect(answers["b"]!.text).toContain("did not answer the call of mcp__s__slow in time");
    expect(answers["b"]!.artifact).toMatchObject({ errorCode: "REQUEST_TIMEOUT" });
  });

  it("lets progress extend a call beyond its timeout, up to the total limit", async () => {
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      timeouts: { toolTimeoutMs: 400, maxToolTimeoutMs: 1_500 },
    });
    expect((await hub.callTool("s", "slow", { ms: 1_000, steps: 10 })).content).toContain("slept");
    await expect(hub.callTool("s", "slow", { ms: 20_000, steps: 200 })).rejects.toMatchObject({
      code: "REQUEST_TIMEOUT",
      message: expect.stringContaining("maxToolTimeoutMs"),
    });
  });

  it("keeps calls in flight under the limit", async () => {
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      limits: { maxConcurrentCalls: 4 },
    });
    await hub.connect();
    await Promise.all(Array.from({ length: 20 }, () => hub.callTool("s", "slow", { ms: 20 })));
    const { content } = await hub.callTool("s", "stats");
    expect((JSON.parse(content.split("\n")[1]!) as { maxInFlight: number }).maxInFlight).toBe(4);
  });

  it("refuses unknown servers and tools, and names the known ones", async () => {
    await using hub = new McpHub({ mcpServers: { s: stdioFixture() } });
    expect(
      McpNotFoundError.isInstance(await hub.callTool("t", "echo").catch((error: unknown) => error)),
    ).toBe(true);
    await expect(hub.callTool("t", "echo")).rejects.toThrow("Known servers: s.");
    await expect(hub.callTool("s", "nope")).rejects.toThrow(
      /has no tool "nope". It has 10: big, change_tools/,
    );
    await expect(hub.callTool("s", "rpc_error")).rejects.toMatchObject({
      code: "SERVER_ERROR",
      rpcCode: -32602,
    });
    expect(
      McpProtocolError.isInstance(
        await hub.callTool("s", "rpc_error").catch((error: unknown) => error),
      ),
    ).toBe(true);
  });

  it("repairs JSON text, missing arguments and defaults before the check", async () => {
    const tools = [
      {
        name: "list",
        inputSchema: {
          type: "object",
          properties: {
            items: { type: "array", items: { type: "integer" } },
            note: { type: "string" },
          },
          required: ["items"],
        },
      },
      {
        name: "shot",
        inputSchema: {
          type: "object",
          properties: { type: { enum: ["png", "jpeg"], default: "png" } },
          required: ["type"],
        },
      },
    ];
    await using hub = new McpHub({ mcpServers: { s: stdioFixture({ tools }) }, envelope: false });
    const call = async (tool: string, args: unknown) =>
      JSON.parse((await hub.callTool("s", tool, args)).content) as unknown;
    expect(await call("list", { items: "[1,2]", note: "[1,2]" })).toEqual({
      called: "list",
      arguments: { items: [1, 2], note: "[1,2]" },
    });
    expect(await call("shot", null)).toEqual({ called: "shot", arguments: { type: "png" } });
    await expect(call("list", { items: "soon" })).rejects.toThrow(
      /items: .*Expected: items: array of integer \(required\), note: string/,
    );
  });
});

describe("closing", () => {
  it("ends a stubborn server and its helper within a second", async () => {
    const [server, helper] = [pidFile(), pidFile()];
    const hub = new McpHub({
      mcpServers: { s: stdioFixture({ stubborn: true, pidFile: server, helper }) },
    });
    await hub.connect();
    expect([isRunning(pidIn(server)), isRunning(pidIn(helper))]).toEqual([true, true]);
    const startedAt = performance.now();
    await hub.close();
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect([isRunning(pidIn(server)), isRunning(pidIn(helper))]).toEqual([false, false]);
  });

  it("ends npx, npm and node of a server that npx started", async () => {
    const hub = new McpHub({
      mcpServers: { memory: { command: "npx", args: ["mcp-server-memory"] } },
    });
    await hub.connect(undefined, { onFailure: "throw" });
    const pid = await groupOf(hub);
    expect(isRunning(pid)).toBe(true);
    await hub.close();
    expect(isRunning(pid)).toBe(false);
  });

  it("closes while connecting, twice, and refuses calls afterwards", async () => {
    const file = pidFile();
    const hub = new McpHub({ mcpServers: { s: stdioFixture({ hang: true, pidFile: file }) } });
    const connecting = hub.connect();
    await until(() => hub.status()[0]!.state === "connecting");
    await Promise.all([hub.close(), hub.close()]);
    expect((await connecting).failed[0]!.error).toMatchObject({ code: "CLOSED" });
    expect(hub.status()[0]!.state).toBe("closed");
    await expect(hub.callTool("s", "echo", { text: "x" })).rejects.toMatchObject({
      code: "CLOSED",
    });
  });

  it("ends remote sessions with the server", async () => {
    const http = await serveHttp();
    const hub = new McpHub({ mcpServers: { s: { url: http.url } } });
    await hub.connect();
    await hub.close();
    expect(http.stats.deletes).toBe(1);
    await http.close();
  });

  it("adds no exit or signal listeners with further hubs and removes them with the last", async () => {
    const counts = () =>
      ["exit", "SIGINT", "SIGTERM", "SIGHUP"].map((event) => process.listenerCount(event));
    const before = counts();
    const during: number[][] = [];
    for (let cycle = 0; cycle < 12; cycle += 1) {
      await using hub = new McpHub({ mcpServers: { s: stdioFixture() } });
      await hub.connect();
      during.push(counts());
    }
    expect(new Set(during.map(String)).size).toBe(1);
    expect(counts()).toEqual(before);
  });
});

/** Process id of the only stdio server of a hub. */
async function groupOf(hub: McpHub): Promise<number> {
  const client = await hub.getClient("memory");
  return (client.transport as unknown as { pid: number }).pid;
}
