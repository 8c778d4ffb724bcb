import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";

import { checkArguments, describeParameters } from "../catalog/schema/checkArguments.js";
import { withOwnKeys } from "../catalog/schema/legalKeys.js";
import { repairArguments } from "../catalog/schema/repairArguments.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import { McpProtocolError, messageOf } from "../errors.js";
import type { Operation } from "../policy/operation.js";

export function callOf(
  { serverName, toolName, annotations }: ToolEntry,
  args: unknown,
): Extract<Operation, { kind: "call" }> {
  return { kind: "call", serverName, toolName, arguments: args, annotations };
}

/**
 * Deepest nesting of arguments: deeper ones can be neither digested, nor shown to a person, nor
 * sent safely.
 */
const MAX_DEPTH = 200;

/**
 * Repairs arguments to fit the tool's schema. Pure.
 * @throws {McpProtocolError} for arguments that are nested too deep.
 */
export function repaired(entry: ToolEntry, given: unknown): unknown {
  if (isDeeper(given, MAX_DEPTH)) {
    const message = `The arguments of ${entry.boundName} are nested more than ${MAX_DEPTH} levels deep.`;
    throw new McpProtocolError("INVALID_ARGUMENTS", message, {
      serverName: entry.serverName,
      toolName: entry.toolName,
    });
  }
  const args = withOwnKeys(entry.inputSchema, repairArguments(entry.inputSchema, given));
  return args === given ? args : repairArguments(entry.inputSchema, args);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/**
 * Returns the arguments, or throws an {@link McpProtocolError} when they do not fit the tool's
 * schema.
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
 * Copies a value as JSON, so that the policy sees what is sent. Throws an {@link McpProtocolError}
 * for other values.
 */
export function plainJson(value: unknown): unknown {
  try {
    return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as unknown);
  } catch (cause) {
    throw new McpProtocolError(
      "INVALID_ARGUMENTS",
      `The arguments are no JSON: ${messageOf(cause)}.`,
      { cause },
    );
  }
}
