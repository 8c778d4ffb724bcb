import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, SystemMessage, type BaseMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";

import type { OwnTools } from "./ownTools.js";
import { withBlocks } from "./systemBlocks.js";
import type { RunContext } from "./runContext.js";
import type { ProviderTool } from "../disclose/providerTools.js";
import type { McpAgent } from "./mcpAgent.js";
import { McpConfigError } from "../errors.js";
import type { McpStateUpdate } from "../state.js";

/** A tool for `bindTools`. */
export type RequestTool = StructuredToolInterface | ProviderTool;

/** A request to a model, and the review of its answer. */
export interface ModelRequest {
  /** System message with listing and resources; `undefined` when it would be empty. */
  readonly systemMessage: SystemMessage | undefined;
  readonly messages: BaseMessage[];
  /** The agent's own tools, then those of MCP servers. */
  readonly tools: readonly RequestTool[];
  /** State update of the thread so far. */
  readonly update: McpStateUpdate;
  /** Reviews the model's answer, once, and returns the state update of the thread. */
  readonly complete: (answer: AIMessage) => Promise<McpStateUpdate>;
}

/** Prepares a model call of an agent other than `createAgent`. */
export async function prepareModelRequest(
  agent: McpAgent,
  run: RunContext,
  messages: readonly BaseMessage[],
  ownTools: OwnTools,
  {
    systemPrompt,
    model,
  }: { readonly systemPrompt?: string | SystemMessage | undefined; readonly model?: unknown },
): Promise<ModelRequest> {
  const plan = await agent.prepare(run, { messages, foreignNames: ownTools.names, model });
  const leading = typeof systemPrompt === "string" ? new SystemMessage(systemPrompt) : systemPrompt;
  const systemMessage = withBlocks(leading ?? new SystemMessage(""), [
    plan.listing,
    ...plan.resources,
  ]);
  return {
    systemMessage: systemMessage.text === "" ? undefined : systemMessage,
    messages: plan.messages,
    tools: [...ownTools.tools, ...plan.tools, ...plan.providerTools],
    update: plan.update ?? {},
    complete: async (answer) => (await agent.review(run, answer, plan)) ?? {},
  };
}

/** Calls a model with a request. @throws {McpConfigError} for a model that cannot bind tools. */
export async function callModel(
  model: BaseChatModel,
  request: ModelRequest,
  { caller: { config } }: RunContext,
): Promise<AIMessage> {
  const { systemMessage, messages, tools } = request;
  const input = systemMessage === undefined ? messages : [systemMessage, ...messages];
  if (tools.length > 0 && model.bindTools === undefined) {
    throw new McpConfigError(
      '"model" has no bindTools(): it cannot call tools. Give a chat model that can; a name such as "openai:…" is made one by initChatModel.',
    );
  }
  const bound = tools.length === 0 ? model : model.bindTools!(tools as StructuredToolInterface[]);
  const answer: unknown = await bound.invoke(input, config);
  if (AIMessage.isInstance(answer)) return answer;
  throw new McpConfigError('"model" did not answer with an AIMessage. Give a chat model.');
}
