import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import { HumanMessage } from "@langchain/core/messages";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, type AgentMiddleware } from "langchain";

import { mcpMiddleware, type AskRequest, type McpAgentOptions, type McpHub, type WrappableClient } from "../../src/index.js";
import { scripted, spyMiddleware, type SeenCall } from "./agents.js";

/** What one turn brought. */
export interface Said {
  /** The model calls of this turn. */
  readonly calls: readonly SeenCall[];
  /** Resource blocks of the last model call of this turn. */
  readonly blocks: readonly string[];
  readonly asked: AskRequest | undefined;
  readonly messages: readonly BaseMessage[];
  readonly last: string;
}

/** A conversation with an agent whose model gives these answers, then "ok". */
export function talk(
  hub: McpHub | WrappableClient,
  {
    options = {},
    answers = [],
    checkpointer = new MemorySaver(),
  }: {
    readonly options?: McpAgentOptions;
    readonly answers?: readonly (AIMessage | string)[];
    readonly checkpointer?: unknown;
  } = {},
) {
  const { seen, middleware } = spyMiddleware();
  const ours = mcpMiddleware(hub, options) as unknown as AgentMiddleware;
  const model = scripted(...answers, ...Array.from({ length: 20 }, () => "ok"));
  const agent = createAgent({
    model,
    middleware: [ours, middleware as AgentMiddleware],
    ...(checkpointer === false ? {} : { checkpointer }),
  } as never);
  const config = { configurable: { thread_id: "1" } };
  const run = async (input: unknown, context?: object): Promise<Said> => {
    const before = seen.length;
    const result = (await agent.invoke(
      input as never,
      { ...config, ...(context === undefined ? {} : { context }) } as never,
    )) as {
      messages: BaseMessage[];
      __interrupt__?: { value: AskRequest }[];
    };
    const calls = seen.slice(before);
    return {
      calls,
      blocks: (calls.at(-1)?.blocks ?? []).map((block) => block.trim()).filter((block) => block.startsWith("<MCP_RESOURCE ")),
      asked: result.__interrupt__?.[0]?.value,
      messages: result.messages,
      last: result.messages.at(-1)?.text ?? "",
    };
  };
  return {
    config,
    run,
    say: (content: string, context?: object) => run({ messages: [new HumanMessage(content)] }, context),
    answer: (...decisions: unknown[]) => run(new Command({ resume: { decisions } })),
    state: async () => {
      const { graph } = agent as unknown as { graph: { getState: (of: object) => Promise<{ values: Record<string, unknown> }> } };
      return (await graph.getState(config)).values;
    },
  };
}
