import { partsOf } from "../../src/hub/hubParts.js";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { createAgent } from "langchain";

import {
  McpHub,
  mcpMiddleware,
  type McpEvents,
  type McpHubOptions,
  type McpServerEntry,
} from "../../src/index.js";
import { makeServer } from "../fixtures/servers/fixtureServer.mjs";
import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";
import { serveWebSocket, type WebSocketFixture } from "../fixtures/servers/webSocket.mjs";
import { answersOf, calling, scripted } from "../support/agents.js";
import { isRunning, stdioFixture, until } from "../support/servers.js";

const QUICK: Partial<McpHubOptions> = {
  warnings: "silent",
  timeouts: { startupDeadlineMs: 20_000, searchWaitMs: 20_000 },
};
const SOON = { enabled: true, delayMs: 10 };

/** A server that can be broken, reached in one of the ways. */
interface Breakable {
  readonly entry: McpServerEntry;
  /** Ends the server as it is; a child process can be started again at once. */
  readonly kill: () => Promise<void>;
  /** Ends the server so that it cannot be reached until `back`. */
  readonly leave: () => Promise<void>;
  /** Makes the server reachable again, at the same place. */
  readonly back: () => Promise<void>;
  readonly close: () => Promise<void>;
  /** How often a tool ran, over all its lives. */
  readonly ran: (toolName: string) => number;
}

const folder = mkdtempSync(join(tmpdir(), "mcp-connections-"));
let files = 0;

async function stdio(): Promise<Breakable> {
  const pidFile = join(folder, `pid-${(files += 1)}`);
  const awayFile = `${pidFile}-away`;
  const kill = async (): Promise<void> =>
    void process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
  return {
    entry: stdioFixture({ pidFile, awayFile }, { restart: SOON }),
    kill,
    leave: async () => {
      writeFileSync(awayFile, "");
      await kill();
    },
    back: async () => rmSync(awayFile, { force: true }),
    close: async () => undefined,
    ran: () => Number.NaN,
  };
}

function remote(
  serve: (options: Record<string, unknown>) => Promise<HttpFixture | WebSocketFixture>,
  urlOf: (fixture: never) => McpServerEntry,
) {
  return async (): Promise<Breakable> => {
    const lives = [await serve({})];
    const { port } = lives[0]!;
    return {
      entry: { ...urlOf(lives[0] as never), reconnect: SOON },
      kill: () => lives.at(-1)!.close(),
      leave: () => lives.at(-1)!.close(),
      back: async () => void lives.push(await serve({ port })),
      close: () => lives.at(-1)!.close(),
      ran: (toolName) =>
        lives.reduce((sum, { stats }) => sum + (stats.callsByTool[toolName] ?? 0), 0),
    };
  };
}

const http = remote(serveHttp, ({ url }: HttpFixture) => ({ url }));
const sse = remote(serveHttp, ({ sseUrl }: HttpFixture) => ({ url: sseUrl, transport: "sse" }));
const webSocket = remote(serveWebSocket, ({ url }: WebSocketFixture) => ({ url }));

describe.each([
  ["stdio", stdio],
  ["streamable HTTP", http],
  ["SSE", sse],
  ["WebSocket", webSocket],
])("over %s", (transport, make) => {
  let server: Breakable;
  let hub: McpHub;
  let events: McpEvents["connection"][];

  beforeEach(async () => {
    server = await make();
    hub = new McpHub({
      mcpServers: { s: server.entry, good: stdioFixture() },
      ...QUICK,
      timeouts: { ...QUICK.timeouts, connectTimeoutMs: 5_000 },
    });
    events = [];
    hub.on("connection", (event) => event.serverName === "s" && events.push(event));
    await hub.connect(undefined, { onFailure: "throw" });
  });
  afterEach(async () => {
    await hub.close();
    await server.close();
  });

  const stateOf = (): string => hub.status()[0]!.state;
  const echo = (text: string): Promise<string> =>
    hub.callTool("s", "echo", { text }).then(({ content }) => content);

  it("answers, and its status is connected", async () => {
    expect(await echo("hello")).toContain("\nhello\n");
    expect(hub.status()[0]).toMatchObject({ state: "connected", tools: 10 });
  });

  it("is reconnected after it was killed, also for held tools, and the others are not affected", async () => {
    const held = (await hub.getTools({ servers: ["s"], tools: ["echo"] }))[0]!;
    await server.kill();
    await until(async () => {
      await hub.callTool("s", "pid").catch(() => undefined);
      return stateOf() !== "connected" || events.some(({ state }) => state === "reconnecting");
    }, "the loss");
    expect((await hub.callTool("good", "echo", { text: "still here" })).status).toBe("success");
    await server.back();
    await until(
      async () => String(await held.invoke({ text: "again" })).includes("\nagain\n"),
      "the tool that was held",
    );
    expect(hub.status()[0]).toMatchObject({ state: "connected" });
    expect(events.map(({ state }) => state)).toEqual(
      expect.arrayContaining(["reconnecting", "connected"]),
    );
  });

  it("gives up after a series of attempts, tells the model, and is reconnected by hub.reconnect", async () => {
    await server.leave();
    await until(async () => {
      await echo("x").catch(() => undefined);
      return stateOf() === "failed";
    }, "the end of the series");
    const waits = events.filter(
      ({ state, backoffMs }) => state === "reconnecting" && backoffMs !== undefined,
    );
    expect(waits).toHaveLength(5);
    const agent = createAgent({
      model: scripted(
        calling(
          { name: "mcp__s__echo", args: { text: "x" }, id: "c" },
          { name: "search_mcp_tools", args: { query: "mcp__s__echo" }, id: "f" },
        ),
        "ok",
      ),
      middleware: [mcpMiddleware(hub)],
    });
    const answers = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect(answers["c"]).toMatchObject({ status: "error" });
    expect(answers["c"]!.text).toBe(
      'Server "s" is not available now. Use other tools, or try again later.',
    );
    expect(answers["f"]!.text).toContain("Not available now: s (failed)");
    await server.back();
    await hub.reconnect("s");
    expect(await echo("by hand")).toContain("by hand");
  });

  it("does not repeat a slow call that times out, and stays connected when a ping is answered", async () => {
    const slow = new McpHub({
      mcpServers: { s: server.entry },
      ...QUICK,
      timeouts: { ...QUICK.timeouts, toolTimeoutMs: 100 },
    });
    await expect(slow.callTool("s", "slow", { ms: 400 })).rejects.toMatchObject({
      code: "REQUEST_TIMEOUT",
    });
    expect((await slow.callTool("s", "stats")).content).toContain('"slow":1');
    expect(slow.status()[0]!.state).toBe("connected");
    await slow.close();
  });

  it("is listed rarely when it announces a flood of changes", async () => {
    const flooding = { tools: [{ name: "flood", inputSchema: { type: "object" } }] };
    const made =
      transport === "stdio"
        ? { entry: stdioFixture(flooding), close: async () => undefined }
        : await floodServer(transport, flooding);
    const flooded = new McpHub({ mcpServers: { s: made.entry }, ...QUICK });
    await flooded.callTool("s", "flood", { n: 20 });
    await until(
      async () =>
        Number(/"listTools":(\d+)/.exec((await flooded.callTool("s", "stats")).content)![1]) > 1,
      "the listing",
    );
    expect(
      Number(/"listTools":(\d+)/.exec((await flooded.callTool("s", "stats")).content)![1]),
    ).toBeLessThanOrEqual(3);
    await flooded.close();
    await made.close();
  });

  it("closes twice, in the middle of a call, and leaves nothing behind", async () => {
    const call = hub.callTool("s", "slow", { ms: 5_000 });
    const settled = expect(call).rejects.toMatchObject({
      code: expect.stringMatching(/UNANSWERED|CLOSED/),
    });
    await until(
      async () => /"maxInFlight":[2-9]/.test((await hub.callTool("s", "stats")).content),
      "the call",
    );
    await Promise.all([hub.close(), hub.close()]);
    await settled;
    await hub.close();
    expect(stateOf()).toBe("closed");
  });

  it("lets calls in flight end when it drains, and refuses new ones", async () => {
    const call = hub.callTool("s", "slow", { ms: 300 });
    await until(
      async () => /"maxInFlight":[2-9]/.test((await hub.callTool("s", "stats")).content),
      "the call",
    );
    const closing = hub.close({ drainMs: 5_000 });
    await expect(hub.callTool("s", "echo", { text: "late" })).rejects.toMatchObject({
      code: "CLOSED",
    });
    expect((await call).content).toContain("slept");
    await closing;
  });
});

async function floodServer(
  transport: string,
  options: object,
): Promise<{ entry: McpServerEntry; close: () => Promise<void> }> {
  if (transport === "WebSocket") {
    const fixture = await serveWebSocket({ ...options });
    return { entry: { url: fixture.url }, close: fixture.close };
  }
  const fixture = await serveHttp({ ...options });
  return {
    entry: transport === "SSE" ? { url: fixture.sseUrl, transport: "sse" } : { url: fixture.url },
    close: fixture.close,
  };
}

describe("a lost session", () => {
  it.each([404, 400, 401, 503, 200])(
    "reported as %s is replaced by a new one, and the call that did not run is repeated once",
    async (lostAs) => {
      const fixture = await serveHttp({ lostAs });
      const hub = new McpHub({ mcpServers: { s: { url: fixture.url } }, ...QUICK });
      await hub.callTool("s", "echo", { text: "1" });
      fixture.forgetSessions();
      const results = await Promise.all(
        ["2", "3", "4"].map((text) => hub.callTool("s", "echo", { text })),
      );
      expect(results.map(({ status }) => status)).toEqual(["success", "success", "success"]);
      expect(fixture.stats.callsByTool).toEqual({ echo: 4 });
      expect(fixture.stats.sessions).toBe(2);
      await hub.close();
      await fixture.close();
    },
  );

  it("over SSE is replaced by a new one", async () => {
    const fixture = await serveHttp();
    const hub = new McpHub({
      mcpServers: { s: { url: fixture.sseUrl, transport: "sse", reconnect: SOON } },
      ...QUICK,
    });
    await hub.callTool("s", "echo", { text: "1" });
    fixture.breakConnections();
    await until(
      async () =>
        (await hub.callTool("s", "echo", { text: "2" }).catch(() => undefined))?.status ===
        "success",
      "the session",
    );
    await hub.close();
    await fixture.close();
  });
});

describe("a connection that breaks during an answer", () => {
  it.each<[string, McpServerEntry, number]>([
    ["is not repeated: whether it ran is not known", {}, 1],
    ["is repeated when the tool is idempotent", { idempotent: ["echo"] }, 2],
  ])("%s", async (_name, more, ran) => {
    const fixture = await serveHttp({ resetTool: "echo", resetOnce: true });
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url, ...more } }, ...QUICK });
    const startedAt = performance.now();
    const answer = await hub.callTool("s", "echo", { text: "x" }).catch((error: unknown) => error);
    if (ran === 1) expect(answer).toMatchObject({ code: "UNANSWERED", mayHaveRun: true });
    else expect(answer).toMatchObject({ status: "success" });
    // At once, not after the timeout of the call.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(fixture.stats.callsByTool).toEqual({ echo: ran });
    expect((await hub.callTool("s", "stats")).status).toBe("success");
    expect(hub.status()[0]!.state).toBe("connected");
    await hub.close();
    await fixture.close();
  });

  it("is repeated for a tool whose annotations are trusted, and not for one whose annotations are not", async () => {
    const tools = [
      { name: "look", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } },
    ];
    for (const [trustAnnotations, ran] of [
      [true, 2],
      [false, 1],
    ] as const) {
      const fixture = await serveHttp({ tools, resetTool: "look", resetOnce: true });
      const hub = new McpHub({
        mcpServers: { s: { url: fixture.url, trustAnnotations } },
        ...QUICK,
      });
      await hub.callTool("s", "look").catch(() => undefined);
      expect(fixture.stats.callsByTool).toEqual({ look: ran });
      await hub.close();
      await fixture.close();
    }
  });

  it("over WebSocket ends the call at once", async () => {
    const fixture = await serveWebSocket();
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url, reconnect: SOON } }, ...QUICK });
    await hub.connect();
    const call = expect(hub.callTool("s", "slow", { ms: 20_000 })).rejects.toMatchObject({
      code: "UNANSWERED",
    });
    await until(() => fixture.stats.calls === 1, "the call");
    fixture.breakConnections();
    await call;
    await until(() => hub.status()[0]!.state === "connected", "the reconnect");
    expect(fixture.stats.callsByTool).toEqual({ slow: 1 });
    await hub.close();
    await fixture.close();
  });
});

describe("a web server in front of the MCP server", () => {
  it.each([
    [
      429,
      { "retry-after": "30" },
      "SERVER_BUSY",
      false,
      /is busy \(HTTP 429\) and did not run .* Try again after \d{4}-/,
    ],
    [503, {}, "SERVER_BUSY", false, /is busy \(HTTP 503\) and did not run .* Try again later/],
    [502, {}, "UNANSWERED", true, /the connection broke \(HTTP 502\). Whether it ran is not known/],
    [504, {}, "UNANSWERED", true, /HTTP 504/],
  ])(
    "that answers a call with %i says so, and stays in use",
    async (status, headers, code, mayHaveRun, text) => {
      const fixture = await serveHttp();
      const hub = new McpHub({
        mcpServers: { s: { url: fixture.url } },
        ...QUICK,
        limits: { breakerFailures: 2 },
      });
      const [tool] = await hub.getTools({ servers: ["s"], tools: ["echo"] });
      fixture.options["callStatus"] = { status, headers };
      for (let call = 0; call < 4; call += 1) {
        await expect(hub.callTool("s", "echo", { text: "x" })).rejects.toMatchObject({
          code,
          mayHaveRun,
          httpStatus: status,
        });
      }
      const call = { type: "tool_call" as const, id: "1", name: tool!.name, args: { text: "x" } };
      expect((await tool!.invoke(call)).text).toMatch(text);
      fixture.options["callStatus"] = undefined;
      expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
      await hub.close();
      await fixture.close();
    },
  );

  it("that is not there did not run the call", async () => {
    const fixture = await serveHttp();
    const hub = new McpHub({
      mcpServers: { s: { url: fixture.url, reconnect: { enabled: false } } },
      ...QUICK,
    });
    await hub.connect();
    await fixture.close();
    // The first call may find the connection open still.
    await hub.callTool("s", "echo", { text: "x" }).catch(() => undefined);
    await expect(hub.callTool("s", "echo", { text: "x" })).rejects.toMatchObject({
      mayHaveRun: false,
    });
    await hub.close();
  });
});

describe("a server that goes silent", () => {
  it.each(["http", "webSocket"])(
    "over %s (half-open) is lost when neither call nor ping is answered",
    async (kind) => {
      const fixture = kind === "http" ? await serveHttp() : await serveWebSocket();
      const hub = new McpHub({
        mcpServers: { s: { url: fixture.url, reconnect: { enabled: false } } },
        ...QUICK,
        timeouts: { ...QUICK.timeouts, toolTimeoutMs: 100 },
      });
      await hub.connect();
      fixture.options["frozen"] = true;
      await expect(hub.callTool("s", "echo", { text: "x" })).rejects.toMatchObject({
        code: "REQUEST_TIMEOUT",
      });
      await until(() => hub.status()[0]!.state === "failed", "the loss");
      fixture.options["frozen"] = false;
      await hub.reconnect("s");
      expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
      await hub.close();
      await fixture.close();
    },
    20_000,
  );

  it("over stdio (a stopped process) is lost, restarted, and leaves no process", async () => {
    const pidFile = join(folder, `pid-${(files += 1)}`);
    const tools = [{ name: "freeze", inputSchema: { type: "object" } }];
    const entry = stdioFixture(
      { pidFile, tools },
      { restart: SOON, toolTimeoutMs: 100, requestTimeoutMs: 300 },
    );
    const hub = new McpHub({ mcpServers: { s: entry }, ...QUICK });
    await hub.connect();
    const stopped = Number(readFileSync(pidFile, "utf8"));
    await expect(hub.callTool("s", "freeze")).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
    await until(() => Number(readFileSync(pidFile, "utf8")) !== stopped, "the restart");
    await until(() => !isRunning(stopped), "the end of the stopped process");
    await hub.close();
  }, 20_000);
});

describe("a standing stream", () => {
  it("that ends at once is opened a few times with growing waits, then no more, and the tools are listed by age", async () => {
    const fixture = await serveHttp({ standing: "close" });
    const hub = new McpHub({
      mcpServers: { s: { url: fixture.url } },
      ...QUICK,
      timeouts: { ...QUICK.timeouts, toolListTtlMs: 50 },
    });
    await hub.connect();
    await until(() => fixture.stats.streams >= 3, "the third stream");
    expect(hub.status()[0]!.state).toBe("connected");
    expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
    await hub.close();
    const { streams } = fixture.stats;
    expect(streams).toBeLessThanOrEqual(5);
    await fixture.close();
  }, 20_000);

  it("that is answered with plain text counts as none", async () => {
    const fixture = await serveHttp({ standing: "text" });
    const hub = new McpHub({
      mcpServers: { s: { url: fixture.url } },
      ...QUICK,
      timeouts: { ...QUICK.timeouts, toolListTtlMs: 1 },
    });
    await hub.connect();
    expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
    expect(fixture.stats.streams).toBe(1);
    // Announcements do not reach us: the list is made anew by its age.
    await until(() => {
      partsOf(hub).pool.use(["s"]);
      return fixture.stats.listTools >= 2;
    }, "the listing");
    await hub.close();
    await fixture.close();
  });
});

describe("lists besides tools", () => {
  it("are kept until the server announces a change, and then listed again", async () => {
    const fixture = await serveHttp({ prompts: [{ name: "one" }, { name: "two" }] });
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url } }, ...QUICK });
    const events: McpEvents["catalog"][] = [];
    hub.on("catalog", (event) => event.kind === "prompts" && events.push(event));
    for (let turn = 0; turn < 3; turn += 1) expect(await hub.listPrompts("s")).toHaveLength(2);
    expect(fixture.stats.listPrompts).toBe(1);
    await until(() => fixture.stats.streams > 0, "the standing stream");
    fixture.options["prompts"] = [{ name: "two", description: "other" }, { name: "three" }];
    await fixture.announcePrompts();
    await until(() => events.length > 0, "the announcement");
    expect(events).toEqual([
      { serverName: "s", kind: "prompts", added: ["three"], removed: ["one"], changed: ["two"] },
    ]);
    expect(await hub.listPrompts("s")).toHaveLength(2);
    expect(fixture.stats.listPrompts).toBe(2);
    expect(await hub.listResources("s")).toEqual([]);
    await hub.close();
    await fixture.close();
  });
});

const TOO_LARGE = {
  code: "MESSAGE_TOO_LARGE",
  message: expect.stringContaining("larger than 10 MB (limits.maxMessageBytes)"),
};

describe("results larger than maxMessageBytes", () => {
  it.each<[string, () => Promise<Pick<Breakable, "entry" | "close">>]>([
    [
      "stdio",
      async () => ({ entry: stdioFixture({}, { restart: SOON }), close: async () => undefined }),
    ],
    [
      "WebSocket",
      async () => {
        const fixture = await serveWebSocket();
        return { entry: { url: fixture.url, reconnect: SOON }, close: fixture.close };
      },
    ],
    [
      "SSE",
      async () => {
        const fixture = await serveHttp();
        return {
          entry: { url: fixture.sseUrl, transport: "sse", reconnect: SOON },
          close: fixture.close,
        };
      },
    ],
  ])("over %s end the connection, which says why and is back", async (_name, make) => {
    const { entry, close } = await make();
    const hub = new McpHub({ mcpServers: { s: entry }, ...QUICK });
    await expect(hub.callTool("s", "big", { n: 11_000_000 })).rejects.toMatchObject(TOO_LARGE);
    await until(
      async () =>
        (await hub.callTool("s", "echo", { text: "x" }).catch(() => undefined))?.status ===
        "success",
      "the restart",
    );
    await hub.close();
    await close();
  });

  it.each([
    ["an event stream", {}],
    ["plain JSON", { json: true }],
  ])(
    "over streamable HTTP with %s end the call alone, and the server is not asked again",
    async (_name, options) => {
      const fixture = await serveHttp(options);
      const hub = new McpHub({
        mcpServers: { s: { url: fixture.url, idempotent: ["big"] } },
        ...QUICK,
      });
      await hub.callTool("s", "echo", { text: "x" });
      const calls = fixture.stats.calls;
      await expect(hub.callTool("s", "big", { n: 11_000_000 })).rejects.toMatchObject(TOO_LARGE);
      expect(fixture.stats.calls).toBe(calls + 1);
      expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
      await hub.close();
      await fixture.close();
    },
  );

  it("arrive when the limit is raised", async () => {
    const fixture = await serveHttp();
    const limits = { maxMessageBytes: 20_000_000 };
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url } }, ...QUICK, limits });
    expect(
      (await hub.callTool("s", "big", { n: 11_000_000 })).artifact.truncated?.totalChars,
    ).toBeGreaterThan(11_000_000);
    await hub.close();
    await fixture.close();
  });
});

describe("the breaker", () => {
  it("opens after failures in a row, refuses all calls, and lets one probe through after its time", async () => {
    const fixture = await serveHttp();
    const hub = new McpHub({
      mcpServers: { s: { url: fixture.url, toolTimeoutMs: 50 } },
      ...QUICK,
      limits: { breakerFailures: 3 },
      timeouts: { ...QUICK.timeouts, breakerOpenMs: 2_000 },
    });
    await hub.connect();
    for (let call = 0; call < 3; call += 1) {
      await expect(hub.callTool("s", "slow", { ms: 200 })).rejects.toMatchObject({
        code: "REQUEST_TIMEOUT",
      });
    }
    const { calls } = fixture.stats;
    const model = scripted(
      calling(
        ...Array.from({ length: 20 }, (_, index) => ({
          name: "mcp__s__echo",
          args: { text: "x" },
          id: `c${index}`,
        })),
      ),
      "ok",
    );
    const agent = createAgent({ model, middleware: [mcpMiddleware(hub)] });
    const answers = Object.values(answersOf((await agent.invoke({ messages: "go" })).messages));
    expect(answers).toHaveLength(20);
    for (const { text } of answers)
      expect(text).toMatch(/^Server "s" is unavailable until \d{4}-.*Do not call it before/);
    expect(fixture.stats.calls).toBe(calls);
    expect(hub.status()[0]).toMatchObject({
      state: "connected",
      unavailableUntil: expect.stringMatching(/^\d{4}-/),
    });
    await until(
      async () =>
        (await hub.callTool("s", "echo", { text: "x" }).catch(() => undefined))?.status ===
        "success",
      "the probe",
    );
    expect(hub.status()[0]).not.toHaveProperty("unavailableUntil");
    await hub.close();
    await fixture.close();
  });

  it("stays closed for tools that fail and requests that are refused", async () => {
    const hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      ...QUICK,
      limits: { breakerFailures: 2 },
    });
    for (let call = 0; call < 5; call += 1) {
      expect((await hub.callTool("s", "fail")).status).toBe("error");
      await expect(hub.callTool("s", "rpc_error")).rejects.toMatchObject({ code: "SERVER_ERROR" });
    }
    expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
    await hub.close();
  });
});

describe("closing", () => {
  it("ends a wait for the next attempt: no further connect", async () => {
    const fixture = await serveHttp();
    const { url, port } = fixture;
    const hub = new McpHub({
      mcpServers: { s: { url, reconnect: { enabled: true, delayMs: 200 } } },
      ...QUICK,
    });
    await hub.connect();
    await fixture.close();
    await hub.callTool("s", "echo", { text: "x" }).catch(() => undefined);
    await until(() => hub.status()[0]!.nextAttemptAt !== undefined, "the wait");
    await hub.close();
    const again = await serveHttp({ port });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(again.stats.initialize).toBe(0);
    expect(hub.status()[0]!.state).toBe("closed");
    await again.close();
  });
});

describe("regressions", () => {
  it("a break that ends many calls does not open the breaker", async () => {
    const fixture = await serveHttp();
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url, reconnect: SOON } }, ...QUICK });
    await hub.connect();
    const calls = [1, 2, 3, 4, 5].map(() =>
      hub.callTool("s", "slow", { ms: 10_000 }).catch(() => "broken"),
    );
    await until(() => fixture.stats.calls === 5, "the calls");
    fixture.breakConnections();
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 5 }, () => "broken"));
    await until(
      async () =>
        (await hub.callTool("s", "echo", { text: "x" }).catch(() => undefined))?.status ===
        "success",
      "an answer",
    );
    expect(hub.status()[0]).not.toHaveProperty("unavailableUntil");
    await hub.close();
    await fixture.close();
  });

  it("a child that answers and dies at once is not started without end", async () => {
    const starts = join(folder, "starts");
    const script = `
      require("node:fs").appendFileSync(${JSON.stringify(starts)}, "x");
      const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
      require("node:readline").createInterface(process.stdin).on("line", (line) => {
        const { id, method } = JSON.parse(line);
        if (method === "initialize") answer(id, { protocolVersion: "2025-06-18", capabilities: { tools: {}, logging: {} }, serverInfo: { name: "d", version: "1" } });
        if (method === "tools/list") {
          answer(id, { tools: [] });
          console.log(JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "ready" } }));
          setTimeout(() => process.exit(1), 20);
        }
      });`;
    const restart = { enabled: true, delayMs: 10, maxAttempts: 4 };
    const hub = new McpHub({
      mcpServers: { s: { command: process.execPath, args: ["-e", script], restart } },
      ...QUICK,
    });
    await hub.connect();
    await until(() => hub.status()[0]!.state === "failed", "the end of the series");
    expect(readFileSync(starts, "utf8").length).toBeLessThanOrEqual(7);
    await hub.close();
  });

  it("stray lines on stdout do not lead to endless pings", async () => {
    const script = `
      let pings = 0;
      const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
      require("node:readline").createInterface(process.stdin).on("line", (line) => {
        const { id, method } = JSON.parse(line);
        if (method === "initialize") answer(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "d", version: "1" } });
        if (method === "tools/list") answer(id, { tools: [{ name: "pings", inputSchema: { type: "object" } }] });
        if (method === "ping") { pings += 1; answer(id, {}); }
        if (method === "tools/call") answer(id, { content: [{ type: "text", text: String(pings) }] });
        setTimeout(() => console.log("handled " + method), 5);
      });`;
    const hub = new McpHub({
      mcpServers: { s: { command: process.execPath, args: ["-e", script] } },
      ...QUICK,
    });
    for (let call = 0; call < 20; call += 1)
      expect((await hub.callTool("s", "pings")).content).toContain("\n0\n");
    await hub.close();
  });

  it("a call that waits for an attempt does not fail when someone reconnects the server", async () => {
    const fixture = await serveHttp({ delayMs: 100 });
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url, reconnect: SOON } }, ...QUICK });
    await hub.connect();
    fixture.forgetSessions();
    const calls = [1, 2, 3].map(() => hub.callTool("s", "echo", { text: "x" }));
    await until(() => hub.status()[0]!.state === "reconnecting", "the loss");
    await hub.reconnect("s");
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([
      "success",
      "success",
      "success",
    ]);
    await hub.close();
    await fixture.close();
  });

  it("reconnect does not wait for a connect that hangs, nor close for a wait", async () => {
    const fixture = await serveHttp({ hang: true });
    const hub = new McpHub({
      mcpServers: { s: { url: fixture.url, reconnect: { delayMs: 20_000 } } },
      ...QUICK,
    });
    const first = hub.connect();
    await until(() => fixture.stats.headers.length > 0, "the request");
    delete fixture.options["hang"];
    const startedAt = performance.now();
    await hub.reconnect("s");
    await first;
    fixture.options["status"] = 500;
    fixture.forgetSessions();
    await hub.callTool("s", "echo", { text: "x" }).catch(() => undefined);
    await hub.close();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await fixture.close();
  });

  it("prompts from before a restart are not used after it", async () => {
    const fixture = await serveHttp({ prompts: [{ name: "old" }] });
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url } }, ...QUICK });
    expect(await hub.listPrompts("s")).toEqual([{ name: "old" }]);
    fixture.options["prompts"] = [{ name: "new" }];
    fixture.forgetSessions();
    await hub.reconnect("s");
    expect(await hub.listPrompts("s")).toEqual([{ name: "new" }]);
    await hub.close();
    await fixture.close();
  });

  it("an announced change is not forgotten when its listing failed once", async () => {
    const fixture = await serveHttp();
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url } }, ...QUICK });
    await hub.connect();
    await until(() => fixture.stats.streams > 0, "the standing stream");
    fixture.options["failList"] = true;
    fixture.options["tools"] = [{ name: "brand_new", inputSchema: { type: "object" } }];
    const { listTools } = fixture.stats;
    await fixture.announce();
    await until(() => fixture.stats.listTools > listTools, "the listing that fails");
    delete fixture.options["failList"];
    await until(
      () => hub.snapshot("s")!.tools.some(({ name }) => name === "brand_new"),
      "the next one",
    );
    await hub.close();
    await fixture.close();
  });

  it("a transport whose close() throws or never ends does not make hub.close() hang or throw", async () => {
    for (const end of [
      () => new Promise<void>(() => undefined),
      () => Promise.reject(new Error("no")),
      () => {
        throw new Error("no");
      },
    ]) {
      const createTransport = async () => {
        const [ours, theirs] = InMemoryTransport.createLinkedPair();
        await makeServer({}).server.connect(theirs);
        ours.close = end;
        return ours;
      };
      const hub = new McpHub({
        mcpServers: { s: { createTransport } },
        ...QUICK,
        timeouts: { ...QUICK.timeouts, closeTimeoutMs: 500 },
      });
      await hub.connect(undefined, { onFailure: "throw" });
      const startedAt = performance.now();
      await hub.close();
      expect(performance.now() - startedAt).toBeLessThan(2_000);
    }
  });

  it("a transport that fails at start and at close leaves no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", onUnhandled);
    const createTransport = () => ({
      start: () => Promise.resolve(),
      send: () => Promise.reject(new Error("cannot send")),
      close: () => Promise.reject(new Error("cannot close")),
    });
    const hub = new McpHub({ mcpServers: { s: { createTransport } }, ...QUICK });
    expect((await hub.connect()).failed[0]!.error.message).toContain("cannot send");
    await hub.close();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", onUnhandled);
    expect(unhandled).toEqual([]);
  });

  it("large requests leave no listeners on the pipe", async () => {
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", onWarning);
    const hub = new McpHub({ mcpServers: { s: stdioFixture() }, ...QUICK });
    for (let call = 0; call < 15; call += 1)
      await hub.callTool("s", "echo", { text: "x".repeat(300_000) });
    await hub.close();
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

describe("a host that does not close its hub", () => {
  it.each<[string, string, NodeJS.Signals | undefined]>([
    ["returns from its program", "return", undefined],
    ["calls process.exit", "exit", undefined],
    ["ends by an uncaught error", "throw", undefined],
    ["is ended by SIGTERM", "wait", "SIGTERM"],
    ["is ended by SIGINT", "wait", "SIGINT"],
  ])("and %s is not kept alive, and ends a stubborn server", async (_name, how, signal) => {
    const pidFile = join(folder, `pid-${(files += 1)}`);
    const script = fileURLToPath(new URL("../fixtures/hostLife.ts", import.meta.url));
    const host = spawn(process.execPath, ["--import", "tsx", script, how, pidFile], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    let printed = "";
    host.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    await until(() => printed.includes("ready"), "the host");
    if (signal !== undefined) host.kill(signal);
    await until(() => host.exitCode !== null || host.signalCode !== null, "the end of the host");
    await until(() => !isRunning(Number(readFileSync(pidFile, "utf8"))), "the end of the server");
  });
});

describe("a wrapper that is killed", () => {
  it("ends the server it started: the connection is lost, nothing is left, and hub.reconnect works", async () => {
    const pidFile = join(folder, `pid-${(files += 1)}`);
    const { command, args } = stdioFixture({ pidFile, stubborn: true });
    const script = `${command} ${args.map((arg) => `'${arg}'`).join(" ")} & echo $$ > ${pidFile}.sh; wait`;
    const hub = new McpHub({
      mcpServers: {
        s: { command: "sh", args: ["-c", `exec 3<&0; ${script.replace("&", "<&3 &")}`] },
      },
      ...QUICK,
    });
    await hub.connect(undefined, { onFailure: "throw" });
    const server = Number(readFileSync(pidFile, "utf8"));
    process.kill(Number(readFileSync(`${pidFile}.sh`, "utf8")), "SIGKILL");
    await until(() => hub.status()[0]!.state === "failed", "the loss");
    await until(() => !isRunning(server), "the end of the server");
    await hub.reconnect("s");
    expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
    await hub.close();
    expect(isRunning(Number(readFileSync(pidFile, "utf8")))).toBe(false);
  });
});

describe("other ways to reach a server", () => {
  it("a transport of your own, made for each opening", async () => {
    let made = 0;
    const createTransport = async () => {
      made += 1;
      const [ours, theirs] = InMemoryTransport.createLinkedPair();
      await makeServer({}).server.connect(theirs);
      return ours;
    };
    const hub = new McpHub({ mcpServers: { s: { createTransport } }, ...QUICK });
    expect((await hub.callTool("s", "echo", { text: "in memory" })).content).toContain("in memory");
    await hub.reconnect("s");
    expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
    expect([made, hub.status()[0]!.transport]).toEqual([2, "custom"]);
    await hub.close();
  });

  it("a client that you have stays yours", async () => {
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    await makeServer({}).server.connect(theirs);
    const client = new Client({ name: "mine", version: "1" });
    await client.connect(ours);
    const hub = new McpHub({ mcpServers: { s: { client } }, ...QUICK });
    expect((await hub.callTool("s", "echo", { text: "adopted" })).content).toContain("adopted");
    await hub.close();
    expect(client.transport).toBeDefined();
    await client.close();
    const closed = new McpHub({ mcpServers: { s: { client } }, ...QUICK });
    await expect(closed.connect(undefined, { onFailure: "throw" })).rejects.toThrow(
      /is not connected/,
    );
    await closed.close();
  });

  it("WebSocket with headers", async () => {
    const fixture = await serveWebSocket();
    const hub = new McpHub({
      mcpServers: { s: { url: fixture.url, headers: { Authorization: "Bearer secret-token" } } },
      ...QUICK,
    });
    await hub.connect(undefined, { onFailure: "throw" });
    expect(fixture.stats.headers[0]!["authorization"]).toBe("Bearer secret-token");
    expect(hub.status()[0]).toMatchObject({ transport: "websocket", state: "connected" });
    await hub.close();
    await fixture.close();
  });
});

describe("a long HTTP session", () => {
  it("leaves no listeners on a signal over 3,100 calls", async () => {
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", onWarning);
    const fixture = await serveHttp();
    const hub = new McpHub({ mcpServers: { s: { url: fixture.url } }, ...QUICK });
    for (let call = 0; call < 3_100; call += 10) {
      await Promise.all(Array.from({ length: 10 }, () => hub.callTool("s", "echo", { text: "x" })));
    }
    await hub.close();
    await fixture.close();
    process.off("warning", onWarning);
    expect(warnings).not.toContain("MaxListenersExceededWarning");
  }, 60_000);
});
