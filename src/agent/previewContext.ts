import type { BaseMessage } from "@langchain/core/messages";

import {
  agentOptionsSchema,
  parseAgentOptions,
  type McpAgentOptions,
} from "../config/agentOptions.js";
import type { McpRunContext } from "../config/policyOptions.js";
import { McpAgent } from "./mcpAgent.js";
import { McpConfigError } from "../errors.js";
import type { McpHub } from "../hub/mcpHub.js";
import type { McpThreadState } from "../state.js";

/** The additions to the next model call. */
export interface ContextPreview {
  /** Text at the end of the system message. */
  readonly listing: string;
  /** Texts behind the listing, one per resource. */
  readonly resources: readonly string[];
  /** Tools bound behind the agent's own, in order. */
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly schema: unknown;
  }[];
  /** Notes about changed tools, between the messages. */
  readonly notes: readonly string[];
}

/**
 * Shows the additions to a thread's next model call, without calling the model.
 * @param state - State of the thread, as `graph.getState(config).values` returns it; `{}` for a new
 * one.
 * @param options - As given to `mcpMiddleware`.
 * @param context - As given to the run.
 */
export async function previewContext(
  hub: McpHub,
  state: McpThreadState & { readonly messages?: readonly BaseMessage[] } = {},
  options: McpAgentOptions = {},
  context: McpRunContext = {},
): Promise<ContextPreview> {
  const option = Object.keys(state).find((key) => Object.hasOwn(agentOptionsSchema.shape, key));
  if (option !== undefined) {
    throw new McpConfigError(
      `previewContext(hub, state, options): "${option}" is an option; give it in the third argument.`,
    );
  }
  const agent = new McpAgent(hub, parseAgentOptions(options, "previewContext options"));
  const messages = state.messages ?? [];
  const run = agent.runOf(state, undefined, { context });
  const plan = await agent.prepare(run, { messages, foreignNames: new Set(), isPreview: true });
  const known = new Set(messages);
  return {
    listing: plan.listing,
    resources: plan.resources,
    tools: plan.tools.map(({ name, description, schema }) => ({ name, description, schema })),
    notes: plan.messages.filter((message) => !known.has(message)).map((message) => message.text),
  };
}
