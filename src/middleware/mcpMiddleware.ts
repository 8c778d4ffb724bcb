import { AIMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { Command, getConfig, interrupt, isCommand, Send, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { createMiddleware } from "langchain";

import { contextOf, originOf } from "../call/boundTool.js";
import type { RunInfo, RunRoute } from "../callRouter.js";
import { parseAgentOptions, type McpAgentOptions } from "../config/agentOptions.js";
import { isWrappableClient, type WrappableClient } from "../connect/openWrapped.js";
import { Disclosure } from "../disclosure.js";
import { McpConfigError } from "../errors.js";
import { McpHub } from "../hub.js";
import { mcpStateSchema, PROTECTED_KEYS, type McpStateUpdate } from "../state.js";

/**
 * Gives a `createAgent` agent the tools of MCP servers by progressive disclosure.
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
  if (!(hubOrClient instanceof McpHub) && !isWrappableClient(hubOrClient)) {
    throw new McpConfigError(
      "mcpMiddleware(hubOrClient) needs a McpHub or a MultiServerMCPClient. For a configuration, write mcpMiddleware(new McpHub(configuration)).",
    );
  }
  const hub = hubOrClient instanceof McpHub ? hubOrClient : McpHub.wrap(hubOrClient);
  const disclosure = new Disclosure(hub, parsed);

  const middleware = createMiddleware({
    name: "mcpMiddleware",
    stateSchema: mcpStateSchema,

    beforeAgent: {
      canJumpTo: ["end"],
      hook: async (state) => {
        const { update, messages, isAnswered } = await disclosure.start(state, state.messages, interrupt, runInfo());
        return {
          ...update,
          ...(messages.length === 0 ? {} : { messages: [...messages] }),
          ...(isAnswered ? { jumpTo: "end" as const } : {}),
        };
      },
    },

    wrapModelCall: async (request, handler) => {
      const { state, model } = request;
      const foreignNames = new Set(request.tools.flatMap((tool) => (typeof tool["name"] === "string" ? [tool["name"]] : [])));
      const run = runInfo();
      const plan = await disclosure.prepare(state, request.messages, foreignNames, {
        ...run,
        model,
        threadMessages: state.messages,
      });
      const answer = await handler({
        ...request,
        messages: plan.messages,
        tools: [...request.tools, ...plan.tools],
        systemMessage: withBlocks(request.systemMessage, [plan.listing, ...plan.resources]),
      });
      // A structured response is no AIMessage; a Command in its place would lose it.
      if (!AIMessage.isInstance(answer)) return answer;
      return withUpdate(answer, { ...plan.update, ...(await disclosure.review(answer, plan, state, run)) });
    },

    afterModel: (state) => disclosure.ask(state, state.messages, interrupt, runInfo()),

    wrapToolCall: async (request, handler) => {
      const { toolCall, tool, state } = request;
      const route = await disclosure.route(toolCall, tool !== undefined, state, runInfo());
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
  if (!hub.settings.isGoverned) delete middleware.afterModel;
  return middleware;
}

/**
 * What a hook runs in. Taken from the run's configuration: what `createAgent` hands to a hook as `runtime.context` is
 * only the part that the middleware's own `contextSchema` names.
 */
function runInfo(): RunInfo {
  const config = getConfig() as LangGraphRunnableConfig | undefined;
  return { origin: originOf(config ?? {}), signal: config?.signal, context: contextOf(config), config };
}

/** LangChain's answer to a call of a tool that nobody has: nothing ran. */
function isUnknownToolAnswer(answer: ToolMessage | Command, name: string): boolean {
  return (
    ToolMessage.isInstance(answer) && answer.status === "error" && answer.text.startsWith(`Error: ${name} is not a valid tool`)
  );
}

/** A system message with more text blocks at its end; a line is left free between each and the text before it. */
function withBlocks(systemMessage: SystemMessage, texts: readonly string[]): SystemMessage {
  const written = texts.filter((text) => text !== "");
  if (written.length === 0) return systemMessage;
  const isAlone = systemMessage.text === "";
  const content = written.map((text, index) => ({ type: "text" as const, text: isAlone && index === 0 ? text : `\n\n${text}` }));
  const blocks = new SystemMessage({ content });
  return isAlone ? blocks : systemMessage.concat(blocks);
}

function withUpdate(answer: AIMessage, update: McpStateUpdate): AIMessage | Command {
  return Object.keys(update).length === 0 ? answer : new Command({ update });
}

/** Other tools may return a `Command`, but not one that writes what only we write, be it in state it sends along. */
function withoutProtectedKeys(result: ToolMessage | Command): ToolMessage | Command {
  if (!isCommand(result)) return result;
  const { graph, resume } = result;
  const update = cleanUpdate(result.update);
  const targets = Array.isArray(result.goto) ? result.goto : [result.goto];
  const cleaned = targets.map(cleanSend);
  const isSame = update === result.update && cleaned.every((target, index) => target === targets[index]);
  if (isSame) return result;
  return new Command({
    ...(update === undefined ? {} : { update: update as Record<string, unknown> }),
    ...(result.goto === undefined ? {} : { goto: cleaned as string[] }),
    ...(graph === undefined ? {} : { graph }),
    ...(resume === undefined ? {} : { resume }),
  });
}

function cleanUpdate(update: unknown): unknown {
  if (typeof update !== "object" || update === null) return update;
  const entries: [string, unknown][] = Array.isArray(update) ? (update as [string, unknown][]) : Object.entries(update);
  if (!entries.some(([key]) => PROTECTED_KEYS.includes(key))) return update;
  return Object.fromEntries(entries.filter(([key]) => !PROTECTED_KEYS.includes(key)));
}

function cleanSend<Node>(node: Node): Node | Send {
  if (!(node instanceof Send)) return node;
  const args = cleanUpdate(node.args);
  return args === node.args ? node : new Send(node.node, args);
}
