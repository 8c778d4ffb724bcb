import { isRecord } from "../text/isRecord.js";
import { digest } from "../text/hash.js";

/** The protocol asks for 128. */
const MAX_NAME_CHARS = 1_000;

/** A JSON Schema as a server sends it. Untrusted. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Hints a server gives about a tool. Not proof of anything. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool as its server lists it, mended where it was malformed. */
export interface RawTool {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string;
  /** The server's original schema; `type: "object"` is added when it was missing. */
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema | undefined;
  readonly annotations: ToolAnnotations | undefined;
}

/** One tool in the catalog. */
export interface ToolEntry extends RawTool {
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  /** The name the model sees. */
  readonly boundName: string;
  /** Digest of server, name, text and schema: another one means another tool. */
  readonly hash: string;
  /** Characters of the definition as a provider gets it, about. */
  readonly definitionChars: number;
}

/** A tool that was read, mended or given up. `problem` says what was wrong. */
export type ToolReading =
  | { readonly kind: "ok"; readonly tool: RawTool }
  | { readonly kind: "mended"; readonly tool: RawTool; readonly problem: string }
  | { readonly kind: "dropped"; readonly problem: string };

/**
 * Reads one element of a `tools/list` result, however malformed.
 *
 * Never throws. A tool without a usable name is dropped; everything else can be mended.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool
 */
export function readTool(value: unknown): ToolReading {
  if (!isRecord(value)) return { kind: "dropped", problem: "it is not an object" };
  const { name, title, description, inputSchema, outputSchema, annotations } = value;
  if (typeof name !== "string" || name === "") return { kind: "dropped", problem: "it has no name" };
  if (name.length > MAX_NAME_CHARS) return { kind: "dropped", problem: `its name has more than ${MAX_NAME_CHARS} characters` };
  const problems: string[] = [];
  let schema: JsonSchema;
  if (!isRecord(inputSchema)) {
    if (inputSchema !== undefined) problems.push("its inputSchema is not an object");
    schema = { type: "object", properties: {} };
  } else if (inputSchema["type"] !== "object") {
    problems.push(`its inputSchema has ${inputSchema["type"] === undefined ? "no type" : "another type than object"}`);
    schema = { ...inputSchema, type: "object" };
  } else {
    schema = inputSchema;
  }
  if (outputSchema !== undefined && !isRecord(outputSchema)) problems.push("its outputSchema is not an object");
  if (description !== undefined && typeof description !== "string") problems.push("its description is not text");
  const tool: RawTool = {
    name,
    title: typeof title === "string" ? title : undefined,
    description: typeof description === "string" ? description : "",
    inputSchema: schema,
    outputSchema: isRecord(outputSchema) ? outputSchema : undefined,
    annotations: isRecord(annotations) ? annotations : undefined,
  };
  return problems.length === 0 ? { kind: "ok", tool } : { kind: "mended", tool, problem: problems.join(", ") };
}

/** Makes the catalog entry of a tool. */
export function toolEntry(serverName: string, boundName: string, tool: RawTool): ToolEntry {
  const content = JSON.stringify([tool.name, tool.title ?? null, tool.description, tool.inputSchema]);
  return {
    ...tool,
    serverName,
    toolName: tool.name,
    boundName,
    hash: digest(`${serverName}\n${content}`),
    definitionChars: content.length + boundName.length,
  };
}
