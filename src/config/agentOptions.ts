import type { HumanMessage } from "@langchain/core/messages";
import * as z from "zod";

import { globsSchema } from "../text/globs.js";
import { onAskSchema, type OnAsk } from "./askSchema.js";
import {
  agentBudgetShape,
  type AgentLimitOptions,
  type AgentTimeoutOptions,
} from "./budgetOptions.js";
import { parseOptions } from "./parseOptions.js";

/** How deferred tools reach the model; see the option `strategy`. */
export type Strategy = "promote" | "execute" | "provider";

/**
 * How one agent uses a hub: options of `mcpMiddleware`, of graphs, of sessions and of
 * `previewContext`.
 */
export interface McpAgentOptions {
  /** Names of the servers this agent may use. @default all of the hub */
  readonly servers?: readonly string[] | undefined;
  /** Globs on raw or bound tool names this agent may use. @default all */
  readonly tools?: readonly string[] | undefined;
  /**
   * How deferred tools reach the model. `"promote"`: found tools are bound. `"execute"`: the bound
   * tools never change; `execute_mcp_tool` runs found ones. `"provider"`: tools are sent with
   * `defer_loading` and the provider's own search, for ChatAnthropic and ChatOpenAI with the
   * Responses API; `"promote"` for other models. @default "promote"
   */
  readonly strategy?: Strategy | undefined;
  /**
   * Tools sent with `defer_loading` at most; `search_mcp_tools` finds the rest. Strategy
   * `"provider"` only.
   * @default 1_000
   */
  readonly maxProviderTools?: number | undefined;
  /** `false`: no listing in the system prompt. @default true */
  readonly listing?: boolean | undefined;
  /** `false`: no `search_mcp_tools`. @default true */
  readonly search?: boolean | undefined;
  /** `false`: no `mcp_resources_list` and `mcp_resources_read`. @default true */
  readonly resourceTools?: boolean | undefined;
  /**
   * Attaches the resource of each `@server:uri` in the newest human message; `false` for never, or
   * a function that decides by the message.
   * @default true
   */
  readonly mentions?: boolean | ((message: HumanMessage) => boolean) | undefined;
  /**
   * Where the text of mentioned resources goes: `"system"`, the end of the system message;
   * `"message"`, beside the message that names them, as images always are.
   * @default "system"
   */
  readonly placement?: "system" | "message" | undefined;
  /** `false`: `/mcp__server__prompt` is ordinary text. @default true */
  readonly commands?: boolean | undefined;
  /**
   * Scope of `/mcp` in a human message. `"thread"`: shows servers, enables and disables them for
   * the thread. `"all"`: also reconnects them for every thread and shows error texts. `"off"`: it
   * is ordinary text.
   * @default "thread"
   */
  readonly chatCommands?: "off" | "thread" | "all" | undefined;
  /**
   * Asks a person where the run cannot be interrupted because it has no checkpointer.
   * @default such calls are refused
   */
  readonly onAsk?: OnAsk | undefined;
  /** Time limits of this agent, in milliseconds. @default those of the hub */
  readonly timeouts?: AgentTimeoutOptions | undefined;
  /** Sizes and counts of this agent. @default those of the hub */
  readonly limits?: AgentLimitOptions | undefined;
}

/** Checks {@link McpAgentOptions}. */
export const agentOptionsSchema = z.strictObject({
  servers: z.array(z.string()).optional(),
  tools: globsSchema.optional(),
  strategy: z.enum(["promote", "execute", "provider"]).optional(),
  maxProviderTools: z.number().int().positive().optional(),
  listing: z.boolean().optional(),
  search: z.boolean().optional(),
  resourceTools: z.boolean().optional(),
  mentions: z
    .union([
      z.boolean(),
      z.custom<(message: HumanMessage) => boolean>(
        (value) => typeof value === "function",
        "a function",
      ),
    ])
    .optional(),
  placement: z.enum(["system", "message"]).optional(),
  commands: z.boolean().optional(),
  chatCommands: z.enum(["off", "thread", "all"]).optional(),
  onAsk: onAskSchema.optional(),
  ...agentBudgetShape,
});

/**
 * Checks the options of an agent.
 * @param subject - Begins the error message.
 * @throws {McpConfigError} for wrong options.
 */
export function parseAgentOptions(
  options: McpAgentOptions,
  subject: string,
): z.output<typeof agentOptionsSchema> {
  return parseOptions(agentOptionsSchema, options, subject);
}
