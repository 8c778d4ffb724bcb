import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";

import { McpHub, mcpMiddleware } from "../../src/index.js";
import { serveHttp } from "../../tests/fixtures/servers/http.mjs";
import { isRunning, quietFixture } from "../../tests/support/servers.js";
import { ratioRow, type Row } from "../report.js";

const timed = async (task: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now();
  await task();
  return performance.now() - startedAt;
};

/** 20 remote servers of 200 ms each. */
export async function connectRows(): Promise<Row[]> {
  const fixtures = await Promise.all(Array.from({ length: 20 }, () => serveHttp({ delayMs: 200 })));
  const mcpServers = Object.fromEntries(fixtures.map(({ url }, index) => [`s${index}`, { url }]));
  const client = new MultiServerMCPClient({ mcpServers });
  const peer = await timed(() => client.getTools());
  const hub = new McpHub({ mcpServers });
  const ours = await timed(() => hub.connect(undefined, { onFailure: "throw" }));
  await client.close();
  await hub.close();
  await Promise.all(fixtures.map((fixture) => fixture.close()));
  return [
    ratioRow(
      "connecting 20 remote servers of 200 ms each",
      ours,
      peer,
      "ms",
      "≤ 1/6",
      (ratio) => ratio <= 1 / 6,
    ),
  ];
}

/** The first model call beside a server that never answers. */
export async function hangingRows(): Promise<Row[]> {
  const mcpServers = {
    good: quietFixture(),
    hang: quietFixture({ hang: true }),
  };
  const model = () => fakeModel().respond(new AIMessage("done"));
  const hub = new McpHub({ mcpServers, warnings: "silent" });
  const agent = createAgent({ model: model(), middleware: [mcpMiddleware(hub)] });
  const ours = await timed(() => agent.invoke({ messages: "go" }));
  await hub.close();
  const client = new MultiServerMCPClient({ mcpServers, onConnectionError: "ignore" });
  const peer = await timed(async () => {
    const plain = createAgent({ model: model(), tools: await client.getTools() });
    await plain.invoke({ messages: "go" });
  });
  await client.close();
  return [
    ratioRow(
      "first model call with one hanging server",
      ours,
      peer,
      "ms",
      "≤ 1,100 ms",
      () => ours <= 1_100,
      "startupDeadlineMs is 1,000",
    ),
  ];
}

/** Closing a stdio child that ignores SIGTERM and has a helper of its own. */
export async function closeRows(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "mcp-bench-"));
  const entry = (name: string) => quietFixture({ stubborn: true, helper: join(folder, name) });
  const helperOf = (name: string): number => Number(readFileSync(join(folder, name), "utf8"));
  const hub = new McpHub({ mcpServers: { s: entry("ours") } });
  await hub.connect(undefined, { onFailure: "throw" });
  const ours = await timed(() => hub.close());
  const client = new MultiServerMCPClient({ mcpServers: { s: entry("peer") } });
  await client.getTools();
  const peer = await timed(() => client.close());
  const [ourHelper, peerHelper] = [isRunning(helperOf("ours")), isRunning(helperOf("peer"))];
  if (peerHelper) process.kill(helperOf("peer"), "SIGKILL");
  return [
    ratioRow(
      "closing a stubborn child with a helper",
      ours,
      peer,
      "ms",
      "< 1 s, none left",
      () => ours < 1_000 && !ourHelper,
      `helper left: ours ${ourHelper}, adapter ${peerHelper}`,
    ),
  ];
}
