import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  END,
  MessagesValue,
  START,
  StateGraph,
  StateSchema,
  type BaseCheckpointSaver,
  type BaseStore,
} from "@langchain/langgraph";

import type { WrappableClient } from "../../connect/open/wrapped.js";
import { McpConfigError } from "../../errors.js";
import type { McpHub } from "../../hub/mcpHub.js";
import { makeNodes, type McpNodesOptions } from "./nodes.js";
import { mcpStateFields } from "./state.js";

/** Options of {@link createMcpGraph}. */
export interface McpGraphOptions extends McpNodesOptions {
  readonly model: BaseChatModel;
  /** Keeps threads; needed for interrupts. */
  readonly checkpointer?: BaseCheckpointSaver | boolean;
  readonly store?: BaseStore;
}

/** State of a graph of {@link createMcpGraph}. */
export const McpGraphSchema = new StateSchema({ messages: MessagesValue, ...mcpStateFields });

const { mcpActivation, disabledMcpServers } = mcpStateFields;
/**
 * Input and output: keeps our private keys from the caller, and from a parent graph that has its
 * own.
 */
const PublicSchema = new StateSchema({
  messages: MessagesValue,
  mcpActivation,
  disabledMcpServers,
});

/**
 * Makes a compiled agent graph with MCP tools; use `createMcpNodes` to build your own graph from
 * its parts.
 * @throws {McpConfigError} for unknown or wrong options.
 * @example
 * const graph = createMcpGraph(hub, { model, checkpointer });
 * await graph.invoke({ messages: "Which files are here?" }, { configurable: { thread_id: "1" } });
 */
export function createMcpGraph(hubOrClient: McpHub | WrappableClient, options: McpGraphOptions) {
  const { checkpointer, store, ...rest } = options;
  if ((options as Partial<McpGraphOptions>).model === undefined) {
    throw new McpConfigError(
      'createMcpGraph needs the option "model": a chat model, as initChatModel("openai:…") makes one.',
    );
  }
  const nodes = makeNodes(hubOrClient, rest, "createMcpGraph");
  return new StateGraph({ state: McpGraphSchema, input: PublicSchema, output: PublicSchema })
    .addNode("input", nodes.input)
    .addNode("callModel", nodes.callModel)
    .addNode("policy", nodes.policy)
    .addNode("tools", nodes.tools)
    .addEdge(START, "input")
    .addConditionalEdges("input", nodes.afterInput, ["callModel", "policy", END])
    .addConditionalEdges("callModel", nodes.afterModel, ["policy", END])
    .addConditionalEdges("policy", nodes.afterPolicy, ["tools", "callModel", END])
    .addEdge("tools", "callModel")
    .compile({
      ...(checkpointer === undefined ? {} : { checkpointer }),
      ...(store === undefined ? {} : { store }),
    });
}
