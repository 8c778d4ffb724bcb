import { ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { isCommand, isGraphBubbleUp, type Command } from "@langchain/langgraph";

import { errorMessage } from "../call/failureText.js";
import { withoutProtectedKeys } from "./protectedKeys.js";
import type { RunContext, ToolCall } from "./runContext.js";
import type { McpAgent } from "./mcpAgent.js";
import { McpConfigError, messageOf } from "../errors.js";
import type { McpStateUpdate } from "../state.js";

export interface ToolCallOutcome {
  /** A `Command` if one of the agent's own tools returned one. */
  readonly result: ToolMessage | Command;
  readonly update: McpStateUpdate | undefined;
}

/**
 * Runs the tool calls of an agent other than `createAgent`: its own tools and ours, bound or not.
 */
export class OwnTools {
  readonly tools: readonly StructuredToolInterface[];
  readonly names: ReadonlySet<string>;
  readonly #agent: McpAgent;
  readonly #byName: ReadonlyMap<string, StructuredToolInterface>;

  /** @throws {McpConfigError} when two of the agent's own tools have the same name. */
  constructor(agent: McpAgent, tools: readonly StructuredToolInterface[]) {
    this.#agent = agent;
    this.tools = tools;
    this.#byName = new Map(tools.map((tool) => [tool.name, tool]));
    this.names = new Set(this.#byName.keys());
    if (this.names.size === tools.length) return;
    const twice = tools
      .map(({ name }) => name)
      .find((name, index, names) => names.indexOf(name) !== index);
    throw new McpConfigError(
      `"ownTools" has two tools of the name "${twice}". Give each a name of its own.`,
    );
  }

  /**
   * Runs one call; a failure becomes an answer of status `error`.
   * @throws abort reasons and LangGraph's interrupts.
   */
  async run(run: RunContext, call: ToolCall): Promise<ToolCallOutcome> {
    const route = await this.#agent.route(run, call, this.names.has(call.name));
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

  async #runOwn(call: ToolCall, run: RunContext): Promise<ToolMessage | Command> {
    const tool = this.#byName.get(call.name);
    if (tool === undefined) {
      return errorMessage(
        call,
        `There is no tool "${call.name}". Tools: ${[...this.names].join(", ")}.`,
      );
    }
    try {
      return await invoke(tool, call, run);
    } catch (error) {
      if (isGraphBubbleUp(error) || run.caller.signal?.aborted === true) throw error;
      return errorMessage(call, `The tool failed: ${messageOf(error)}`);
    }
  }
}

async function invoke(
  tool: StructuredToolInterface,
  call: ToolCall,
  { caller: { config } }: RunContext,
): Promise<ToolMessage | Command> {
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
