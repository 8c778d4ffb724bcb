import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { getEncoding } from "js-tiktoken";
import { createAgent, type AgentMiddleware } from "langchain";

import { boundName, McpHub, mcpMiddleware, type McpAgentOptions } from "../../src/index.js";
import {
  serveModel,
  type RequestBody,
  type ScriptedAnswer,
  type Wire,
} from "../../tests/support/modelServer.js";
import { loadRecordings, serveRecordings, type Recording } from "../recorded.js";
import { ratioRow, type Row } from "../report.js";

/** Requests of one task. */
interface Measured {
  /** Bytes of all request bodies. */
  readonly bytes: number;
  /**
   * Tokens of what the model reads in all requests: without definitions that the provider keeps
   * back. Those that its search shows the model are not in the requests, and not counted.
   */
  readonly tokens: number;
  /**
   * How much of a request is, on average, a byte-equal prefix of the next, in the order tools,
   * system, messages.
   */
  readonly prefix: number;
}

const WIRES = ["anthropic", "openai-responses"] as const satisfies readonly Wire[];
const STRATEGIES = ["promote", "execute", "provider"] as const;
/** Targets as shares of binding everything: bytes, tokens; and the prefix that is kept. */
const TARGETS = {
  promote: { bytes: 0.02, tokens: 0.02, prefix: 0.5 },
  execute: { bytes: 0.02, tokens: 0.02, prefix: 0.95 },
  provider: { bytes: 1.1, tokens: 0.02, prefix: 0.95 },
} as const;
const encoding = getEncoding("o200k_base");

/**
 * One task with every strategy: five tools of five servers, found one by one, are called, and the
 * model answers. That is eleven model calls where tools are searched for, and six where all are
 * there or the provider searches.
 */
export async function strategyRows(): Promise<Row[]> {
  const recordings = loadRecordings();
  const wanted = pickTools(recordings);
  if (wanted.length < 5) return [];
  const { urls, close } = await serveRecordings(recordings);
  const mcpServers = Object.fromEntries(
    recordings.map((_, index) => [`s${index}`, { url: urls[index]! }]),
  );
  const hub = new McpHub({
    mcpServers,
    warnings: "silent",
    timeouts: { startupDeadlineMs: 60_000 },
  });
  await hub.connect(undefined, { onFailure: "throw" });
  const client = new MultiServerMCPClient({
    mcpServers,
    onConnectionError: "ignore",
    prefixToolNameWithServerName: true,
  });
  const tools = await client.getTools();

  const rows: Row[] = [];
  for (const wire of WIRES) {
    const direct = wanted.map(({ server, tool }) => [call(`${server}__${tool}`, {})]);
    const all = await measure(wire, direct, (model) =>
      createAgent({ model: model as never, tools }),
    );
    for (const strategy of STRATEGIES) {
      const options: McpAgentOptions = { strategy, maxProviderTools: 10_000 };
      const ours = await measure(wire, script(strategy, wanted), (model) =>
        createAgent({
          model: model as never,
          middleware: [mcpMiddleware(hub, options) as unknown as AgentMiddleware],
        }),
      );
      rows.push(...rowsOf(`${strategy}, ${wire}`, ours, all, TARGETS[strategy]));
    }
  }
  await client.close();
  await hub.close();
  await close();
  return rows;
}

function rowsOf(name: string, ours: Measured, all: Measured, target: Measured): Row[] {
  const limit = (share: number): string => `≤ ${Math.round(share * 100)} %`;
  return [
    ratioRow(
      `task, request bytes: ${name}`,
      ours.bytes,
      all.bytes,
      "bytes",
      limit(target.bytes),
      (r) => r <= target.bytes,
    ),
    ratioRow(
      `task, tokens read: ${name}`,
      ours.tokens,
      all.tokens,
      "tokens",
      limit(target.tokens),
      (r) => r <= target.tokens,
    ),
    ratioRow(
      `task, prefix kept: ${name}`,
      ours.prefix,
      all.prefix,
      "of a request",
      `≥ ${target.prefix}`,
      () => ours.prefix >= target.prefix,
    ),
  ];
}

interface Wanted {
  readonly server: string;
  readonly tool: string;
}

/** Five tools of five servers that can be called without arguments, spread over all. */
function pickTools(recordings: readonly Recording[]): Wanted[] {
  const callable = recordings.flatMap(({ tools }, index) => {
    const tool = tools.find(
      ({ name, inputSchema }) =>
        /^[a-z]\w*$/.test(name) &&
        ((inputSchema as { required?: string[] }).required ?? []).length === 0,
    );
    return tool === undefined ? [] : [{ server: `s${index}`, tool: tool.name }];
  });
  return [1, 3, 5, 7, 9].flatMap(
    (tenth) => callable[Math.floor((callable.length * tenth) / 10)] ?? [],
  );
}

let calls = 0;
const call = (name: string, args: Record<string, unknown>) => ({
  id: `call_${(calls += 1)}`,
  name,
  args,
});

function script(
  strategy: (typeof STRATEGIES)[number],
  wanted: readonly Wanted[],
): ScriptedAnswer[] {
  return wanted.flatMap(({ server, tool }) => {
    const name = boundName(server, tool);
    if (strategy === "provider") return [[call(name, {})]];
    const found = [call("search_mcp_tools", { query: tool.replaceAll("_", " "), server })];
    return [
      found,
      [strategy === "execute" ? call("execute_mcp_tool", { name, arguments: {} }) : call(name, {})],
    ];
  });
}

async function measure(
  wire: Wire,
  answers: readonly ScriptedAnswer[],
  agentOf: (model: unknown) => { readonly invoke: unknown },
): Promise<Measured> {
  const server = await serveModel();
  server.answers.push(...answers, "done");
  const agent = agentOf(server.client(wire)) as {
    invoke: (input: object, config: object) => Promise<{ messages: unknown[] }>;
  };
  const { messages } = await agent.invoke({ messages: "Do the task." }, { recursionLimit: 200 });
  await server.close();
  const failed = messages.filter((message) => (message as { status?: string }).status === "error");
  if (failed.length > 0) throw new Error(`the task failed: ${JSON.stringify(failed[0])}`);
  if (server.requests.length !== answers.length + 1)
    throw new Error(`${server.requests.length} requests`);
  const parts = server.requests.map(partsOf);
  const texts = parts.map((part) => part.join("\n"));
  const kept = texts
    .slice(1)
    .map((next, index) => commonPrefix(texts[index]!, next) / texts[index]!.length);
  return {
    bytes: server.requests.reduce((sum, body) => sum + Buffer.byteLength(JSON.stringify(body)), 0),
    tokens: parts.flat().reduce((sum, part) => sum + (isKeptBack(part) ? 0 : tokensOf(part)), 0),
    prefix: kept.reduce((sum, share) => sum + share, 0) / kept.length,
  };
}

/**
 * Tools, system text and messages of a request, one by one, in the order in which providers cache
 * them.
 */
function partsOf({ tools, system, instructions, messages, input }: RequestBody): string[] {
  const list = (value: unknown): unknown[] =>
    Array.isArray(value) ? value : value === undefined ? [] : [value];
  return [tools, system, instructions, messages, input]
    .flatMap(list)
    .map((part) => JSON.stringify(part));
}

const isKeptBack = (part: string): boolean => part.includes('"defer_loading":true');

/** The same definitions come again and again. */
const known = new Map<string, number>();
function tokensOf(text: string): number {
  let count = known.get(text);
  if (count === undefined) known.set(text, (count = encoding.encode(text, "all").length));
  return count;
}

function commonPrefix(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let index = 0;
  while (index < end && a.charCodeAt(index) === b.charCodeAt(index)) index += 1;
  return index;
}
