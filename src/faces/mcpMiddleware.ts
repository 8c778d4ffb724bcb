import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { Command, getConfig, interrupt } from "@langchain/langgraph";
import { createMiddleware } from "langchain";

import { withoutProtectedKeys } from "../agent/protectedKeys.js";
import { withBlocks } from "../agent/systemBlocks.js";
import type { RunRoute } from "../agent/router.js";
import { parseAgentOptions, type McpAgentOptions } from "../config/agentOptions.js";
import type { WrappableClient } from "../connect/open/wrapped.js";
import { McpAgent } from "../agent/mcpAgent.js";
import { hubOf, type McpHub } from "../hub/mcpHub.js";
import { writtenBy, type TurnOutcome } from "../input/turnInput.js";
import { mcpStateSchema, type McpStateUpdate } from "../state.js";

/**
 * Gives a `createAgent` agent the tools of MCP servers by progressive agent.
 *
 * The agent sees a short listing at the end of its system prompt and `search_mcp_tools`; what it finds is bound from
 * the next model call on and stays bound in that thread, kept in graph state. Failures of tools and servers reach the
 * model as messages and never end the run.
 *
 * Place it last in the list of middleware, or at least after those that write the system prompt or add tools of their
 * own: the listing is then the last block of the prompt, and their tools are never taken for ours.
 *
 * @param hubOrClient - A hub, or a `MultiServerMCPClient`, which is wrapped (`McpHub.wrap`) and stays yours.
 * @throws {McpConfigError} for unknown or wrong options.
 * @example
 * const agent = createAgent({ model, middleware: [mcpMiddleware(client)] });
 */
export function mcpMiddleware(hubOrClient: McpHub | WrappableClient, options: McpAgentOptions = {}) {
  const parsed = parseAgentOptions(options, "mcpMiddleware options");
  const agent = new McpAgent(hubOf(hubOrClient, "mcpMiddleware"), parsed);

  const middleware = createMiddleware({
    name: "mcpMiddleware",
    stateSchema: mcpStateSchema,

    beforeAgent: {
      canJumpTo: ["end"],
      hook: async (state) => toHookResult(await agent.start(agent.runOf(state, getConfig()), state.messages)),
    },

    beforeModel: {
      canJumpTo: ["end"],
      hook: async (state) => toHookResult(await agent.answerTyped(agent.runOf(state, getConfig()), state.messages, interrupt)),
    },

    wrapModelCall: async (request, handler) => {
      const { state, model } = request;
      const foreignNames = new Set(request.tools.flatMap((tool) => (typeof tool["name"] === "string" ? [tool["name"]] : [])));
      const run = agent.runOf(state, getConfig());
      const { messages } = request;
      const plan = await agent.prepare(run, { messages, threadMessages: state.messages, foreignNames, model });
      const answer = await handler({
        ...request,
        messages: plan.messages,
        tools: [...request.tools, ...plan.tools, ...plan.providerTools],
        systemMessage: withBlocks(request.systemMessage, [plan.listing, ...plan.resources]),
      });
      // A structured response is no AIMessage; a Command in its place would lose it.
      if (!AIMessage.isInstance(answer)) return answer;
      return withUpdate(answer, { ...plan.update, ...(await agent.review(run, answer, plan)) });
    },

    afterModel: (state) => agent.ask(agent.runOf(state, getConfig()), state.messages, interrupt),

    wrapToolCall: async (request, handler) => {
      const { toolCall, tool, state } = request;
      const route = await agent.route(agent.runOf(state, getConfig()), toolCall, tool !== undefined);
      const run = async ({ tool: ours, args, after }: RunRoute): Promise<ToolMessage | Command> => {
        const call = args === undefined ? toolCall : { ...toolCall, args };
        const result = await handler({ ...request, tool: ours, toolCall: call });
        const update = ToolMessage.isInstance(result) ? after(result) : undefined;
        return update === undefined ? result : new Command({ update: { messages: [result], ...update } });
      };
      switch (route.kind) {
        case "answer":
          return route.message;
        case "pass":
          return withoutProtectedKeys(await handler(request));
        case "unbound": {
          const theirs = await handler(request);
          if (!isUnknownToolAnswer(theirs, toolCall.name)) return withoutProtectedKeys(theirs);
          return route.otherwise.kind === "answer" ? route.otherwise.message : run(route.otherwise);
        }
        case "run":
          return run(route);
      }
    },
  });
  // Each hook is a node of the graph; without a policy nobody is ever asked.
  if (!agent.canAsk) {
    delete middleware.afterModel;
    delete middleware.beforeModel;
  }
  return middleware;
}

/** The outcome of typed input, as a hook returns it: a person who has been answered needs no model. */
function toHookResult(turn: TurnOutcome | undefined) {
  if (turn === undefined) return undefined;
  return { ...writtenBy(turn), ...(turn.isAnswered ? { jumpTo: "end" as const } : {}) };
}

/** LangChain's answer to a call of a tool that nobody has: nothing ran. */
function isUnknownToolAnswer(answer: ToolMessage | Command, name: string): boolean {
  return (
    ToolMessage.isInstance(answer) && answer.status === "error" && answer.text.startsWith(`Error: ${name} is not a valid tool`)
  );
}

function withUpdate(answer: AIMessage, update: McpStateUpdate): AIMessage | Command {
  return Object.keys(update).length === 0 ? answer : new Command({ update });
}
