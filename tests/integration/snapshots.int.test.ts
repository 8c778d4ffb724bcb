import { partsOf } from "../../src/hub/hubParts.js";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { InMemoryStore } from "@langchain/core/stores";
import { createAgent } from "langchain";

import {
  McpHub,
  mcpMiddleware,
  previewContext,
  type McpHubOptions,
  type SnapshotStore,
} from "../../src/index.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { answersOf, calling, scripted, spyMiddleware } from "../support/agents.js";
import { until } from "../support/servers.js";

const QUICK: Partial<McpHubOptions> = {
  warnings: "silent",
  timeouts: { startupDeadlineMs: 20_000, searchWaitMs: 20_000 },
  limits: { autoDeferChars: 0 },
};
const fileOf = (): string =>
  join(mkdtempSync(join(tmpdir(), "mcp-snapshots-")), "folder", "snapshots.json");

describe("a snapshot store", () => {
  it("lists a lazy server's tools at once in a new process, finds them before it is opened, and opens it for a call", async () => {
    const http = await serveHttp({ instructions: "Be gentle." });
    const snapshotStore = fileOf();
    const first = new McpHub({ mcpServers: { s: { url: http.url } }, ...QUICK, snapshotStore });
    await first.connect();
    const { listing } = await previewContext(first);
    await until(() => readIfThere(snapshotStore).includes('"echo"'), "the file");
    await first.close();

    const hub = new McpHub({
      mcpServers: { s: { url: http.url } },
      ...QUICK,
      snapshotStore,
      startup: "lazy",
    });
    const { initialize } = http.stats;
    expect((await previewContext(hub)).listing).toBe(listing);
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted(
        calling({
          name: "search_mcp_tools",
          args: { query: "give a text back", limit: 1 },
          id: "s",
        }),
        calling({ name: "mcp__s__echo", args: { text: "hello" }, id: "c" }),
        "done",
      ),
      middleware: [mcpMiddleware(hub), middleware],
    });
    const answers = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect(answers["s"]!.text).toContain("mcp__s__echo(text)");
    expect(answers["c"]!.text).toContain("\nhello\n");
    expect(seen[1]!.tools).toContain("mcp__s__echo");
    expect(http.stats.initialize).toBe(initialize + 1);
    await hub.close();
    await http.close();
  });

  it("keeps the tools of an unreachable server, reports changes once it connects, and accepts a LangChain store", async () => {
    const http = await serveHttp();
    const { url, port } = http;
    const snapshotStore = new InMemoryStore<unknown>();
    const first = new McpHub({ mcpServers: { s: { url } }, ...QUICK, snapshotStore });
    await first.connect();
    await first.close();
    await http.close();

    const hub = new McpHub({
      mcpServers: { s: { url } },
      ...QUICK,
      snapshotStore,
      timeouts: { retryFailedAfterMs: 1 },
    });
    const { seen, middleware } = spyMiddleware();
    const agent = createAgent({
      model: scripted(
        calling({ name: "mcp__s__echo", args: { text: "x" }, id: "c" }),
        "away",
        "back",
      ),
      middleware: [mcpMiddleware(hub), middleware],
    });
    const away = answersOf((await agent.invoke({ messages: "go" })).messages);
    expect(seen[0]!.system).toContain("- mcp__s__echo");
    expect(away["c"]!.text).toContain('Server "s" is not available now.');
    const again = await serveHttp({
      port,
      tools: [{ name: "brand_new", inputSchema: { type: "object" } }],
    });
    await until(async () => {
      partsOf(hub).pool.use(["s"]);
      return hub.status()[0]!.state === "connected";
    }, "the connect");
    await agent.invoke({ messages: "go" });
    expect(seen.at(-1)!.system).toContain("brand_new");
    await hub.close();
    await again.close();
  });

  it("is ignored for a server that is reached in another way now, and when it is damaged", async () => {
    const http = await serveHttp();
    const snapshotStore = fileOf();
    const first = new McpHub({ mcpServers: { s: { url: http.url } }, ...QUICK, snapshotStore });
    await first.connect();
    await until(() => readIfThere(snapshotStore) !== "", "the file");
    await first.close();
    const other = new McpHub({
      mcpServers: { s: { url: `${http.url}?other` } },
      ...QUICK,
      snapshotStore,
      startup: "lazy",
    });
    expect((await previewContext(other)).listing).not.toContain("mcp__s__echo");
    await other.close();
    writeFileSync(snapshotStore, "{ broken");
    const warnings: string[] = [];
    const broken = new McpHub({ mcpServers: { s: { url: http.url } }, ...QUICK, snapshotStore });
    broken.on("warning", ({ code }) => warnings.push(code));
    expect((await broken.connect()).connected).toEqual(["s"]);
    expect(warnings).toEqual(["SNAPSHOTS_FAILED"]);
    await until(() => readIfThere(snapshotStore).includes('"echo"'), "the new file");
    await broken.close();
    await http.close();
  });
});

describe("a faulty snapshot store", () => {
  it.each<[string, SnapshotStore]>([
    [
      "throws at once",
      {
        mget: () => {
          throw new Error("no");
        },
        mset: () => {
          throw new Error("no");
        },
      },
    ],
    [
      "rejects",
      { mget: () => Promise.reject(new Error("no")), mset: () => Promise.reject(new Error("no")) },
    ],
    [
      "gives anything",
      {
        mget: async () => [{ v: 1, tools: [{ name: "__proto__" }, 7, null, { name: "ok" }] }],
        mset: async () => undefined,
      },
    ],
  ])("that %s costs no server", async (_name, snapshotStore) => {
    const http = await serveHttp();
    const hub = new McpHub({ mcpServers: { s: { url: http.url } }, ...QUICK, snapshotStore });
    expect((await hub.connect()).connected).toEqual(["s"]);
    expect((await hub.callTool("s", "echo", { text: "x" })).status).toBe("success");
    await hub.close();
    await http.close();
  });

  it("two hubs of one process can write one file, and closing waits for the writes", async () => {
    const http = await serveHttp();
    const snapshotStore = fileOf();
    const mcpServers = (name: string) => ({ [name]: { url: http.url } });
    const hubs = ["a", "b", "c"].map(
      (name) => new McpHub({ mcpServers: mcpServers(name), ...QUICK, snapshotStore }),
    );
    await Promise.all(hubs.map((hub) => hub.connect()));
    await Promise.all(hubs.map((hub) => hub.close()));
    const content = JSON.parse(readIfThere(snapshotStore)) as object;
    expect(
      Object.keys(content)
        .map((key) => key.split(":")[1])
        .sort(),
    ).toEqual(["a", "b", "c"]);
    await http.close();
  });
});

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
