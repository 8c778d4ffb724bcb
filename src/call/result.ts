import { isRecord } from "../text/isRecord.js";
import { cut, oneLine, removeInvisible } from "../text/clean.js";
import type { McpErrorCode } from "../errors.js";
import { jsonText, readBlock } from "./contentBlock.js";

/** A `tools/call` result as the server sent it, unchecked. */
export interface RawCallResult {
  readonly content?: readonly unknown[] | undefined;
  readonly structuredContent?: unknown;
  readonly isError?: unknown;
  readonly _meta?: unknown;
}

/** Artifact of the `ToolMessage` of an MCP call: the data that is not for the model. JSON. */
export interface McpArtifact {
  readonly serverName: string;
  /** The tool's name on its server. */
  readonly toolName: string;
  readonly durationMs: number;
  readonly isError: boolean;
  readonly structuredContent?: unknown;
  /** `_meta` of the result. */
  readonly meta?: unknown;
  /** Content blocks that the message does not show completely. */
  readonly blocks: readonly unknown[];
  /** Why the call has no result; unset when it has one. */
  readonly errorCode?: McpErrorCode;
  /** `data` of the server's JSON-RPC error, up to 20,000 characters of JSON. */
  readonly errorData?: unknown;
  /**
   * Set when the data was too large to keep here. `storeKey`: key of the whole result in the result
   * store.
   */
  readonly truncated?: { readonly totalChars: number; readonly storeKey?: string };
}

export interface ResultSettings {
  readonly maxResultChars: number;
  readonly maxArtifactChars: number;
  readonly envelope: boolean;
  /** Key in the result store for a result that is too large; unset without a store. */
  readonly storeKey?: string | undefined;
}

/** An image in LangChain's message content. */
export type ImageBlock = {
  readonly type: "image_url";
  /** A `data:` URL. */
  readonly image_url: { readonly url: string };
};

/** Result of a call, as the model gets it, with its artifact. */
export interface CallOutcome {
  readonly status: "success" | "error";
  readonly content: string;
  /** In the server's order. */
  readonly images: readonly ImageBlock[];
  readonly artifact: McpArtifact;
}

/** Share of a cut text's room that goes to its end. */
const TAIL_SHARE = 0.25;

/**
 * Splits a result into text and images for the model, and an artifact that keeps the rest. Pure.
 * Text blocks and embedded text resources become one text; links and other binary data become one
 * line each. Blocks for the user alone and `_meta` never reach the model.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
 */
export function toOutcome(
  serverName: string,
  toolName: string,
  result: RawCallResult,
  durationMs: number,
  settings: ResultSettings,
): CallOutcome {
  const blocks = blocksOf(result);
  const isError = result.isError === true || blocks.some(isErrorBlock);
  const readings = blocks.map((block) => readBlock(block, serverName));
  const texts = readings.map(({ text }) => text).filter((text) => text !== "");
  const images = readings.flatMap(({ image }) => (image === undefined ? [] : [image]));
  if (texts.length === 0 && images.length === 0 && result.structuredContent !== undefined) {
    texts.push(JSON.stringify(result.structuredContent));
  }
  const whole = texts.length > 0 ? texts.join("\n") : fallbackText(isError, images.length);
  const shown = cutMiddle(whole, settings.maxResultChars);
  const isCut = shown !== whole;
  const kept = blocks.filter(
    (_block, index) => !readings[index]!.isWhole || (isCut && readings[index]!.image === undefined),
  );
  const { artifact, keptImages } = bound(
    {
      serverName,
      toolName,
      durationMs,
      isError,
      ...(result.structuredContent === undefined
        ? {}
        : { structuredContent: result.structuredContent }),
      ...(result._meta === undefined ? {} : { meta: result._meta }),
      blocks: kept,
    },
    images,
    settings,
  );
  const text = shown + truncationNotice(artifact, images.length - keptImages.length);
  return {
    status: isError ? "error" : "success",
    content: settings.envelope ? inEnvelope(serverName, toolName, text) : removeInvisible(text),
    images: keptImages,
    artifact,
  };
}

const RESULT_KEYS = new Set(["content", "structuredContent", "isError", "_meta"]);

/**
 * The content blocks of a result, also of one in a looser shape: one block or a text in place of a
 * list, and other keys, as older servers send them, as JSON.
 */
function blocksOf(result: RawCallResult): unknown[] {
  const content: unknown = result.content;
  const given = Array.isArray(content) ? (content as unknown[]) : content == null ? [] : [content];
  const blocks = given.map((block) =>
    typeof block === "string" ? { type: "text", text: block } : block,
  );
  if (blocks.length > 0 || result.structuredContent !== undefined) return blocks;
  const others = Object.entries(result).filter(([key]) => !RESULT_KEYS.has(key));
  if (others.length === 0) return blocks;
  const text = jsonText(Object.fromEntries(others));
  return [{ type: "text", text }];
}

/** True for a block by which some frameworks report that a tool failed. */
function isErrorBlock(block: unknown): boolean {
  return isRecord(block) && block["type"] === "error";
}

function fallbackText(isError: boolean, imageCount: number): string {
  if (isError) return "The tool failed without a message.";
  return imageCount > 0 ? "" : "Done. The tool returned nothing.";
}

function truncationNotice({ truncated }: McpArtifact, lostImages: number): string {
  if (truncated === undefined) return "";
  const lost =
    lostImages === 0 ? "" : ` ${lostImages} ${lostImages === 1 ? "image" : "images"} left out.`;
  const where =
    truncated.storeKey === undefined ? "could not be kept" : "is kept outside of this conversation";
  return `\n[The whole result of ${truncated.totalChars} characters ${where}.${lost}]`;
}

/** Wraps server text in a tag that marks it as untrusted; the text cannot close the tag. */
export function inEnvelope(serverName: string, toolName: string, text: string): string {
  const name = (value: string): string => oneLine(value, 64).replaceAll('"', "'");
  return `<mcp_response server="${name(serverName)}" tool="${name(toolName)}" trust="untrusted">\n${defang(text)}\n</mcp_response>`;
}

/**
 * Removes invisible characters and escapes tags that could open or close one of our blocks. Other
 * tags stay readable.
 */
export function defang(text: string): string {
  return removeInvisible(text).replace(/<(?=[\s/]*(?:mcp_|available_mcp))/gi, "&lt;");
}

/** The text in place of a middle that was cut out. */
export function cutNotice(totalChars: number): string {
  return `\n[… ${totalChars} characters in all, the middle is left out …]\n`;
}

/**
 * Cuts the middle out of a long text and puts a notice there. The result has at most `maxChars`
 * characters.
 * @param totalChars - The original length, when the text was cut before.
 */
export function cutMiddle(text: string, maxChars: number, totalChars = text.length): string {
  if (text.length <= maxChars) return text;
  const notice = cutNotice(totalChars);
  const room = Math.max(0, maxChars - notice.length);
  const tail = Math.floor(room * TAIL_SHARE);
  const head = cut(text, room - tail).replace(/…$/, "");
  return (head + notice + dropHalfPair(text.slice(text.length - tail))).slice(0, maxChars);
}

function dropHalfPair(text: string): string {
  const code = text.charCodeAt(0);
  return code >= 0xdc00 && code <= 0xdfff ? text.slice(1) : text;
}

/**
 * Keeps images and data within `maxArtifactChars` together, images first. Each stays whole or is
 * left out.
 */
function bound(
  artifact: McpArtifact,
  images: readonly ImageBlock[],
  { maxArtifactChars, storeKey }: ResultSettings,
): { readonly artifact: McpArtifact; readonly keptImages: readonly ImageBlock[] } {
  const isPlain =
    artifact.blocks.length === 0 &&
    artifact.structuredContent === undefined &&
    artifact.meta === undefined;
  if (isPlain && images.length === 0) return { artifact, keptImages: images };
  const dataChars = JSON.stringify([
    artifact.structuredContent ?? null,
    artifact.meta ?? null,
    artifact.blocks,
  ]).length;
  const imageChars = images.reduce((sum, image) => sum + image.image_url.url.length, 0);
  const totalChars = dataChars + imageChars;
  if (totalChars <= maxArtifactChars) return { artifact, keptImages: images };
  const truncated = { totalChars, ...(storeKey === undefined ? {} : { storeKey }) };
  if (imageChars <= maxArtifactChars)
    return { artifact: withoutData(artifact, truncated), keptImages: images };
  const isDataKept = dataChars <= maxArtifactChars;
  return {
    artifact: isDataKept ? { ...artifact, truncated } : withoutData(artifact, truncated),
    keptImages: [],
  };
}

function withoutData(
  { serverName, toolName, durationMs, isError }: McpArtifact,
  truncated: NonNullable<McpArtifact["truncated"]>,
): McpArtifact {
  return { serverName, toolName, durationMs, isError, blocks: [], truncated };
}

export function isMcpArtifact(value: unknown): value is McpArtifact {
  return (
    isRecord(value) &&
    typeof value["serverName"] === "string" &&
    typeof value["toolName"] === "string" &&
    Array.isArray(value["blocks"])
  );
}
