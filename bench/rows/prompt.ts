import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { getEncoding } from "js-tiktoken";

import { McpHub, previewContext } from "../../src/core.js";
import { loadRecordings, serveRecordings, type Recording } from "../recorded.js";
import { ratioRow, type Row } from "../report.js";

const encoding = getEncoding("o200k_base");
const tokens = (value: unknown): number =>
  encoding.encode(typeof value === "string" ? value : JSON.stringify(value), "all").length;

/**
 * Tokens that MCP adds to the first model call: ours, and when everything is bound as the adapter
 * gives it.
 */
export async function promptRows(): Promise<Row[]> {
  const recordings = loadRecordings();
  if (recordings.length === 0) return [];
  const bySize = recordings
    .filter(({ tools }) => tools.length > 0)
    .sort((a, b) => tokens(a.tools) - tokens(b.tools));
  const middle = Math.floor(bySize.length / 2);
  const five = bySize.slice(middle - 2, middle + 3);
  return [
    await promptRow("recorded servers, all at once", recordings, 0.0015),
    await promptRow("five median servers", five, 0.05),
  ];
}

async function promptRow(
  what: string,
  recordings: readonly Recording[],
  limit: number,
): Promise<Row> {
  const { urls, close } = await serveRecordings(recordings);
  const keys = shortNames(recordings);
  const mcpServers = Object.fromEntries(keys.map((key, index) => [key, { url: urls[index]! }]));
  const hub = new McpHub({ mcpServers, warnings: "silent" });
  await hub.connect(undefined, { onFailure: "throw" });
  const { listing, tools } = await previewContext(hub);
  const ours =
    tokens(listing) +
    tools.reduce(
      (sum, { name, description, schema }) =>
        sum + tokens({ type: "function", function: { name, description, parameters: schema } }),
      0,
    );
  const client = new MultiServerMCPClient({ mcpServers, onConnectionError: "ignore" });
  const peerTools = await client.getTools();
  const peer = peerTools.reduce((sum, tool) => sum + tokens(convertToOpenAITool(tool)), 0);
  const count = hub.status().reduce((sum, status) => sum + (status.tools ?? 0), 0);
  await client.close();
  await hub.close();
  await close();
  const target = `≤ ${limit * 100} %`;
  return ratioRow(
    `first model call, ${what}`,
    ours,
    peer,
    "tokens",
    target,
    (ratio) => ratio <= limit,
    `${recordings.length} servers, ${count} tools of ours, ${peerTools.length} of the adapter's`,
  );
}

/**
 * Short keys such as people write: the last part of the package's name, numbered where two are
 * equal.
 */
function shortNames(recordings: readonly Recording[]): string[] {
  const taken = new Set<string>();
  return recordings.map(({ file }) => {
    const name = file
      .replace(/\.json$/, "")
      .replace(/^.*__/, "")
      .replace(/^(mcp-server-|server-)|(-mcp-server|-mcp|-server)$/g, "");
    let key = name;
    for (let count = 2; taken.has(key); count += 1) key = `${name}${count}`;
    taken.add(key);
    return key;
  });
}
