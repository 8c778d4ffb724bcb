import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ToolMessage, type BaseMessage, type SystemMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { Command, END, interrupt, Send, type LangGraphRunnableConfig } from "@langchain/langgraph";

import { OwnTools } from "../../agent/ownTools.js";
import { openCalls } from "../../agent/openCalls.js";
import type { ToolCall } from "../../agent/runContext.js";
import { parseAgentOptions, type McpAgentOptions } from "../../config/agentOptions.js";
import type { WrappableClient } from "../../connect/open/wrapped.js";
import { McpAgent, isWaiting } from "../../agent/mcpAgent.js";
import { McpConfigError } from "../../errors.js";
import { hubOf, type McpHub } from "../../hub/mcpHub.js";
import { isAnswerTo } from "../../input/typed.js";
import { writtenBy } from "../../input/turnInput.js";
import { callModel, prepareModelRequest, type ModelRequest } from "../../agent/modelRequest.js";
import type { McpStateUpdate, McpThreadState } from "../../state.js";

/** State that the nodes read. */
export type McpGraphState = McpThreadState & { readonly messages: BaseMessage[] };

/** State update of a node. */
export type McpGraphUpdate = McpStateUpdate & { messages?: BaseMessage[] };

/** Options of {@link createMcpNodes}. */
export interface McpNodesOptions extends McpAgentOptions {
  /** Model of the node `callModel`. Not needed if you call the model yourself. */
  readonly model?: BaseChatModel;
  /** The agent's own tools. They win over MCP tools of the same name. */
  readonly ownTools?: readonly StructuredToolInterface[];
  /** Precedes the listing in the system message. */
  readonly systemPrompt?: string | SystemMessage;
}

/** Nodes and conditional edges of a graph with MCP tools, named as in {@link createMcpGraph}. */
export interface McpNodes {
  /** First node of a run: connects servers, and takes typed mentions and commands. */
  readonly input: (
    state: McpGraphState,
    config: LangGraphRunnableConfig,
  ) => Promise<McpGraphUpdate>;
  readonly callModel: (
    state: McpGraphState,
    config: LangGraphRunnableConfig,
  ) => Promise<McpGraphUpdate>;
  /**
   * Prepares a model call for your own node; write `update` and the result of `complete(answer)` to
   * the state.
   */
  readonly prepareModelCall: (
    state: McpGraphState,
    config: LangGraphRunnableConfig,
  ) => Promise<ModelRequest>;
  /** Asks a person about calls and typed input, in one interrupt. Runs after every model call. */
  readonly policy: (
    state: McpGraphState,
    config: LangGraphRunnableConfig,
  ) => Promise<McpGraphUpdate>;
  /** Runs one call that {@link McpNodes.afterPolicy} sent, or all calls of the last answer. */
  readonly tools: (
    state: McpGraphState & { readonly mcpToolCall?: ToolCall },
    config: LangGraphRunnableConfig,
  ) => Promise<McpGraphUpdate | (McpGraphUpdate | Command)[]>;
  /**
   * After `input`: to the policy if a person has to be asked, to the end if they were answered,
   * else to the model.
   */
  readonly afterInput: (state: McpGraphState) => "callModel" | "policy" | typeof END;
  /** After the model: to the policy if it called tools, else to the end. */
  readonly afterModel: (state: McpGraphState) => "policy" | typeof END;
  /**
   * After the policy: sends each call to `tools` alone, or goes to the model or the end after typed
   * input.
   */
  readonly afterPolicy: (state: McpGraphState) => Send[] | "callModel" | typeof END;
}

/**
 * Makes the nodes of your own LangGraph graph with MCP tools.
 *
 * They behave like `mcpMiddleware` and use the same state: add `mcpStateFields` to your
 * `StateSchema`, or `mcpAnnotation.spec` to your `Annotation.Root`. Keep keys that begin with `_`
 * out of the graph's input.
 * @param hubOrClient - A hub, or a `MultiServerMCPClient`, which is wrapped and stays yours.
 * @throws {McpConfigError} for unknown or wrong options.
 * @example
 * const nodes = createMcpNodes(hub, { model });
 * const graph = new StateGraph(State)
 *   .addNode("input", nodes.input)
 *   .addNode("callModel", nodes.callModel)
 *   .addNode("policy", nodes.policy)
 *   .addNode("tools", nodes.tools)
 *   .addEdge(START, "input")
 *   .addConditionalEdges("input", nodes.afterInput, ["callModel", "policy", END])
 *   .addConditionalEdges("callModel", nodes.afterModel, ["policy", END])
 *   .addConditionalEdges("policy", nodes.afterPolicy, ["tools", "callModel", END])
 *   .addEdge("tools", "callModel")
 *   .compile({ checkpointer });
 */
export function createMcpNodes(
  hubOrClient: McpHub | WrappableClient,
  options: McpNodesOptions = {},
): McpNodes {
  return makeNodes(hubOrClient, options, "createMcpNodes");
}

/** Makes the nodes. @param subject - Function name for errors. */
export function makeNodes(
  hubOrClient: McpHub | WrappableClient,
  options: McpNodesOptions,
  subject: string,
): McpNodes {
  const { model, ownTools = [], systemPrompt, ...agentOptions } = options;
  const agent = new McpAgent(
    hubOf(hubOrClient, subject),
    parseAgentOptions(agentOptions, `${subject} options`),
  );
  const ownToolset = new OwnTools(agent, ownTools);

  const prepareModelCall: McpNodes["prepareModelCall"] = (state, config) =>
    prepareModelRequest(agent, agent.runOf(state, config), state.messages, ownToolset, {
      systemPrompt,
      model,
    });

  const runCall = async (call: ToolCall, state: McpGraphState, config: LangGraphRunnableConfig) => {
    const { result, update } = await ownToolset.run(agent.runOf(state, config), call);
    return ToolMessage.isInstance(result) ? { ...update, messages: [result] } : result;
  };

  return {
    input: async (state, config) => {
      return writtenBy(await agent.start(agent.runOf(state, config), state.messages));
    },
    prepareModelCall,
    callModel: async (state, config) => {
      if (model === undefined) {
        throw new McpConfigError(
          'createMcpNodes: the node "callModel" needs the option "model". Or call the model in a node of your own, with prepareModelCall.',
        );
      }
      const request = await prepareModelCall(state, config);
      const answer = await callModel(model, request, agent.runOf(state, config));
      return { ...request.update, ...(await request.complete(answer)), messages: [answer] };
    },
    policy: async (state, config) => {
      const run = agent.runOf(state, config);
      const turn = await agent.answerTyped(run, state.messages, interrupt);
      if (turn !== undefined) return writtenBy(turn);
      return (await agent.ask(run, state.messages, interrupt)) ?? {};
    },
    tools: async (state, config) => {
      const { mcpToolCall } = state;
      if (mcpToolCall === undefined)
        return Promise.all(openCalls(state.messages).map((call) => runCall(call, state, config)));
      const result = await runCall(mcpToolCall, state, config);
      return result instanceof Command ? [result] : result;
    },
    afterInput: (state) => {
      if (isAnswered(state)) return END;
      return isWaiting(state) ? "policy" : "callModel";
    },
    afterModel: (state) => (openCalls(state.messages).length > 0 ? "policy" : END),
    afterPolicy: (state) => {
      const calls = openCalls(state.messages);
      if (calls.length === 0) return isAnswered(state) ? END : "callModel";
      // Tools need no resources of the conversation.
      return calls.map(
        (mcpToolCall) => new Send("tools", { ...state, _mcpResources: undefined, mcpToolCall }),
      );
    },
  };
}

/**
 * True when the person was answered in the model's place; another agent's last message does not
 * count.
 */
function isAnswered({ messages }: McpGraphState): boolean {
  return isAnswerTo(messages.at(-1));
}
