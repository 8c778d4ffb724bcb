import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";

import { McpTool } from "../call/mcpTool.js";
import type { JsonSchema, ToolEntry } from "../catalog/toolEntry.js";
import type { HubEvents } from "../events.js";
import { originOf } from "../call/boundTool.js";
import { tellRun } from "../call/runStream.js";

/** What the search tool is made of. */
export interface SearchToolParts {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly events: HubEvents;
  /** Searches; may wait for servers. */
  readonly search: (
    args: unknown,
    config: RunnableConfig,
  ) => Promise<{ readonly text: string; readonly query: string; readonly matches: readonly ToolEntry[] }>;
}

/** The tool by which the model finds tools. Its artifact is `{ matches }`, bound names, best first. */
export function searchTool({ name, description, schema, events, search }: SearchToolParts): McpTool {
  return new McpTool({
    name,
    description,
    schema,
    metadata: {},
    run: async (args, call) => {
      const startedAt = performance.now();
      const { text, query, matches } = await search(args, call.config);
      const names = matches.map(({ boundName }) => boundName);
      const report = { query, matches: names, latencyMs: performance.now() - startedAt };
      events.emit("search", { ...originOf(call.config), ...report });
      await tellRun(call.config, { type: "mcp_search", toolCallId: call.toolCallId, ...report });
      return new ToolMessage({
        content: text,
        name: call.name,
        tool_call_id: call.toolCallId,
        artifact: { matches: names },
        status: "success",
      });
    },
  });
}
