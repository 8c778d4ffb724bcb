import * as z from "zod";

import { budgetShape } from "../config/hubSchema.js";

/** Options of `mcpMiddleware`. */
export const mcpMiddlewareOptionsSchema = z.strictObject({
  /** Names of the servers this agent may use. Default: all of the hub. */
  servers: z.array(z.string()).optional(),
  /** Globs on raw or bound tool names this agent may use. Default: all. */
  tools: z.array(z.string().min(1)).optional(),
  /** `false`: no listing in the system prompt. Default true. */
  listing: z.boolean().optional(),
  /** `false`: no `search_mcp_tools`. Default true. */
  search: z.boolean().optional(),
  ...budgetShape,
});

/** Options of `mcpMiddleware`. Budgets default to those of the hub. */
export type McpMiddlewareOptions = z.input<typeof mcpMiddlewareOptionsSchema>;
