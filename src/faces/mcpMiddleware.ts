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
 * Gives a `createAgent` agent the tools of MCP servers by progressive disclosure.
 *
 * The agent sees a short listing in its system prompt and `search_mcp_tools`; tools it finds are
 * bound from the next model call on, in that thread. Failures reach the model as messages and never
 * end the run.
 *
 * Place it last, at least after middleware that writes the system prompt or adds tools: the listing
 * is then the last block, and their tools are never taken for ours.
 * @param hubOrClient - A hub, or a `MultiServerMCPClient`, which is wrapped (`McpHub.wrap`) and
 * stays yours.
 * @throws {McpConfigError} for unknown or wrong options.
 * @example const agent = createAgent({ model, middleware: [mcpMiddleware(client)] });
 */
export function mcpMiddleware(
  hubOrClient: McpHub | WrappableClient,
  options: McpAgentOptions = {},
) {
  const parsed = parseAgentOptions(options, "mcpMiddleware options");
  const agent = new McpAgent(hubOf(hubOrClient, "mcpMiddleware"), parsed);

  const middleware = createMiddleware({
    name: "mcpMiddleware",
    stateSchema: mcpStateSchema,

    beforeAgent: {
      canJumpTo: ["end"],
      hook: async (state) =>
        toHookResult(await agent.start(agent.runOf(state, getConfig()), state.messages)),
    },

    beforeModel: {
      canJumpTo: ["end"],
      hook: async (state) =>
        toHookResult(
          await agent.answerTyped(agent.runOf(state, getConfig()), state.messages, interrupt),
        ),
    },

    wrapModelCall: async (request, handler) => {
      const { state, model } = request;
      const foreignNames = new Set(
        request.tools.flatMap((tool) => (typeof tool["name"] === "string" ? [tool["name"]] : [])),
      );
      const run = agent.runOf(state, getConfig());
      const { messages } = request;
      const plan = await agent.prepare(run, {
        messages,
        threadMessages: state.messages,
        foreignNames,
        model,
      });
      const answer = await handler({
        ...request,
        messages: plan.messages,
        tools: [...request.tools, ...plan.tools, ...plan.providerTools],
        systemMessage: withBlocks(request.systemMessage, [plan.listing, ...plan.resources]),
      });
      // A structured response is no AIMessage; a Command would drop it.
      if (!AIMessage.isInstance(answer)) return answer;
      return withUpdate(answer, { ...plan.update, ...(await agent.review(run, answer, plan)) });
    },

    afterModel: (state) => agent.ask(agent.runOf(state, getConfig()), state.messages, interrupt),

    wrapToolCall: async (request, handler) => {
      const { toolCall, tool, state } = request;
      const route = await agent.route(
        agent.runOf(state, getConfig()),
        toolCall,
        tool !== undefined,
      );
      const run = async ({ tool: ours, args, after }: RunRoute): Promise<ToolMessage | Command> => {
        const call = args === undefined ? toolCall : { ...toolCall, args };
        const result = await handler({ ...request, tool: ours, toolCall: call });
        const update = ToolMessage.isInstance(result) ? after(result) : undefined;
        return update === undefined
          ? result
          : new Command({ update: { messages: [result], ...update } });
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
  // Each hook is a graph node; without a policy nobody is asked.
  if (!agent.canAsk) {
    delete middleware.afterModel;
    delete middleware.beforeModel;
  }
  return middleware;
}

/** A turn's outcome as a hook result: ends the run if the person was answered. */
function toHookResult(turn: TurnOutcome | undefined) {
  if (turn === undefined) return undefined;
  return { ...writtenBy(turn), ...(turn.isAnswered ? { jumpTo: "end" as const } : {}) };
}

/** True for LangChain's answer to a call of an unknown tool: nothing ran. */
function isUnknownToolAnswer(answer: ToolMessage | Command, name: string): boolean {
  return (
    ToolMessage.isInstance(answer) &&
    answer.status === "error" &&
    answer.text.startsWith(`Error: ${name} is not a valid tool`)
  );
}

function withUpdate(answer: AIMessage, update: McpStateUpdate): AIMessage | Command {
  return Object.keys(update).length === 0 ? answer : new Command({ update });
}
