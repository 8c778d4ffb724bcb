import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { createAgent, type AgentMiddleware } from "langchain";

import { createMcpSession } from "../../src/chain.js";
import { createMcpGraph } from "../../src/graph.js";
import { mcpMiddleware, type McpAgentOptions, type McpHub } from "../../src/index.js";
import { calling, scripted } from "../support/agents.js";
import { serving } from "../support/serving.js";

const { serve, hubOf, closeAll } = serving();
let hub: McpHub;

beforeAll(async () => {
  const { url } = await serve({ noBase: false, tools: [] });
  hub = hubOf({ lab: { url } }, { limits: { autoDeferChars: 0 } });
  await hub.connect();
});

afterAll(closeAll);

class CustomEventHandler extends BaseCallbackHandler {
  name = "custom events";
  readonly #listener: (name: string, data: unknown) => void;

  constructor(listener: (name: string, data: unknown) => void) {
    super();
    this.#listener = listener;
  }

  override handleCustomEvent(name: string, data: unknown): void {
    this.#listener(name, data);
  }
}

const steps = () => [
  calling({ name: "search_mcp_tools", args: { query: "mcp__lab__slow" }, id: "find" }),
  calling({ name: "mcp__lab__slow", args: { ms: 30, steps: 3 }, id: "call" }),
  "done",
];
const EXPECTED = [
  { type: "mcp_search", toolCallId: "find", query: "mcp__lab__slow", matches: ["mcp__lab__slow"] },
  ...[1, 2, 3].map((progress) => ({
    type: "mcp_progress",
    serverName: "lab",
    toolName: "slow",
    toolCallId: "call",
    progress,
  })),
];

/** The graphs of the ways in. */
const GRAPHS = {
  createAgent: (options: McpAgentOptions = {}) =>
    createAgent({
      model: scripted(...steps()),
      middleware: [mcpMiddleware(hub, options) as unknown as AgentMiddleware],
    }).graph,
  createMcpGraph: (options: McpAgentOptions = {}) =>
    createMcpGraph(hub, { ...options, model: scripted(...steps()) }),
};

describe.each(Object.entries(GRAPHS))("a run of %s", (_name, graphOf) => {
  it("reports searches and progress on the custom stream as they happen", async () => {
    const seen: unknown[] = [];
    const stream = await graphOf().stream({ messages: "go" } as never, {
      streamMode: ["custom", "updates"] as never,
    });
    for await (const [mode, chunk] of stream as unknown as AsyncIterable<[string, object]>) {
      if (mode === "custom") seen.push(chunk);
      else if (
        JSON.stringify(chunk).includes('"call"') &&
        JSON.stringify(chunk).includes("ToolMessage")
      )
        seen.push("answer");
    }
    expect(seen).toMatchObject([...EXPECTED, "answer"]);
  });

  it("has server and tool in the metadata of its runs, and sends the same data as custom events", async () => {
    const custom: unknown[] = [];
    const started: unknown[] = [];
    const events = graphOf().streamEvents({ messages: "go" }, { version: "v2" });
    for await (const { event, name, data, metadata } of events as AsyncIterable<
      Record<string, unknown>
    >) {
      if (event === "on_custom_event") custom.push(data);
      if (event === "on_tool_start") started.push({ name, metadata });
    }
    expect(custom).toMatchObject(EXPECTED);
    expect(started).toMatchObject([
      { name: "search_mcp_tools" },
      { name: "mcp__lab__slow", metadata: { serverName: "lab", toolName: "slow" } },
    ]);
  });
});

it("a session reports to a callback handler", async () => {
  const custom: unknown[] = [];
  const handler = new CustomEventHandler((name, data) => custom.push([name, data]));
  await createMcpSession(hub)
    .loop(scripted(...steps()))
    .invoke("go", { callbacks: [handler] });
  expect(custom).toMatchObject(EXPECTED.map((event) => [event.type, event]));
});

it("a run of execute_mcp_tool has the server and tool it names", async () => {
  const model = scripted(
    calling({
      name: "execute_mcp_tool",
      args: { name: "mcp__lab__echo", arguments: { text: "a" } },
      id: "run",
    }),
    "done",
  );
  const graph = createMcpGraph(hub, { model, strategy: "execute" });
  const started: unknown[] = [];
  for await (const { event, metadata } of graph.streamEvents(
    { messages: "go" },
    { version: "v2" },
  )) {
    if (event === "on_tool_start") started.push(metadata);
  }
  expect(started).toMatchObject([{ serverName: "lab", toolName: "echo" }]);
});

it("an exception in a listener affects no tool", async () => {
  const console = jest.spyOn(globalThis.console, "warn").mockImplementation(() => undefined);
  const handler = new CustomEventHandler(() => {
    throw new Error("not my day");
  });
  const graph = createMcpGraph(hub, { model: scripted(...steps()) });
  const { messages } = await graph.invoke({ messages: "go" }, { callbacks: [handler] });
  expect(messages.at(-1)!.text).toBe("done");
  expect(
    messages
      .filter(({ type }) => type === "tool")
      .map((message) => (message as { status?: string }).status),
  ).toEqual(["success", "success"]);
  expect(console).toHaveBeenCalled();
  console.mockRestore();
});
