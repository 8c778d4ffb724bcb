import { ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { isCommand, isGraphBubbleUp, type Command } from "@langchain/langgraph";

import { errorMessage } from "../call/errorMessage.js";
import { withoutProtectedKeys } from "./protectedKeys.js";
import type { RunContext, ToolCallLike } from "./runContext.js";
import type { McpAgent } from "./mcpAgent.js";
import { McpConfigError, messageOf } from "../errors.js";
import type { McpStateUpdate, McpThreadState } from "../state.js";

/** What a tool call brought. */
export interface ToolCallOutcome {
  /** The answer; a `Command` where a tool of the agent's own returned one. */
  readonly result: ToolMessage | Command;
  /** What it changes in the state of the thread. */
  readonly update: McpStateUpdate | undefined;
}

/** Runs the tool calls of an agent that is not `createAgent`: its own tools and ours, bound or not. */
export class AgentTools {
  /** The agent's own tools. */
  readonly own: readonly StructuredToolInterface[];
  /** Their names. */
  readonly names: ReadonlySet<string>;
  readonly #agent: McpAgent;
  readonly #byName: ReadonlyMap<string, StructuredToolInterface>;

  /** @throws {McpConfigError} when two of the agent's own tools have one name. */
  constructor(agent: McpAgent, own: readonly StructuredToolInterface[]) {
    this.#agent = agent;
    this.own = own;
    this.#byName = new Map(own.map((tool) => [tool.name, tool]));
    this.names = new Set(this.#byName.keys());
    if (this.names.size === own.length) return;
    const twice = own.map(({ name }) => name).find((name, index, names) => names.indexOf(name) !== index);
    throw new McpConfigError(`"ownTools" has two tools of the name "${twice}". Give each a name of its own.`);
  }

  /**
   * Runs one call. What fails is an answer of status `error`.
   *
   * @throws the abort reason when the run was aborted, and what LangGraph throws to interrupt it.
   */
  async run(call: ToolCallLike, state: McpThreadState, run: RunContext): Promise<ToolCallOutcome> {
    const route = await this.#agent.route(call, this.names.has(call.name), state, run);
    switch (route.kind) {
      case "answer":
        return { result: route.message, update: undefined };
      case "pass":
        return { result: withoutProtectedKeys(await this.#runOwn(call, run)), update: undefined };
      case "unbound":
      case "run": {
        const ours = route.kind === "run" ? route : route.otherwise;
        if (ours.kind === "answer") return { result: ours.message, update: undefined };
        const result = await invoke(ours.tool, { ...call, args: ours.args ?? call.args }, run);
        return { result, update: ToolMessage.isInstance(result) ? ours.after(result) : undefined };
      }
    }
  }

  async #runOwn(call: ToolCallLike, run: RunContext): Promise<ToolMessage | Command> {
    const tool = this.#byName.get(call.name);
    if (tool === undefined) {
      return errorMessage(call, `There is no tool "${call.name}". Tools: ${[...this.names].join(", ")}.`);
    }
    try {
      return await invoke(tool, call, run);
    } catch (error) {
      if (isGraphBubbleUp(error) || run.signal?.aborted === true) throw error;
      return errorMessage(call, `The tool failed: ${messageOf(error)}`);
    }
  }
}

async function invoke(tool: StructuredToolInterface, call: ToolCallLike, { config }: RunContext): Promise<ToolMessage | Command> {
  const toolCall = {
    id: call.id ?? "",
    name: call.name,
    args: (call.args ?? {}) as Record<string, unknown>,
    type: "tool_call" as const,
  };
  const result: unknown = await tool.invoke(toolCall, { ...config, toolCall } as never);
  if (ToolMessage.isInstance(result) || isCommand(result)) return result;
  const content = typeof result === "string" ? result : JSON.stringify(result ?? "");
  return new ToolMessage({ content, name: call.name, tool_call_id: call.id ?? "" });
}
