// The configurations of the adapter's own README, given to both.
import { fileURLToPath } from "node:url";

import { jest } from "@jest/globals";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";

import { McpHub } from "../../src/core.js";
import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";
import { quietFixture } from "../support/servers.js";

const filesystem = fileURLToPath(
  new URL(
    "../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js",
    import.meta.url,
  ),
);

describe("a configuration of the adapter", () => {
  let http: HttpFixture;
  beforeAll(async () => {
    http = await serveHttp({ token: "abc" });
  });
  afterAll(() => http.close());

  it("gives the same servers and tools", async () => {
    const progress: string[] = [];
    const options = {
      throwOnLoadError: true,
      prefixToolNameWithServerName: false,
      additionalToolNamePrefix: "",
      useStandardContentBlocks: true,
      onConnectionError: "ignore" as const,
      defaultToolTimeout: 30_000,
      onProgress: (_progress: unknown, source: { name?: string; server?: string }) =>
        progress.push(`${source.server}/${source.name}`),
      mcpServers: {
        math: {
          transport: "stdio" as const,
          ...quietFixture(),
          restart: { enabled: false, maxAttempts: 3, delayMs: 1_000 },
        },
        filesystem: {
          transport: "stdio" as const,
          command: "node",
          args: [filesystem, "."],
          stderr: "ignore" as const,
        },
        weather: {
          transport: "http" as const,
          url: http.url,
          headers: { Authorization: "Bearer abc" },
          automaticSSEFallback: false,
          reconnect: { enabled: true, maxAttempts: 5, delayMs: 2_000 },
        },
        missing: { command: "no-such-command", args: [] },
      },
    };
    const client = new MultiServerMCPClient(options as never);
    const theirs = (await client.getTools()).map(({ name }) => name).sort();
    await client.close();

    const printed = jest.spyOn(console, "warn").mockImplementation(() => undefined);
    await using hub = new McpHub(options);
    const ours = await hub.getTools();
    expect(ours.map(({ metadata }) => String(metadata!["toolName"])).sort()).toEqual(theirs);
    expect(hub.status().map(({ serverName, state }) => `${serverName} ${state}`)).toEqual([
      "math connected",
      "filesystem connected",
      "weather connected",
      "missing failed",
    ]);
    expect((await hub.callTool("math", "slow", { ms: 60, steps: 3 })).status).toBe("success");
    // The SDK may drop a notification that arrives together with the result.
    expect(progress.slice(0, 2)).toEqual(["math/slow", "math/slow"]);
    const lines = printed.mock.calls.map(([line]) => String(line));
    expect(lines.filter((line) => line.includes("OPTION_WITHOUT_EFFECT"))).toHaveLength(4);
    expect(lines.filter((line) => line.includes('CONNECT_FAILED: Server "missing"'))).toHaveLength(
      1,
    );
    printed.mockRestore();
  });

  it("runs beforeToolCall and afterToolCall inside the gate, on a copy", async () => {
    const given = Object.freeze({ text: "a" });
    const seen: unknown[] = [];
    await using hub = new McpHub({
      mcpServers: { s: quietFixture() },
      beforeToolCall: ({
        serverName,
        name,
        args,
      }: {
        serverName: string;
        name: string;
        args: { text: unknown };
      }) => {
        seen.push([serverName, name, args]);
        const { text } = args;
        args.text = "written to the copy";
        return text === "stop"
          ? Promise.reject(new Error("denied"))
          : { args: { text: text === "bad" ? undefined : `${String(text)}!` } };
      },
      afterToolCall: ({ result }: { result: [string, unknown[]] }) => [result[0].toUpperCase(), []],
    });
    expect((await hub.callTool("s", "echo", given)).content).toContain("\nA!\n");
    expect(seen[0]).toEqual(["s", "echo", { text: "written to the copy" }]);
    await expect(hub.callTool("s", "echo", { text: "stop" })).rejects.toThrow("denied");
    await expect(hub.callTool("s", "echo", { text: "bad" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENTS",
    });
  });

  it("calls the adapter's callbacks, and lists again when tools changed", async () => {
    const heard: string[] = [];
    await using hub = new McpHub({
      mcpServers: { s: quietFixture() },
      onToolsListChanged: (source: { server: string }) => heard.push(source.server),
      onConnectionError: "throw",
    });
    const changed = new Promise((resolve) =>
      hub.on("catalog", ({ added }) => added.includes("x") && resolve(added)),
    );
    await hub.callTool("s", "change_tools", { add: ["x"] });
    expect(await changed).toEqual(["x"]);
    expect(heard).toEqual(["s"]);
    await using broken = new McpHub({
      mcpServers: { s: { command: "no-such-command" } },
      onConnectionError: "throw",
      warnings: "silent",
    });
    await expect(broken.connect()).rejects.toMatchObject({ code: "CONNECT_FAILED" });
  });
});
