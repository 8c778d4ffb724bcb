import type { BaseMessage } from "@langchain/core/messages";

import { Disclosure, type DisclosureOptions } from "./disclosure.js";
import type { McpHub } from "./hub.js";
import type { McpThreadState } from "./state.js";

/** What a model call would get from us. */
export interface ContextPreview {
  /** The text at the end of the system message. */
  readonly listing: string;
  /** The tools bound behind the agent's own, in order. */
  readonly tools: readonly { readonly name: string; readonly description: string; readonly schema: unknown }[];
  /** The notes about changed tools that stand between the messages. */
  readonly notes: readonly string[];
}

/**
 * What the model would see in the next call of a thread, without calling it.
 *
 * @param state - State of the thread, as `graph.getState(config).values` returns it; `{}` for a new one.
 * @param options - As given to `mcpMiddleware`.
 */
export async function previewContext(
  hub: McpHub,
  state: McpThreadState & { readonly messages?: readonly BaseMessage[] } = {},
  options: DisclosureOptions = {},
): Promise<ContextPreview> {
  const messages = state.messages ?? [];
  const plan = await new Disclosure(hub, options).prepare(state, messages, new Set());
  const known = new Set(messages);
  return {
    listing: plan.listing,
    tools: plan.tools.map(({ name, description, schema }) => ({ name, description, schema })),
    notes: plan.messages.filter((message) => !known.has(message)).map((message) => message.text),
  };
}
