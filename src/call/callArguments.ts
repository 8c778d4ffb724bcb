import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";

import { checkArguments, describeParameters } from "../catalog/schema/checkArguments.js";
import { withOwnKeys } from "../catalog/schema/legalKeys.js";
import { repairArguments } from "../catalog/schema/repairArguments.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import { McpProtocolError, messageOf } from "../errors.js";
import type { Operation } from "../policy/operation.js";

/** The operation of calling a tool. */
export function callOf({ serverName, toolName, annotations }: ToolEntry, args: unknown): Extract<Operation, { kind: "call" }> {
  return { kind: "call", serverName, toolName, arguments: args, annotations };
}

/** Arguments as the tool takes them. Pure. */
export function repaired(entry: ToolEntry, given: unknown): unknown {
  const args = withOwnKeys(entry.inputSchema, repairArguments(entry.inputSchema, given));
  return args === given ? args : repairArguments(entry.inputSchema, args);
}

/**
 * Arguments that fit the tool.
 *
 * @throws {McpProtocolError} when the arguments do not fit the tool's schema.
 */
export function checked(entry: ToolEntry, args: unknown): Record<string, unknown> {
  const problems = checkArguments(entry.inputSchema, args, entry.hash);
  if (problems.length > 0 || typeof args !== "object" || args === null || Array.isArray(args)) {
    const what = problems.length > 0 ? problems.join("; ") : "they are not an object";
    throw new McpProtocolError(
      "INVALID_ARGUMENTS",
      `The arguments of ${entry.boundName} do not fit: ${what}. Expected: ${describeParameters(entry.inputSchema)}.`,
      { serverName: entry.serverName, toolName: entry.toolName, rpcCode: ErrorCode.InvalidParams },
    );
  }
  return args as Record<string, unknown>;
}

/**
 * A value as it would be sent: what is decided about is then what is sent.
 *
 * @throws {McpProtocolError} for what is no JSON.
 */
export function plainJson(value: unknown): unknown {
  try {
    return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as unknown);
  } catch (cause) {
    throw new McpProtocolError("INVALID_ARGUMENTS", `The arguments are no JSON: ${messageOf(cause)}.`, { cause });
  }
}
