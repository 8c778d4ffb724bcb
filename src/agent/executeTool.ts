import { isRecord } from "../text/isRecord.js";
import { McpTool, type McpToolParts } from "../call/mcpTool.js";
import { schemaText } from "../catalog/schema/schemaText.js";
import type { JsonSchema, ToolEntry } from "../catalog/toolEntry.js";
import { EXECUTE_TOOL_NAME } from "../disclose/thread.js";
import { isMcpArtifact } from "../call/result.js";

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

/** A call inside of a call of `execute_mcp_tool`. */
export interface Execution {
  readonly name: string;
  readonly args: unknown;
}

/** Reads what is to be run; arguments may come as text. `undefined` without a name. Never throws. */
export function readExecution(given: unknown): Execution | undefined {
  if (!isRecord(given) || typeof given["name"] !== "string" || given["name"] === "") return undefined;
  return { name: given["name"], args: readArguments(given["arguments"]) };
}

function readArguments(given: unknown): unknown {
  if (typeof given !== "string") return given ?? {};
  try {
    return JSON.parse(given) as unknown;
  } catch {
    return given;
  }
}

/**
 * The tool as it is bound: always the same bytes.
 *
 * @param run - Runs its calls.
 * @param inner - The tool that a call runs, when it is known: its run is found by that in a trace.
 */
export function executeTool(run: McpToolParts["run"], inner?: ToolEntry): McpTool {
  const metadata = inner === undefined ? {} : { serverName: inner.serverName, toolName: inner.toolName };
  return new McpTool({ name: EXECUTE_TOOL_NAME, description: DESCRIPTION, schema: SCHEMA, metadata, run });
}

/**
 * Runs a tool inside of `execute_mcp_tool`. Arguments that do not fit are answered with the schema, which the model may
 * not have seen.
 */
export function runExecution(entry: ToolEntry, run: McpToolParts["run"], args: unknown): McpToolParts["run"] {
  return async (_outer, call) => {
    const message = await run(args, call);
    if (!isMcpArtifact(message.artifact) || message.artifact.errorCode !== "INVALID_ARGUMENTS") return message;
    message.content = `${message.text}\nIts arguments: ${schemaText(entry)}`;
    return message;
  };
}
