import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { getEncoding } from "js-tiktoken";

import { McpHub, previewContext } from "../../src/core.js";
import { loadRecordings, serveRecordings, type Recording } from "../recorded.js";
import { ratioRow, type Row } from "../report.js";

const encoding = getEncoding("o200k_base");
const tokens = (value: unknown): number =>
  encoding.encode(typeof value === "string" ? value : JSON.stringify(value), "all").length;

/** Tokens that MCP adds to the first model call: ours, and when everything is bound as the adapter gives it. */
export async function promptRows(): Promise<Row[]> {
  const recordings = loadRecordings();
  if (recordings.length === 0) return [];
  const bySize = recordings.filter(({ tools }) => tools.length > 0).sort((a, b) => tokens(a.tools) - tokens(b.tools));
  const middle = Math.floor(bySize.length / 2);
  const five = bySize.slice(middle - 2, middle + 3);
  return [
    await promptRow("recorded servers, all at once", recordings, 0.0015),
    await promptRow("five median servers", five, 0.05),
  ];
}

async function promptRow(what: string, recordings: readonly Recording[], limit: number): Promise<Row> {
  const { urls, close } = await serveRecordings(recordings);
  const mcpServers = Object.fromEntries(recordings.map(({ file }, index) => [shortName(file), { url: urls[index]! }]));
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

/** A short key such as people write: the last part of the package's name. */
function shortName(file: string): string {
  return (
    file
      .replace(/\.json$/, "")
      .replace(/^.*__/, "")
      .replace(/^(mcp-server-|server-)|(-mcp-server|-mcp|-server)$/g, "") +
    (file.startsWith("modelcontextprotocol__") ? "-ref" : "")
  );
}
