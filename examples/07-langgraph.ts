// LangGraph: the nodes of a graph of your own, on the real server-everything.
// Run it with `npx tsx examples/07-langgraph.ts`; it needs no network and no keys.
import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import {
  Command,
  END,
  MemorySaver,
  MessagesValue,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { createMcpNodes, mcpStateFields, McpHub } from "langchain-mcp-middleware/graph";
import * as z from "zod";

await using hub = new McpHub({
  mcpServers: { demo: { command: "npx", args: ["mcp-server-everything"], defer: true } },
  policy: { ask: ["mcp:call:demo:get-sum"] },
});
await hub.connect();
const call = (id: string, name: string, args: object) =>
  new AIMessage({
    content: "",
    tool_calls: [{ type: "tool_call", id, name, args: args as Record<string, unknown> }],
  });
const model = fakeModel()
  .respond(call("1", "search_mcp_tools", { query: "add two numbers" }))
  .respond(call("2", "mcp__demo__get-sum", { a: 20, b: 22 }))
  .respond(new AIMessage("It is 42."));

// %% 1. A state with fields of your own, and ours
const State = new StateSchema({
  messages: MessagesValue,
  calls: z.number().default(0),
  ...mcpStateFields,
});

// %% 2. A graph of your own
// The model node counts its calls; what goes to the model and what its answer means is prepared.
const nodes = createMcpNodes(hub, { model });
const graph = new StateGraph(State)
  .addNode("input", nodes.input)
  .addNode("callModel", async (state, config) => ({
    ...(await nodes.callModel(state, config)),
    calls: state.calls + 1,
  }))
  .addNode("policy", nodes.policy)
  .addNode("tools", nodes.tools)
  .addEdge(START, "input")
  .addConditionalEdges("input", nodes.afterInput, ["callModel", "policy", END])
  .addConditionalEdges("callModel", nodes.afterModel, ["policy", END])
  .addConditionalEdges("policy", nodes.afterPolicy, ["tools", "callModel", END])
  .addEdge("tools", "callModel")
  .compile({ checkpointer: new MemorySaver() });

// %% 3. It stops to ask
const thread = { configurable: { thread_id: "1" } };
await graph.invoke({ messages: "What is 20 and 22?" }, thread);
const { next, tasks } = await graph.getState(thread);
console.log(
  next,
  (tasks[0]!.interrupts[0]!.value as { actionRequests: { name: string; args: object }[] })
    .actionRequests[0]!.name,
);
// → [ 'policy' ] mcp__demo__get-sum

// %% 4. And goes on
const { messages, calls } = await graph.invoke(
  new Command({ resume: { decisions: [{ type: "approve" }] } }),
  thread,
);
console.log(messages.at(-2)!.text.split("\n")[1]);
// → The sum of 20 and 22 is 42.
console.log(messages.at(-1)!.text);
// → It is 42.
console.log(calls);
// → 3
