import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

import { McpHub, type PolicyOptions } from "../../src/core.js";
import { McpAgent } from "../../src/agent/mcpAgent.js";
import {
  mergeActivation,
  EMPTY_ACTIVATION,
  type McpStateUpdate,
  type McpThreadState,
} from "../../src/state.js";
import { serveRecordings, type Recording } from "../recorded.js";
import { limitRow, quantile, type Row } from "../report.js";

const HOPS = 3_000;
const SERVERS = 20;
const RULES_PER_SERVER = 10;

/**
 * Time inside our hooks for one step, with 200, 2,000 and 20,000 tools, and what a policy adds to
 * it.
 */
export async function hooksRows(): Promise<Row[]> {
  const times = new Map<number, number>();
  for (const count of [200, 2_000, 20_000])
    times.set(count, (await hopTimes(count, [undefined]))[0]!);
  const [few, some, many] = [times.get(200)!, times.get(2_000)!, times.get(20_000)!];
  const ratio = many / few;
  return [
    limitRow("time in our hooks per step, 200 tools", few, "ms", "≤ 0.3 ms", few <= 0.3),
    limitRow("time in our hooks per step, 2,000 tools", some, "ms", "≤ 0.3 ms", some <= 0.3),
    {
      name: "time in our hooks per step, 20,000 tools against 200",
      ours: many,
      peer: few,
      ratio,
      target: "≤ 1.3 ×, ≤ 0.3 ms",
      unit: "ms",
      ok: ratio <= 1.3 && many <= 0.3,
      note: "median of a step: before the model, after it, one tool call; the peer column is ours with 200 tools",
    },
    await policyRow(),
  ];
}

/** The same steps with and without 200 rules, in turns. */
async function policyRow(): Promise<Row> {
  const [without, with200] = (await hopTimes(20_000, [
    undefined,
    { deny: rules("tool_09"), ask: rules("tool_08") },
  ])) as [number, number];
  return {
    name: "time in our hooks per step, 20,000 tools, with 200 rules against none",
    ours: with200,
    peer: without,
    ratio: with200 / without,
    target: "≤ 1.1 ×",
    unit: "ms",
    ok: with200 / without <= 1.1,
    note: "nothing changed between steps; every call is decided twice, after the model and at the gate's door; the peer column is ours without a policy",
  };
}

/** Half of the rules name tools, half are globs. */
function rules(head: string): string[] {
  return Array.from({ length: SERVERS }, (_, server) =>
    Array.from({ length: RULES_PER_SERVER / 2 }, (_unused, rule) =>
      rule % 2 === 0
        ? `mcp:call:server${server}:${head}${rule}0`
        : `mcp:call:server${server}:${head}${rule}?`,
    ),
  ).flat();
}

/** Medians of a step for each policy, taken in turns. */
async function hopTimes(
  count: number,
  policies: readonly (PolicyOptions | undefined)[],
): Promise<number[]> {
  const recordings = Array.from({ length: SERVERS }, (_, server): Recording => ({
    file: `s${server}`,
    tools: Array.from({ length: count / SERVERS }, (_unused, tool) => generatedTool(tool)),
  }));
  const { urls, close } = await serveRecordings(recordings);
  const threads = await Promise.all(policies.map((policy) => openThread(urls, policy)));
  const times = policies.map((): number[] => []);
  for (let step = 0; step < HOPS; step += 1) {
    for (const [index, thread] of threads.entries()) times[index]!.push(await thread.step(step));
  }
  await Promise.all(threads.map((thread) => thread.close()));
  await close();
  return times.map((list) => quantile(list.slice(HOPS / 3), 0.5));
}

async function openThread(urls: readonly string[], policy: PolicyOptions | undefined) {
  const hub = new McpHub({
    mcpServers: Object.fromEntries(urls.map((url, index) => [`server${index}`, { url }])),
    ...(policy === undefined ? {} : { policy }),
    limits: { autoDeferChars: 0 },
  });
  await hub.connect(undefined, { onFailure: "throw" });
  const agent = new McpAgent(hub);
  const messages = [new HumanMessage({ content: "go", id: "1" })];
  let state: McpThreadState = {};
  const apply = (update: McpStateUpdate | undefined): void => {
    if (update === undefined) return;
    const activation =
      update.mcpActivation === undefined
        ? {}
        : {
            mcpActivation: mergeActivation(
              state.mcpActivation ?? EMPTY_ACTIVATION,
              update.mcpActivation,
            ),
          };
    state = { ...state, ...update, ...activation };
  };
  apply((await agent.start(agent.runOf(state, undefined), messages)).update);
  const step = async (number: number): Promise<number> => {
    const name = `mcp__server${number % SERVERS}__tool_000${number % 10}`;
    const call = { id: "c", name, args: {}, type: "tool_call" as const };
    const answer = new AIMessage({ content: "", tool_calls: [call] });
    const startedAt = performance.now();
    const run = agent.runOf(state, undefined);
    const plan = await agent.prepare(run, { messages, foreignNames: new Set() });
    const review = await agent.review(run, answer, plan);
    const asked =
      policy === undefined ? undefined : await agent.ask(run, messages, () => undefined);
    const route = await agent.route(run, call, false);
    const done =
      route.kind === "run"
        ? route.after(new ToolMessage({ content: "", tool_call_id: "c", status: "success" }))
        : undefined;
    const elapsed = performance.now() - startedAt;
    for (const update of [plan.update, review, asked, done]) apply(update);
    return elapsed;
  };
  return { step, close: () => hub.close() };
}

function generatedTool(index: number): Recording["tools"][number] {
  const name = `tool_${String(index).padStart(4, "0")}`;
  return {
    name,
    description: `Looks up record ${index} in the warehouse and gives back the rows that match, newest first.`,
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "What to look for" },
        limit: { type: "integer", default: 10 },
      },
      required: ["query"],
    },
  };
}
