import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as z from "zod";

import { serveHttp } from "../../tests/fixtures/servers/http.mjs";
import { quietFixture } from "../../tests/support/servers.js";
import { quantile, ratioRow, type Row } from "../report.js";

const ROUNDS = 3_000;
const anything = z.custom<unknown>(() => true);

/**
 * A tool call over stdio and HTTP: ours, the adapter's and the bare request of the SDK, in turn on
 * servers of their own.
 */
export async function callRows(): Promise<Row[]> {
  const stdio = quietFixture();
  const http = await serveHttp({});
  const rows = [
    ...(await rowsOver(
      "stdio",
      stdio,
      () => new StdioClientTransport({ command: stdio.command, args: [...stdio.args] }),
    )),
    ...(await rowsOver(
      "HTTP",
      { url: http.url },
      () => new StreamableHTTPClientTransport(new URL(http.url)),
    )),
  ];
  await http.close();
  return rows;
}

async function rowsOver(
  name: string,
  server: object,
  transport: () => StdioClientTransport | StreamableHTTPClientTransport,
) {
  // The built package, as the adapter is built: the loader adds helpers to what runs from source.
  const { McpHub } = (await import(
    new URL("../../dist/core.js", import.meta.url).href
  )) as typeof import("../../src/core.js");
  const hub = new McpHub({ mcpServers: { s: server } });
  const adapter = new MultiServerMCPClient({ mcpServers: { s: server } } as never);
  const bare = new Client({ name: "bench", version: "1" });
  await bare.connect(transport());
  const ours = (await hub.getTools()).find((tool) => tool.name.endsWith("echo"))!;
  const theirs = (await adapter.getTools()).find((tool) => tool.name === "echo")!;
  const params = { name: "echo", arguments: { text: "hello" } };
  const call = (tool: { readonly name: string }) =>
    ({ type: "tool_call", id: "1", name: tool.name, args: { text: "hello" } }) as never;
  const subjects = [
    () => ours.invoke(call(ours)),
    () => theirs.invoke(call(theirs)),
    () => bare.request({ method: "tools/call", params }, anything),
  ];
  const times = subjects.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round += 1) {
    // In turn, each first as often as the others, so that none profits from another's warm caches.
    for (let turn = 0; turn < subjects.length; turn += 1) {
      const subject = (round + turn) % subjects.length;
      const startedAt = performance.now();
      await subjects[subject]!();
      times[subject]!.push(performance.now() - startedAt);
    }
  }
  await Promise.all([hub.close(), adapter.close(), bare.close()]);
  const [own, peer, alone] = times.map((values) => quantile(values.slice(ROUNDS / 4), 0.5)) as [
    number,
    number,
    number,
  ];
  const note = "median of interleaved rounds";
  return [
    ratioRow(
      `tool.invoke to result over ${name}, against the adapter`,
      own,
      peer,
      "ms",
      "≤ 1.0 ×",
      (ratio) => ratio <= 1,
      note,
    ),
    ratioRow(
      `the same against the bare request`,
      own,
      alone,
      "ms",
      "≤ 1.25 ×",
      (ratio) => ratio <= 1.25,
      note,
    ),
  ];
}
