// Compiled, not run: what must compile, and what must not.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  Annotation,
  END,
  MessagesAnnotation,
  MessagesValue,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { createAgent } from "langchain";
import {
  McpConnectionError,
  McpHub,
  mcpMiddleware,
  type McpActivation,
  type McpHubOptions,
  type ServerStatus,
} from "langchain-mcp-middleware";
import { createMcpSession } from "langchain-mcp-middleware/chain";
import { McpHub as CoreHub } from "langchain-mcp-middleware/core";
import {
  createMcpGraph,
  createMcpNodes,
  mcpAnnotation,
  mcpStateFields,
} from "langchain-mcp-middleware/graph";
import { createMcpTestHub } from "langchain-mcp-middleware/testing";
import * as z from "zod";

declare function use(value: unknown): void;

const client = new MultiServerMCPClient({ mcpServers: { a: { command: "node", args: [] } } });
const hub = McpHub.fromServers({ a: { command: "node" } });
const same: CoreHub = hub;
use(same);

const agent = createAgent({
  model: "openai:x",
  middleware: [mcpMiddleware(client), mcpMiddleware(hub, { servers: ["a"] })],
});

async function state(): Promise<McpActivation> {
  const result = await agent.invoke({ messages: "hi" });
  // @ts-expect-error private keys are not in the result
  use(result._mcpSent);
  return result.mcpActivation;
}
use(state);

// @ts-expect-error a misspelt option
mcpMiddleware(hub, { server: ["a"] });
// @ts-expect-error a wrong kind
const wrong: McpHubOptions = { mcpServers: { a: { command: 5 } } };
use(wrong);
// @ts-expect-error not a client
mcpMiddleware({ hello: 1 });

const states: ServerStatus["state"][] = [
  "idle",
  "connecting",
  "connected",
  "needs-auth",
  "failed",
  "disabled",
  "closed",
];
use(states);

const end: () => void = hub.on("call", ({ serverName, latencyMs, threadId }) => {
  const names: string = serverName;
  const time: number = latencyMs;
  const thread: string | undefined = threadId;
  use([names, time, thread]);
});
use(end);
// @ts-expect-error no such event
hub.on("nope", () => undefined);

declare const error: unknown;
if (McpConnectionError.isInstance(error)) {
  const code:
    | "CONNECT_FAILED"
    | "CONNECT_TIMEOUT"
    | "REQUEST_TIMEOUT"
    | "SESSION_LOST"
    | "UNANSWERED"
    | "SERVER_BUSY"
    | "MESSAGE_TOO_LARGE"
    | "BREAKER_OPEN"
    | "CLOSED" = error.code;
  use(code);
}

// State of a graph is inferred without casts, by StateSchema and by Annotation.Root, with fields of
// one's own.
declare const model: BaseChatModel;
const nodes = createMcpNodes(hub, { model });
const schemaGraph = new StateGraph(
  new StateSchema({ messages: MessagesValue, calls: z.number().default(0), ...mcpStateFields }),
)
  .addNode("input", nodes.input)
  .addNode("callModel", async (now, config) => {
    const request = await nodes.prepareModelCall(now, config);
    const tools: number = request.tools.length;
    use(tools);
    return { ...(await nodes.callModel(now, config)), calls: now.calls + 1 };
  })
  .addNode("policy", nodes.policy)
  .addNode("tools", nodes.tools)
  .addEdge(START, "input")
  .addConditionalEdges("input", nodes.afterInput, ["callModel", "policy", END])
  .addConditionalEdges("callModel", nodes.afterModel, ["policy", END])
  .addConditionalEdges("policy", nodes.afterPolicy, ["tools", "callModel", END])
  .addEdge("tools", "callModel")
  .compile();
const annotationGraph = new StateGraph(
  Annotation.Root({ ...MessagesAnnotation.spec, ...mcpAnnotation.spec }),
)
  .addNode("input", nodes.input)
  .addNode("callModel", nodes.callModel)
  .addNode("policy", nodes.policy)
  .addNode("tools", nodes.tools)
  .addEdge(START, "input")
  .addConditionalEdges("input", nodes.afterInput, ["callModel", "policy", END])
  .addEdge("tools", "callModel")
  .compile();

async function graphStates(): Promise<void> {
  const own = await schemaGraph.invoke({ messages: "hi" });
  const calls: number = own.calls;
  const activation: McpActivation = own.mcpActivation;
  const annotated = await annotationGraph.invoke({ messages: ["hi"] });
  const promoted: McpActivation = annotated.mcpActivation;
  const ready = await createMcpGraph(hub, { model }).invoke({ messages: "hi" });
  const disabled: string[] | undefined = ready.disabledMcpServers;
  const text: string = (await createMcpSession(hub).loop(model).invoke("hi")).at(-1)!.text;
  use([calls, activation, promoted, disabled, text]);
  // @ts-expect-error not in the state
  use(ready.mcpActivations);
}
use(graphStates);
// @ts-expect-error a misspelt option
createMcpNodes(hub, { ownTool: [] });
// @ts-expect-error a test server is recorded, not started
createMcpTestHub({ mcpServers: { a: { command: "node" } } });
