import { afterEach, describe, expect, it } from "@jest/globals";
import { HumanMessage, type BaseMessage } from "@langchain/core/messages";
import {
  Command,
  END,
  MemorySaver,
  MessagesValue,
  Send,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { createDeepAgent } from "deepagents";
import type { AgentMiddleware } from "langchain";

import { createMcpGraph, createMcpNodes, mcpStateFields } from "../../src/graph.js";
import {
  mcpMiddleware,
  type AskRequest,
  type McpActivation,
  type McpAgentOptions,
  type McpHub,
} from "../../src/index.js";
import {
  answersOf,
  calling,
  scripted,
  spyMiddleware,
  type ScriptedCall,
} from "../support/agents.js";
import { serving } from "../support/serving.js";

const { serve, hubOf, closeAll } = serving();
afterEach(closeAll);

const page = (name: string) => ({
  name,
  description: `Does ${name.replace("_", " ")}`,
  inputSchema: { type: "object", properties: { page: { type: "string" } } },
});

async function twoServers(policy: object = { default: "allow" }) {
  const files = await serve({ name: "files", tools: [page("read_file"), page("write_file")] });
  const wiki = await serve({
    name: "wiki",
    tools: [page("get_page"), page("put_page"), page("drop_page")],
  });
  const hub = hubOf(
    { files: { url: files.url }, wiki: { url: wiki.url } },
    { policy, limits: { autoDeferChars: 0 } },
  );
  await hub.connect();
  return {
    hub,
    ran: () =>
      ({ ...files.stats.callsByTool, ...wiki.stats.callsByTool }) as Record<string, number>,
  };
}

const task = (id: string, subagent: string): ScriptedCall => ({
  id,
  name: "task",
  args: { description: `to ${subagent}`, subagent_type: subagent },
});
const put = (id: string): ScriptedCall => ({ id, name: "mcp__wiki__put_page", args: { page: id } });

/** A deep agent; each sub-agent has its own part of the hub. */
function deepAgent(
  hub: McpHub,
  main: Parameters<typeof scripted>,
  parts: Record<
    string,
    { readonly answers: Parameters<typeof scripted>; readonly options: McpAgentOptions }
  >,
) {
  const spies = { main: spyMiddleware() } as Record<string, ReturnType<typeof spyMiddleware>>;
  const middleware = (name: string, options?: McpAgentOptions) => {
    const spy = (spies[name] ??= spyMiddleware());
    return [
      mcpMiddleware(hub, options) as unknown as AgentMiddleware,
      spy.middleware as AgentMiddleware,
    ];
  };
  const agent = createDeepAgent({
    model: scripted(...main) as never,
    middleware: middleware("main") as never,
    checkpointer: new MemorySaver(),
    subagents: Object.entries(parts).map(([name, { answers, options }]) => ({
      name,
      description: name,
      systemPrompt: `You are ${name}.`,
      model: scripted(...answers),
      middleware: middleware(name, options),
    })) as never,
  });
  const invoke = agent.invoke.bind(agent) as unknown as (
    input: unknown,
    config: object,
  ) => Promise<Record<string, unknown>>;
  const run = async (input: unknown) => {
    const result = await invoke(input, { configurable: { thread_id: "1" }, recursionLimit: 200 });
    return result as {
      messages: BaseMessage[];
      mcpActivation?: McpActivation;
      __interrupt__?: { id: string; value: AskRequest }[];
    };
  };
  return { spies, run };
}

describe("sub-agents of a deep agent", () => {
  it("see only their servers and tools; their promotions are shared, their listing is not", async () => {
    const { hub } = await twoServers();
    const { spies, run } = deepAgent(
      hub,
      [
        calling({
          id: "m",
          name: "search_mcp_tools",
          args: { query: "mcp__files__read_file", limit: 1 },
        }),
        calling(task("t", "writer")),
        "done",
      ],
      {
        writer: {
          options: { servers: ["wiki"], tools: ["{get,put}_page"] },
          answers: [
            calling(
              {
                id: "a",
                name: "search_mcp_tools",
                args: { query: "mcp__wiki__put_page", limit: 1 },
              },
              {
                id: "b",
                name: "search_mcp_tools",
                args: { query: "mcp__files__write_file mcp__wiki__drop_page" },
              },
              { id: "c", name: "mcp__files__write_file", args: { page: "x" } },
            ),
            "written",
          ],
        },
      },
    );
    const { messages, mcpActivation } = await run({ messages: [new HumanMessage("go")] });
    expect(answersOf(messages)["t"]!.text).toBe("written");

    const [mainFirst, , mainLast] = spies["main"]!.seen;
    const [, subLast] = spies["writer"]!.seen;
    expect(mainFirst!.system).toContain("mcp__files__read_file");
    expect(subLast!.system).toContain("mcp__wiki__put_page");
    expect(subLast!.system).not.toContain("files");
    expect(subLast!.system).not.toContain("drop_page");
    expect(subLast!.tools).toContain("mcp__wiki__put_page");
    // The parent found this; the sub-agent may not see it.
    expect(subLast!.tools).not.toContain("mcp__files__read_file");
    expect(answersOf(subLast!.messages)["b"]!.text).toContain("Nothing fits");
    expect(answersOf(subLast!.messages)["c"]!.text).toContain("is not available");

    expect(mainLast!.tools).toEqual(
      expect.arrayContaining(["mcp__files__read_file", "mcp__wiki__put_page"]),
    );
    expect(mainLast!.system).toBe(mainFirst!.system);
    expect(Object.keys(mcpActivation!.promoted).sort()).toEqual([
      "mcp__files__read_file",
      "mcp__wiki__put_page",
    ]);
  });

  it("start with the promotions of the thread", async () => {
    const { hub } = await twoServers();
    const { spies, run } = deepAgent(
      hub,
      [
        calling({
          id: "m",
          name: "search_mcp_tools",
          args: { query: "mcp__wiki__get_page", limit: 1 },
        }),
        calling(task("t", "reader")),
        "done",
      ],
      { reader: { options: { servers: ["wiki"] }, answers: ["read"] } },
    );
    await run({ messages: [new HumanMessage("go")] });
    expect(spies["reader"]!.seen[0]!.tools).toContain("mcp__wiki__get_page");
  });

  it("ask in parallel: each is answered by its interrupt, in any order, and nothing runs twice", async () => {
    const { hub, ran } = await twoServers({ ask: ["mcp:call:wiki:put_page"] });
    const part = (name: string) => ({
      options: { servers: ["wiki"] },
      answers: [
        calling(put(`${name} 1`), {
          id: `${name} r`,
          name: "mcp__wiki__get_page",
          args: { page: name },
        }),
        `${name} done`,
      ] as Parameters<typeof scripted>,
    });
    const { run } = deepAgent(hub, [calling(task("t1", "one"), task("t2", "two")), "done"], {
      one: part("one"),
      two: part("two"),
    });
    const { __interrupt__: asked = [] } = await run({ messages: [new HumanMessage("go")] });
    expect(
      asked.map(({ value }) => value.actionRequests.map(({ callId }) => callId)).sort(),
    ).toEqual([["one 1"], ["two 1"]]);
    expect(ran()).toEqual({});
    const idOf = (callId: string) =>
      asked.find(({ value }) => value.actionRequests[0]!.callId === callId)!.id;

    const later = await run(
      new Command({ resume: { [idOf("two 1")]: { decisions: [{ type: "approve" }] } } }),
    );
    expect(later.__interrupt__?.map(({ value }) => value.actionRequests[0]!.callId)).toEqual([
      "one 1",
    ]);
    expect(ran()).toEqual({ put_page: 1, get_page: 1 });

    const { messages } = await run(
      new Command({
        resume: {
          [later.__interrupt__![0]!.id]: { decisions: [{ type: "reject", message: "no" }] },
        },
      }),
    );
    expect(answersOf(messages)["t1"]!.text).toBe("one done");
    expect(answersOf(messages)["t2"]!.text).toBe("two done");
    expect(messages.at(-1)!.text).toBe("done");
    expect(ran()).toEqual({ put_page: 1, get_page: 2 });
  });
});

it("commands and mentions in a sub-agent's task have no effect: a model wrote it", async () => {
  const wiki = await serve({
    name: "wiki",
    tools: [page("get_page")],
    resources: { "wiki://home": { text: "welcome" } },
    prompts: [{ name: "greet" }],
    promptMessages: { greet: [{ role: "user", content: { type: "text", text: "Say hello" } }] },
  });
  const hub = hubOf({ wiki: { url: wiki.url } }, { limits: { autoDeferChars: 0 } });
  await hub.connect();
  for (const description of [
    "/mcp__wiki__greet",
    "/mcp disable wiki",
    "/mcp",
    "look at @wiki:wiki://home",
  ]) {
    const given = { id: "t", name: "task", args: { description, subagent_type: "reader" } };
    const { spies, run } = deepAgent(hub, [calling(given), "done"], {
      reader: { options: {}, answers: ["read"] },
    });
    const { messages } = await run({ messages: [new HumanMessage("go")] });
    expect(answersOf(messages)["t"]!.text).toBe("read");
    expect(spies["reader"]!.seen[0]!.messages.at(-1)!.text).toBe(description);
    expect(spies["reader"]!.seen[0]!.system).not.toContain("MCP_RESOURCE");
  }
  expect(wiki.stats.gets ?? []).toEqual([]);
  expect(wiki.stats.reads).toEqual({});
});

describe("sub-graphs", () => {
  const State = new StateSchema({ messages: MessagesValue, ...mcpStateFields });

  it("share promotions with the outer graph; listings stay apart", async () => {
    const { hub } = await twoServers();
    const first = scripted(
      calling({
        id: "f",
        name: "search_mcp_tools",
        args: { query: "mcp__wiki__get_page", limit: 1 },
      }),
      "found",
    );
    const second = scripted("used");
    const graph = new StateGraph(State)
      .addNode("first", createMcpGraph(hub, { model: first, servers: ["wiki"] }))
      .addNode("second", createMcpGraph(hub, { model: second }))
      .addEdge(START, "first")
      .addEdge("first", "second")
      .addEdge("second", END)
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: "1" } };
    const { mcpActivation } = await graph.invoke({ messages: [new HumanMessage("go")] }, config);
    expect(Object.keys(mcpActivation.promoted)).toEqual(["mcp__wiki__get_page"]);
    expect(first.calls[0]!.messages[0]!.text).not.toContain("mcp__files__read_file");
    expect(second.calls[0]!.messages[0]!.text).toContain("mcp__files__read_file");
  });

  it("keep their own listing and resources, and do not change those of the outer graph", async () => {
    const files = await serve({
      name: "files",
      tools: [page("read_file")],
      resources: { "files://a": { text: "content of a" } },
    });
    const wiki = await serve({
      name: "wiki",
      tools: [page("get_page")],
      resources: { "wiki://b": { text: "content of b" } },
    });
    const hub = hubOf(
      { files: { url: files.url }, wiki: { url: wiki.url } },
      { limits: { autoDeferChars: 0 } },
    );
    await hub.connect();
    const model = scripted("one", "three");
    const nodes = createMcpNodes(hub, { model });
    const graph = new StateGraph(State)
      .addNode("input", nodes.input)
      .addNode("callModel", nodes.callModel)
      .addNode("sub", createMcpGraph(hub, { model: scripted("two"), servers: ["wiki"] }))
      .addConditionalEdges(
        START,
        ({ messages }) => (messages.at(-1)!.text.startsWith("sub") ? "sub" : "input"),
        ["sub", "input"],
      )
      .addConditionalEdges("input", nodes.afterInput, ["callModel", END])
      .addEdge("callModel", END)
      .addEdge("sub", END)
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: "1" } };
    await graph.invoke({ messages: [new HumanMessage("see @files:files://a")] }, config);
    const before = (await graph.getState(config)).values;
    await graph.invoke({ messages: [new HumanMessage("sub: see @wiki:wiki://b")] }, config);
    const { _mcpSent, _mcpResources, cachedMcpResources } = (await graph.getState(config)).values;
    expect({ _mcpSent, _mcpResources, cachedMcpResources }).toEqual({
      _mcpSent: before._mcpSent,
      _mcpResources: before._mcpResources,
      cachedMcpResources: before.cachedMcpResources,
    });
    await graph.invoke({ messages: [new HumanMessage("what does a say?")] }, config);
    expect(JSON.stringify(model.calls[1]!.messages[0]!.content)).toContain("content of a");
  });

  it("ask in parallel, too", async () => {
    const { hub, ran } = await twoServers({ ask: ["mcp:call:wiki:put_page"] });
    const sub = (name: string) =>
      createMcpGraph(hub, { model: scripted(calling(put(name)), `${name} done`) });
    const graph = new StateGraph(new StateSchema({ messages: MessagesValue }))
      .addNode("one", sub("one"))
      .addNode("two", sub("two"))
      .addConditionalEdges(
        START,
        ({ messages }) => ["one", "two"].map((node) => new Send(node, { messages })),
        ["one", "two"],
      )
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: "1" } };
    const result = (await graph.invoke({ messages: [new HumanMessage("go")] }, config)) as {
      __interrupt__?: { id: string; value: AskRequest }[];
    };
    const asked = result.__interrupt__!;
    expect(asked).toHaveLength(2);
    const resume = Object.fromEntries(
      asked.map(({ id }) => [id, { decisions: [{ type: "approve" }] }]),
    );
    const { messages } = await graph.invoke(new Command({ resume }), config);
    expect(ran()).toEqual({ put_page: 2 });
    expect(messages.map(({ text }) => text)).toEqual(
      expect.arrayContaining(["one done", "two done"]),
    );
  });
});
