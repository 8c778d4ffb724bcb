import { MultiServerMCPClient } from "@langchain/mcp-adapters";

import { quietFixture } from "../../tests/support/servers.js";
import { quantile, ratioRow, type Row } from "../report.js";

const ROUNDS = 3_000;

/** `tool.invoke` to result over stdio, ours and the adapter's in turn on servers of their own. */
export async function callRows(): Promise<Row[]> {
  // The built package, as the adapter is built: what runs from source carries the loader's helpers.
  const { McpHub } = (await import(new URL("../../dist/core.js", import.meta.url).href)) as typeof import("../../src/core.js");
  const server = quietFixture();
  const hub = new McpHub({ mcpServers: { s: server } });
  const client = new MultiServerMCPClient({ mcpServers: { s: server } });
  const ours = (await hub.getTools()).find(({ name }) => name.endsWith("echo"))!;
  const peer = (await client.getTools()).find(({ name }) => name === "echo")!;
  const invoke = async (tool: { readonly name: string; invoke: (call: never) => Promise<unknown> }): Promise<number> => {
    const startedAt = performance.now();
    await tool.invoke({ type: "tool_call", id: "1", name: tool.name, args: { text: "hello" } } as never);
    return performance.now() - startedAt;
  };
  const times = { ours: [] as number[], peer: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    // In turn, and in either order, so that neither profits from the other's warm caches.
    if (round % 2 === 0) times.ours.push(await invoke(ours));
    times.peer.push(await invoke(peer as never));
    if (round % 2 === 1) times.ours.push(await invoke(ours));
  }
  await hub.close();
  await client.close();
  const warm = (values: number[]): number => quantile(values.slice(ROUNDS / 4), 0.5);
  return [
    ratioRow(
      "tool.invoke to result over stdio",
      warm(times.ours),
      warm(times.peer),
      "ms",
      "≤ 1.0 ×",
      (ratio) => ratio <= 1,
      "median of interleaved rounds",
    ),
  ];
}
