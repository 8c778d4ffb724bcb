import type { ToolMessage } from "@langchain/core/messages";

import { isMcpArtifact } from "../call/result.js";
import { McpTool, type RunTool } from "../call/mcpTool.js";
import { schemaText } from "../catalog/schema/schemaText.js";
import type { JsonSchema, ToolEntry } from "../catalog/toolEntry.js";
import { EXECUTE_TOOL_NAME } from "../disclose/thread.js";
import { isRecord } from "../text/isRecord.js";
import type { ToolCall } from "./runContext.js";

const DESCRIPTION =
  "Runs a tool of an MCP server that search_mcp_tools found or the list names. Give its whole name and its arguments as search_mcp_tools shows them.";
const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    name: { type: "string", description: "Name of the tool, such as mcp__server__tool" },
    arguments: { type: "object", description: "Its arguments", additionalProperties: true },
  },
  required: ["name"],
};

/**
 * The call inside a call of `execute_mcp_tool`, whose arguments may be JSON text; `undefined`
 * without a name. Never throws.
 */
export function innerCall({ id, args }: ToolCall): ToolCall | undefined {
  if (!isRecord(args) || typeof args["name"] !== "string" || args["name"] === "") return undefined;
  return { id, name: args["name"], args: readArguments(args["arguments"]) };
}

function readArguments(given: unknown): unknown {
  if (typeof given !== "string") return given ?? {};
  try {
    return JSON.parse(given) as unknown;
  } catch {
    return given;
  }
}

/** `execute_mcp_tool` as it is bound. @param inner - The tool that the call runs, for traces. */
export function executeTool(run: RunTool, inner?: ToolEntry): McpTool {
  const metadata =
    inner === undefined ? {} : { serverName: inner.serverName, toolName: inner.toolName };
  return new McpTool({
    name: EXECUTE_TOOL_NAME,
    description: DESCRIPTION,
    schema: SCHEMA,
    metadata,
    run,
  });
}

/** Adds the schema to an answer about invalid arguments, for the model may not have seen it. */
export function withSchema(message: ToolMessage, entry: ToolEntry): ToolMessage {
  if (!isMcpArtifact(message.artifact) || message.artifact.errorCode !== "INVALID_ARGUMENTS")
    return message;
  message.content = `${message.text}\nIts arguments: ${schemaText(entry)}`;
  return message;
}
