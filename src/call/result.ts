import { cut, oneLine, removeInvisible } from "../catalog/text.js";
import { isSchemaObject } from "../catalog/schemaWalk.js";
import type { McpErrorCode } from "../errors.js";

/** A `tools/call` result as a server sends it, unread. */
export interface RawCallResult {
  readonly content?: readonly unknown[] | undefined;
  readonly structuredContent?: unknown;
  readonly isError?: unknown;
  readonly _meta?: unknown;
}

/** Artifact of the `ToolMessage` of an MCP call: what is not for the model. JSON. */
export interface McpArtifact {
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  readonly durationMs: number;
  /** Whether the server said that the call failed. */
  readonly isError: boolean;
  readonly structuredContent?: unknown;
  readonly meta?: unknown;
  /** Content blocks that do not stand whole in the message's text. */
  readonly blocks: readonly unknown[];
  /** Why there is no result, when the call was not answered. */
  readonly errorCode?: McpErrorCode;
  /** Present when the result was too large to be kept whole. */
  readonly truncated?: { readonly totalChars: number };
}

/** Limits and form of a result. */
export interface ResultSettings {
  readonly maxResultChars: number;
  readonly maxArtifactChars: number;
  readonly envelope: boolean;
}

/** A result for the model. */
export interface CallOutcome {
  readonly status: "success" | "error";
  readonly content: string;
  readonly artifact: McpArtifact;
}

/** Share of a cut text that is kept from its end. */
const TAIL_SHARE = 0.25;

/**
 * Makes what the model reads of a result, and the artifact that keeps the rest. Pure.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
 */
export function toOutcome(
  serverName: string,
  toolName: string,
  result: RawCallResult,
  durationMs: number,
  settings: ResultSettings,
): CallOutcome {
  const blocks = result.content ?? [];
  const isError = result.isError === true;
  const whole =
    textOf(blocks, result.structuredContent) ||
    (isError ? "The tool failed without a message." : "Done. The tool returned nothing.");
  const shown = cutMiddle(whole, settings.maxResultChars);
  const kept = shown === whole ? blocks.filter((block) => !isPlainText(block)) : blocks;
  const artifact = boundArtifact(
    {
      serverName,
      toolName,
      durationMs,
      isError,
      ...(result.structuredContent === undefined ? {} : { structuredContent: result.structuredContent }),
      ...(result._meta === undefined ? {} : { meta: result._meta }),
      blocks: kept,
    },
    settings.maxArtifactChars,
  );
  const notice = artifact.truncated === undefined ? "" : "\n[The whole result was too large to be kept.]";
  return {
    status: isError ? "error" : "success",
    content: settings.envelope ? inEnvelope(serverName, toolName, shown + notice) : shown + notice,
    artifact,
  };
}

/** Text of a server, marked as such, so that it cannot pass for anything else. */
export function inEnvelope(serverName: string, toolName: string, text: string): string {
  const name = (value: string): string => oneLine(value, 64).replaceAll('"', "'");
  return `<mcp_response server="${name(serverName)}" tool="${name(toolName)}" trust="untrusted">\n${defang(text)}\n</mcp_response>`;
}

/** Keeps a text from closing or opening one of our blocks; other tags stay readable. */
function defang(text: string): string {
  return removeInvisible(text).replace(/<(?=\s*\/?\s*(?:mcp_|available_mcp|error\b))/gi, "&lt;");
}

function isPlainText(block: unknown): block is { readonly type: "text"; readonly text: string } {
  return isSchemaObject(block) && block["type"] === "text" && typeof block["text"] === "string";
}

function textOf(blocks: readonly unknown[], structuredContent: unknown): string {
  const texts = blocks.map((block) => (isPlainText(block) ? block.text : describeBlock(block))).filter((text) => text !== "");
  if (texts.length > 0) return texts.join("\n");
  return structuredContent === undefined ? "" : JSON.stringify(structuredContent);
}

/** One line for a block that is not text; its data stays in the artifact. */
function describeBlock(block: unknown): string {
  if (!isSchemaObject(block)) return "";
  const { type, mimeType, uri, resource } = block;
  const kind = oneLine(String(mimeType ?? type ?? "unknown"), 60);
  if (type === "resource_link") return `[Link to a resource: ${oneLine(String(uri), 300)}]`;
  if (type === "resource" && isSchemaObject(resource)) {
    return typeof resource["text"] === "string"
      ? resource["text"]
      : `[Embedded resource ${oneLine(String(resource["uri"]), 300)}, not shown]`;
  }
  return `[${kind} content, not shown]`;
}

/** Cuts a long text in its middle, with a notice there, so that the result has at most `maxChars` characters. */
export function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const notice = `\n[… ${text.length} characters in all, the middle is left out …]\n`;
  const room = Math.max(0, maxChars - notice.length);
  const tail = Math.floor(room * TAIL_SHARE);
  const head = cut(text, room - tail).replace(/…$/, "");
  return (head + notice + dropHalfPair(text.slice(text.length - tail))).slice(0, maxChars);
}

function dropHalfPair(text: string): string {
  const code = text.charCodeAt(0);
  return code >= 0xdc00 && code <= 0xdfff ? text.slice(1) : text;
}

function boundArtifact(artifact: McpArtifact, maxChars: number): McpArtifact {
  const totalChars = JSON.stringify([artifact.structuredContent ?? null, artifact.meta ?? null, artifact.blocks]).length;
  if (totalChars <= maxChars) return artifact;
  const { serverName, toolName, durationMs, isError } = artifact;
  return { serverName, toolName, durationMs, isError, blocks: [], truncated: { totalChars } };
}
