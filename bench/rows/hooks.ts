import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

import { McpHub } from "../../src/core.js";
import { Disclosure } from "../../src/disclosure.js";
import { mergeActivation, EMPTY_ACTIVATION, type McpStateUpdate, type McpThreadState } from "../../src/state.js";
import { serveRecordings, type Recording } from "../recorded.js";
import { limitRow, quantile, type Row } from "../report.js";

const HOPS = 3_000;
const SERVERS = 20;

/** Time inside our hooks for one hop, with 200, 2,000 and 20,000 tools. */
export async function hooksRows(): Promise<Row[]> {
  const times = new Map<number, number>();
  for (const count of [200, 2_000, 20_000]) times.set(count, await hopTime(count));
  const [few, some, many] = [times.get(200)!, times.get(2_000)!, times.get(20_000)!];
  const ratio = many / few;
  return [
    limitRow("time in our hooks per hop, 200 tools", few, "ms", "≤ 0.3 ms", few <= 0.3),
    limitRow("time in our hooks per hop, 2,000 tools", some, "ms", "≤ 0.3 ms", some <= 0.3),
    {
      name: "time in our hooks per hop, 20,000 tools against 200",
      ours: many,
      peer: few,
      ratio,
      target: "≤ 1.3 ×, ≤ 0.3 ms",
      unit: "ms",
      ok: ratio <= 1.3 && many <= 0.3,
      note: "median of a hop: before the model, after it, one tool call; the peer column is ours with 200 tools",
    },
  ];
}

async function hopTime(count: number): Promise<number> {
  const recordings = Array.from({ length: SERVERS }, (_, server): Recording => ({
    file: `s${server}`,
    tools: Array.from({ length: count / SERVERS }, (_unused, tool) => generatedTool(tool)),
  }));
  const { urls, close } = await serveRecordings(recordings);
  const hub = new McpHub({
    mcpServers: Object.fromEntries(urls.map((url, index) => [`server${index}`, { url }])),
    autoDeferChars: 0,
  });
  await hub.connect(undefined, { onFailure: "throw" });
  const disclosure = new Disclosure(hub);
  const messages = [new HumanMessage({ content: "go", id: "1" })];
  let state: McpThreadState = {};
  const apply = (update: McpStateUpdate | undefined): void => {
    if (update === undefined) return;
    const activation =
      update.mcpActivation === undefined
        ? {}
        : { mcpActivation: mergeActivation(state.mcpActivation ?? EMPTY_ACTIVATION, update.mcpActivation) };
    state = { ...state, ...update, ...activation };
  };
  apply(await disclosure.start(state, messages));
  const times: number[] = [];
  for (let hop = 0; hop < HOPS; hop += 1) {
    const name = `mcp__server${hop % SERVERS}__tool_000${hop % 10}`;
    const call = { id: "c", name, args: {}, type: "tool_call" as const };
    const answer = new AIMessage({ content: "", tool_calls: [call] });
    const startedAt = performance.now();
    const plan = await disclosure.prepare(state, messages, new Set());
    const review = await disclosure.review(answer, plan, state);
    const route = await disclosure.route(call, false, state);
    const done =
      route.kind === "run" ? route.after(new ToolMessage({ content: "", tool_call_id: "c", status: "success" })) : undefined;
    times.push(performance.now() - startedAt);
    for (const update of [plan.update, review, done]) apply(update);
  }
  await hub.close();
  await close();
  return quantile(times.slice(HOPS / 3), 0.5);
}

function generatedTool(index: number): Recording["tools"][number] {
  const name = `tool_${String(index).padStart(4, "0")}`;
  return {
    name,
    description: `Looks up record ${index} in the warehouse and gives back the rows that match, newest first.`,
    inputSchema: {
      type: "object",
      properties: { query: { type: "string", description: "What to look for" }, limit: { type: "integer", default: 10 } },
      required: ["query"],
    },
  };
}
