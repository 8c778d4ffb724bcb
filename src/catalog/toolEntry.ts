import { isRecord } from "../text/isRecord.js";
import { digest } from "../text/hash.js";

/** MCP recommends at most 128. */
const MAX_NAME_CHARS = 1_000;

/** A JSON Schema as a server sends it. Untrusted. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A server's hints about a tool; no proof of anything. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool as its server lists it, mended where malformed. */
export interface RawTool {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string;
  /** The server's schema; `type: "object"` replaces a missing or other type. */
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema | undefined;
  readonly annotations: ToolAnnotations | undefined;
}

/** One tool in the catalog. */
export interface ToolEntry extends RawTool {
  readonly serverName: string;
  readonly toolName: string;
  /** The name the model sees. */
  readonly boundName: string;
  /** Digest of server, name, texts and schema; another digest means another tool. */
  readonly hash: string;
  /** Approximate size of the definition that a provider gets. */
  readonly definitionChars: number;
}

/** A tool as read from a tool list, with the problem of a malformed one. */
export type ToolReading =
  | { readonly kind: "ok"; readonly tool: RawTool }
  | { readonly kind: "mended"; readonly tool: RawTool; readonly problem: string }
  | { readonly kind: "dropped"; readonly problem: string };

/**
 * Reads one element of a `tools/list` result, however malformed. Never throws; drops only a tool
 * without a usable name.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool
 */
export function readTool(value: unknown): ToolReading {
  if (!isRecord(value)) return { kind: "dropped", problem: "it is not an object" };
  const { name, title, description, inputSchema, outputSchema, annotations } = value;
  if (typeof name !== "string" || name === "")
    return { kind: "dropped", problem: "it has no name" };
  if (name.length > MAX_NAME_CHARS)
    return { kind: "dropped", problem: `its name has more than ${MAX_NAME_CHARS} characters` };
  const problems: string[] = [];
  let schema: JsonSchema;
  if (!isRecord(inputSchema)) {
    if (inputSchema !== undefined) problems.push("its inputSchema is not an object");
    schema = { type: "object", properties: {} };
  } else if (inputSchema["type"] !== "object") {
    problems.push(
      `its inputSchema has ${inputSchema["type"] === undefined ? "no type" : "another type than object"}`,
    );
    schema = { ...inputSchema, type: "object" };
  } else {
    schema = inputSchema;
  }
  if (outputSchema !== undefined && !isRecord(outputSchema))
    problems.push("its outputSchema is not an object");
  if (description !== undefined && typeof description !== "string")
    problems.push("its description is not text");
  const tool: RawTool = {
    name,
    title: typeof title === "string" ? title : undefined,
    description: typeof description === "string" ? description : "",
    inputSchema: schema,
    outputSchema: isRecord(outputSchema) ? outputSchema : undefined,
    annotations: isRecord(annotations) ? annotations : undefined,
  };
  return problems.length === 0
    ? { kind: "ok", tool }
    : { kind: "mended", tool, problem: problems.join(", ") };
}

/** Makes the catalog entry of a tool. */
export function toolEntry(serverName: string, boundName: string, tool: RawTool): ToolEntry {
  const {
    name,
    title = null,
    description,
    inputSchema,
    annotations = null,
    outputSchema = null,
  } = tool;
  const shown = JSON.stringify([name, title, description, inputSchema]);
  const hidden = JSON.stringify([annotations, outputSchema]);
  return {
    ...tool,
    serverName,
    toolName: tool.name,
    boundName,
    hash: digest(`${serverName}\n${shown}\n${hidden}`),
    definitionChars: shown.length + boundName.length,
  };
}
