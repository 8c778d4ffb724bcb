import type { HumanMessage } from "@langchain/core/messages";
import * as z from "zod";

import { onAskSchema } from "./askSchema.js";
import { globsSchema } from "../text/globs.js";
import { budgetShape } from "./hubOptions.js";
import { parseOptions } from "./parseOptions.js";

/** How tools reach the model that are not always loaded; see the option `strategy`. */
export type Strategy = "promote" | "execute" | "provider";

/** How one agent uses a hub: options of `mcpMiddleware` and `previewContext`. */
export const agentOptionsSchema = z.strictObject({
  /** Names of the servers this agent may use. Default: all of the hub. */
  servers: z.array(z.string()).optional(),
  /** Globs on raw or bound tool names this agent may use. Default: all. */
  tools: globsSchema.optional(),
  /**
   * How tools reach the model that are not always loaded. `"promote"`: what a search found is bound. `"execute"`: the bound tools
   * never change; what was found is run by `execute_mcp_tool`. `"provider"`: they are sent with `defer_loading` and the
   * provider's own search, for ChatAnthropic and ChatOpenAI with the Responses API; `"promote"` for other models. Default
   * `"promote"`.
   */
  strategy: z.enum(["promote", "execute", "provider"]).optional(),
  /** Tools sent with `defer_loading` at the most; the rest is found by `search_mcp_tools`. Strategy `"provider"` alone. */
  maxProviderTools: z.number().int().positive().optional(),
  /** `false`: no listing in the system prompt. Default true. */
  listing: z.boolean().optional(),
  /** `false`: no `search_mcp_tools`. Default true. */
  search: z.boolean().optional(),
  /** `false`: no `mcp_resources_list` and `mcp_resources_read`. Default true. */
  resourceTools: z.boolean().optional(),
  /**
   * Whether `@server:uri` in the newest human message attaches that resource: `false` for never, or a function that
   * says so of a message. Default: always.
   */
  mentions: z
    .union([z.boolean(), z.custom<(message: HumanMessage) => boolean>((value) => typeof value === "function", "a function")])
    .optional(),
  /**
   * Where the text of mentioned resources stands: `"system"`, at the end of the system message; `"message"`, beside the
   * message that names them. Images always stand beside the message. Default `"system"`.
   */
  placement: z.enum(["system", "message"]).optional(),
  /** `false`: `/mcp__server__prompt` is ordinary text. Default true. */
  commands: z.boolean().optional(),
  /**
   * What `/mcp` in a human message can do. `"thread"`: show servers, enable and disable them for the thread. `"all"`:
   * also reconnect them, which concerns every thread, and show error texts. `"off"`: it is ordinary text. Default
   * `"thread"`.
   */
  chatCommands: z.enum(["off", "thread", "all"]).optional(),
  /** Asks a person about calls where the run cannot be interrupted for want of a checkpointer. Default: they are refused. */
  onAsk: onAskSchema.optional(),
  ...budgetShape,
});

/** How one agent uses a hub: options of `mcpMiddleware` and `previewContext`. Budgets default to those of the hub. */
export type McpAgentOptions = z.input<typeof agentOptionsSchema>;

/**
 * Checks the options of an agent, and puts its budgets apart.
 *
 * @param subject - Begins the message of an error.
 * @throws {McpConfigError} for unknown or wrong options.
 */
export function parseAgentOptions(options: McpAgentOptions, subject: string) {
  const { servers, tools, strategy, maxProviderTools, listing, search, resourceTools, mentions, placement, ...rest } =
    parseOptions(agentOptionsSchema, options, subject);
  const { commands, chatCommands, onAsk, ...budgets } = rest;
  const shown = { strategy, maxProviderTools, listing, search, resourceTools };
  return { servers, tools, ...shown, mentions, placement, commands, chatCommands, onAsk, budgets };
}
