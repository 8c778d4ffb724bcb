import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";

import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { createAgent, type AgentMiddleware } from "langchain";

import { McpHub, mcpMiddleware, previewContext, type McpServerEntry } from "../../src/index.js";
import { EVENT_NAMES } from "../../src/events.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { serveWebSocket } from "../fixtures/servers/webSocket.mjs";
import { calling, scripted } from "../support/agents.js";
import { stdioFixture } from "../support/servers.js";

/** Each secret says where it was planted. */
const secret = (where: string): string => `S3CRET-${where}-8f2c61`;
const MARK = /S3CRET-[a-z-]+-8f2c61/;
const VARIABLES: Record<string, string> = {
  ENV_TOKEN: secret("variable-in-env"),
  ARG: secret("variable-in-args"),
  HEADER: secret("variable-in-header"),
  QUERY: secret("variable-in-query"),
  COMMAND: secret("variable-in-command"),
};

const open: { close: () => Promise<unknown> }[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(open.splice(0).map((one) => one.close()));
});

/** Everything that a run with these servers leaves anywhere. */
async function tracesOf(
  mcpServers: Record<string, McpServerEntry>,
  use?: (hub: McpHub) => Promise<unknown>,
): Promise<string> {
  const traces: unknown[] = [];
  for (const method of ["log", "warn", "error", "info", "debug"] as const) {
    jest
      .spyOn(console, method)
      .mockImplementation((...given: unknown[]) => void traces.push(given));
  }
  const folder = mkdtempSync(join(tmpdir(), "mcp-secrets-"));
  const hub = new McpHub({
    mcpServers,
    policy: { default: "allow", audit: "arguments" } as never,
    snapshotStore: join(folder, "snapshots.json"),
    security: {
      secretResolver: (name) => VARIABLES[name],
      toolFingerprints: { store: join(folder, "fingerprints.json") },
      consent: {
        store: join(folder, "consents.json"),
        onConsent: (request) => traces.push(request) > 0,
      },
    },
    timeouts: {
      startupDeadlineMs: 10_000,
      connectTimeoutMs: 1_500,
      requestTimeoutMs: 500,
      toolTimeoutMs: 300,
    },
    limits: { autoDeferChars: 0 },
  });
  open.push(hub);
  for (const name of EVENT_NAMES) hub.on(name, (payload) => traces.push([name, payload]));
  const checkpointer = SqliteSaver.fromConnString(join(folder, "threads.db"));
  class Tracer extends BaseCallbackHandler {
    name = "tracer";
    override handleToolStart(...given: unknown[]): void {
      traces.push(given);
    }
    override handleToolEnd(...given: unknown[]): void {
      traces.push(given);
    }
    override handleToolError(...given: unknown[]): void {
      traces.push(given);
    }
    override handleChatModelStart(...given: unknown[]): void {
      traces.push(given);
    }
    override handleChainStart(...given: unknown[]): void {
      traces.push(given);
    }
  }
  const model = scripted(
    calling(
      { id: "1", name: "search_mcp_tools", args: { query: "echo" } },
      ...Object.keys(mcpServers).map((name) => ({
        id: name,
        name: `mcp__${name}__echo`,
        args: { text: "hello" },
      })),
      ...Object.keys(mcpServers).map((name) => ({ id: `${name} env`, name: `mcp__${name}__env` })),
    ),
    "done",
  );
  const agent = createAgent({
    model,
    checkpointer,
    middleware: [mcpMiddleware(hub) as unknown as AgentMiddleware],
  });
  const config = { configurable: { thread_id: "1" }, callbacks: [new Tracer()] };
  traces.push(
    await agent.invoke({ messages: `go, see @${Object.keys(mcpServers)[0]}:x://y` }, config),
  );
  traces.push((await agent.graph.getState(config)).values);
  traces.push(
    await hub.connect(),
    hub.status(),
    await previewContext(hub),
    await hub.consents.list(),
  );
  for (const serverName of Object.keys(mcpServers)) {
    traces.push(
      await hub.callTool(serverName, "echo", { text: "a" }).catch((error: unknown) => error),
    );
    traces.push(await hub.readResource(serverName, "x://y").catch((error: unknown) => error));
    traces.push(await hub.callTool(serverName, "env").catch((error: unknown) => error));
    traces.push(await hub.listPrompts(serverName).catch((error: unknown) => error));
    traces.push(await hub.subscribeResource(serverName, "x://y").catch((error: unknown) => error));
    traces.push(hub.snapshot(serverName));
    traces.push(await hub.getTools().catch((error: unknown) => error));
  }
  if (use !== undefined) traces.push(await use(hub).catch((error: unknown) => error));
  await hub.close();
  traces.push(hub.status());
  (checkpointer.db as { close: () => void }).close();
  const files = readdirSync(folder).map((file) => readFileSync(join(folder, file), "latin1"));
  // Errors with all they carry, causes included.
  return [
    ...traces.map((trace) =>
      inspect(trace, { depth: 30, showHidden: false, maxStringLength: null, maxArrayLength: null }),
    ),
    ...files,
  ].join("\n");
}

const stdio = (options: object = {}): McpServerEntry => {
  const { command, args } = stdioFixture(options as Record<string, unknown>);
  return {
    command,
    args: [...args, `--token=${secret("literal-in-args")}`, "${ARG}"],
    env: { API_KEY: secret("literal-in-env"), OTHER: "${ENV_TOKEN}" },
  };
};
const remote = (url: string): McpServerEntry => ({
  url: `${url}?api_key=${secret("literal-in-query")}&other=\${QUERY}`,
  headers: { Authorization: `Bearer ${secret("literal-in-header")}`, "X-Other": "${HEADER}" },
});

/** A server that tells what it was given, in every failure it can. */
async function telling(kind: "status" | "rpc" | "html"): Promise<string> {
  const http = createServer((request, response) => {
    void (async () => {
      let text = "";
      for await (const chunk of request.setEncoding("utf8")) text += chunk as string;
      const told = JSON.stringify([request.url, request.headers]);
      if (kind === "status") return void response.writeHead(500).end(told);
      if (kind === "html")
        return void response
          .writeHead(401, { "www-authenticate": `Bearer error="${secret("literal-in-header")}"` })
          .end(told);
      const { id } = JSON.parse(text || "{}") as { id?: unknown };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({
          jsonrpc: "2.0",
          id: id ?? null,
          error: { code: -32_000, message: told, data: told },
        }),
      );
    })();
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  open.push({
    close: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}

describe("a planted secret appears nowhere", () => {
  it("after success: stdio, HTTP, SSE, WebSocket", async () => {
    const http = await serveHttp({});
    const socket = await serveWebSocket({});
    open.push(http, socket);
    const traces = await tracesOf({
      program: stdio(),
      web: remote(http.url),
      events: { ...remote(http.url.replace("/mcp", "/sse")), transport: "sse" },
      socket: remote(socket.url),
    });
    expect(traces).toContain("hello");
    expect(MARK.exec(traces)?.[0]).toBeUndefined();
  });

  it.each<[string, () => Promise<McpServerEntry> | McpServerEntry]>([
    [
      "a program that does not exist",
      () => ({ ...stdio(), command: "/no/such/program-${COMMAND}" }),
    ],
    [
      "a program that tells its environment and ends",
      () => ({
        ...stdio(),
        command: process.execPath,
        args: [
          "-e",
          "console.error(JSON.stringify(process.env), process.argv.join(' ')); process.exit(3)",
          "--",
          "${ARG}",
          `--token=${secret("literal-in-args")}`,
        ],
      }),
    ],
    ["a program that never answers", () => stdio({ hang: true, stderrEnv: ["API_KEY", "OTHER"] })],
    [
      "a missing variable",
      () => ({
        ...stdio(),
        env: { A: secret("literal-in-env"), API_KEY: secret("literal-in-env"), B: "${MISSING}" },
      }),
    ],
    [
      "a tool list that fails with them in it",
      () => stdio({ failList: "no access for $API_KEY $OTHER" }),
    ],
    ["a server that answers 500 with them", async () => remote(await telling("status"))],
    ["a server that answers 401 with them", async () => remote(await telling("html"))],
    ["a server that answers an error with them", async () => remote(await telling("rpc"))],
    [
      "an SSE server that answers 500 with them",
      async () => ({ ...remote(await telling("status")), transport: "sse" }),
    ],
    ["a port nobody listens on", () => remote("http://127.0.0.1:1/mcp")],
    ["a name that is not known", () => remote("http://no-such-host.invalid/mcp")],
    [
      "a URL with a password",
      () => ({ url: `http://me:${secret("url-password")}@127.0.0.1:1/mcp` }),
    ],
    ["a URL with a user name", () => ({ url: `http://${secret("url-user")}@127.0.0.1:1/mcp` })],
    ["a URL that is refused", () => remote("http://169.254.169.254/mcp")],
    ["a WebSocket nobody listens on", () => remote("ws://127.0.0.1:1/")],
    [
      "a server that rejects its calls with the headers",
      async () => {
        const http = await serveHttp({ leakHeaders: true });
        open.push(http);
        return remote(http.url);
      },
    ],
    [
      "a server that hangs in its calls",
      async () => {
        const http = await serveHttp({ hang: true });
        open.push(http);
        return remote(http.url);
      },
    ],
  ])("after %s", async (_what, entryOf) => {
    const traces = await tracesOf({ bad: await entryOf() }, (hub) => hub.reconnect("bad"));
    expect(traces.length).toBeGreaterThan(1_000);
    expect(MARK.exec(traces)?.[0]).toBeUndefined();
  });

  it("in errors about the configuration", () => {
    const errors = [
      {
        s: { command: 5, args: [secret("literal-in-args")], env: { A: secret("literal-in-env") } },
      },
      {
        s: {
          url: `nonsense://${secret("url-user")}:${secret("url-password")}@x`,
          headers: { A: secret("literal-in-header") },
        },
      },
      { s: { url: "http://x", headers: { Authorization: [secret("literal-in-header")] } } },
      { s: { url: "http://x", headers: secret("literal-in-header") } },
      { s: { command: "x", env: [secret("literal-in-env")] } },
      { s: { command: "x", args: secret("literal-in-args") } },
      { s: { command: "x", env: { API_KEY: { nested: secret("literal-in-env") } } } },
    ].map((mcpServers) => {
      try {
        new McpHub({ mcpServers } as never);
        return "";
      } catch (error) {
        return inspect(error, { depth: 20 });
      }
    });
    expect(errors.filter((error) => error === "")).toEqual([]);
    expect(MARK.exec(errors.join("\n"))?.[0]).toBeUndefined();
  });
});
