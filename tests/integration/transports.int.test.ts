import { partsOf } from "../../src/hub/hubParts.js";
import { performance } from "node:perf_hooks";

import { McpHub, type McpEvents } from "../../src/core.js";
import { childEnvironment } from "../../src/connect/stdio/environment.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { stdioFixture, until } from "../support/servers.js";

const echo = async (hub: McpHub, server = "s") =>
  (await hub.callTool(server, "echo", { text: "hello" })).content;

describe("streamable HTTP and SSE", () => {
  it("calls over streamable HTTP with the configured headers", async () => {
    const http = await serveHttp({ token: "t0ken" });
    await using hub = new McpHub({
      mcpServers: { s: { url: http.url, headers: { Authorization: "Bearer t0ken" } } },
    });
    expect(await echo(hub)).toContain("hello");
    expect(new Set(http.stats.headers.map((headers) => headers["authorization"]))).toEqual(
      new Set(["Bearer t0ken"]),
    );
    await hub.close();
    await http.close();
  });

  it("calls over SSE, with the headers on its stream too", async () => {
    const http = await serveHttp({ token: "t0ken" });
    await using hub = new McpHub({
      mcpServers: {
        s: { url: http.sseUrl, transport: "sse", headers: { Authorization: "Bearer t0ken" } },
      },
    });
    expect(await echo(hub)).toContain("hello");
    await hub.close();
    await http.close();
  });

  it("falls back to SSE, unless told not to", async () => {
    const http = await serveHttp({ sseOnly: true });
    await using hub = new McpHub({
      mcpServers: { s: { url: http.url }, no: { url: http.url, automaticSSEFallback: false } },
      warnings: "silent",
    });
    const { connected, failed } = await hub.connect();
    expect(connected).toEqual(["s"]);
    expect(failed.map(({ serverName }) => serverName)).toEqual(["no"]);
    expect(failed[0]!.error.message).toContain("HTTP 405");
    expect(await echo(hub)).toContain("hello");
    await hub.close();
    await http.close();
  });

  it("connects once for many concurrent uses", async () => {
    const http = await serveHttp({ delayMs: 50 });
    await using hub = new McpHub({ mcpServers: { s: { url: http.url } } });
    await Promise.all([hub.connect(), hub.connect(["s"]), hub.getTools(), echo(hub), echo(hub)]);
    expect(http.stats).toMatchObject({ sessions: 1, initialize: 1, listTools: 1 });
    await hub.close();
    await http.close();
  });

  it("lists a server's tools once over five turns", async () => {
    const http = await serveHttp();
    await using hub = new McpHub({ mcpServers: { s: { url: http.url } } });
    for (let turn = 0; turn < 5; turn += 1) {
      partsOf(hub).pool.use(["s"]);
      expect(await echo(hub)).toContain("hello");
    }
    expect(http.stats.listTools).toBe(1);
    await hub.close();
    await http.close();
  });

  it("lists again after the time to live when a server announces nothing, and not when it does", async () => {
    const quiet = await serveHttp({ announce: false });
    const loud = await serveHttp();
    await using hub = new McpHub({
      mcpServers: { quiet: { url: quiet.url }, loud: { url: loud.url } },
      timeouts: { toolListTtlMs: 1 },
    });
    await hub.connect();
    await until(() => {
      partsOf(hub).pool.use(["quiet", "loud"]);
      return quiet.stats.listTools >= 2;
    }, "the second listing");
    expect(loud.stats.listTools).toBe(1);
    await hub.close();
    await quiet.close();
    await loud.close();
  });

  it("lists rarely after many announcements, and keeps the last good list when one fails", async () => {
    const http = await serveHttp();
    const seen: McpEvents["catalog"][] = [];
    await using hub = new McpHub({ mcpServers: { s: { url: http.url } }, warnings: "silent" });
    await hub.connect();
    hub.on("catalog", (change) => seen.push(change));
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        hub.callTool("s", "change_tools", { add: [`new_${index}`] }),
      ),
    );
    await until(() => hub.status()[0]!.tools === 30, "the new tools");
    expect(http.stats.listTools).toBeLessThanOrEqual(5);
    expect(seen.flatMap(({ added }) => added)).toHaveLength(20);
    http.options["failList"] = true;
    await expect(hub.refresh("s")).rejects.toThrow("exploded");
    expect(hub.status()[0]).toMatchObject({ state: "connected", tools: 30 });
    await hub.close();
    await http.close();
  });
});

describe("opening many servers", () => {
  it("opens remote servers side by side, at most 20 at a time", async () => {
    const gauge = { now: 0, most: 0 };
    const fixtures = await Promise.all(
      Array.from({ length: 26 }, () => serveHttp({ delayMs: 300, gauge })),
    );
    await using hub = new McpHub({
      mcpServers: Object.fromEntries(fixtures.map(({ url }, index) => [`remote${index}`, { url }])),
    });
    expect((await hub.connect()).failed).toEqual([]);
    expect(gauge.most).toBe(20);
    await hub.close();
    await Promise.all(fixtures.map((fixture) => fixture.close()));
  });

  it("opens stdio servers three at a time: six of 500 ms take two turns", async () => {
    await using hub = new McpHub({
      mcpServers: Object.fromEntries(
        Array.from({ length: 6 }, (_, index) => [`local${index}`, stdioFixture({ delayMs: 500 })]),
      ),
    });
    const startedAt = performance.now();
    expect((await hub.connect()).failed).toEqual([]);
    expect(performance.now() - startedAt).toBeGreaterThan(1_000);
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  it("connects the servers that are named, and throws when asked to", async () => {
    await using hub = new McpHub({
      mcpServers: {
        good: stdioFixture(),
        bad: { command: "no-such-command" },
        off: stdioFixture({}, { enabled: false }),
      },
      warnings: "silent",
    });
    expect(await hub.connect(["good"])).toEqual({ connected: ["good"], failed: [] });
    expect(hub.status().map(({ state }) => state)).toEqual(["connected", "idle", "disabled"]);
    await expect(hub.connect(["bad"], { onFailure: "throw" })).rejects.toMatchObject({
      code: "CONNECT_FAILED",
      serverName: "bad",
    });
    await expect(hub.connect(["nope"])).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect((await hub.connect()).failed).toHaveLength(1);
    await expect(hub.callTool("off", "echo", { text: "x" })).rejects.toThrow(
      'Server "off" is disabled',
    );
  });
});

describe("stdio", () => {
  it("gives a child the small default environment, its own variables and the inherited names", async () => {
    process.env["HOST_SECRET"] = "no";
    process.env["HOST_PROXY"] = "http://proxy.example";
    await using hub = new McpHub({
      mcpServers: {
        s: stdioFixture({}, { env: { MINE: "${MINE_VALUE:-yes}" }, inheritEnv: ["HOST_PROXY"] }),
      },
      envelope: false,
    });
    const env = JSON.parse((await hub.callTool("s", "env")).content) as Record<string, string>;
    expect(env).toMatchObject({
      MINE: "yes",
      HOST_PROXY: "http://proxy.example",
      PATH: expect.any(String),
    });
    expect(env).not.toHaveProperty("HOST_SECRET");
  });

  it("adds what programs on Windows need to run", () => {
    const env = childEnvironment({ env: {}, inheritEnv: [] }, "win32", {
      PATHEXT: ".EXE;.CMD",
      COMSPEC: "cmd.exe",
      OTHER: "x",
    });
    expect(env).toMatchObject({ PATHEXT: ".EXE;.CMD", COMSPEC: "cmd.exe" });
    expect(env).not.toHaveProperty("OTHER");
  });

  it("never ends the host with an unhandled rejection when a child dies early", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    await using hub = new McpHub({
      mcpServers: { a: stdioFixture({ exitAtStart: 1 }), b: { command: "no-such-command" } },
      warnings: "silent",
    });
    partsOf(hub).pool.use(["a", "b"]);
    await until(() => hub.status().every(({ state }) => state === "failed"), "both failures");
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});
