import { readBinary } from "../call/contentBlock.js";
import { fairShare } from "../text/clean.js";
import { cutMiddle, cutNotice, defang } from "../call/result.js";
import { cut, oneLine } from "../text/clean.js";
import { isRecord } from "../text/isRecord.js";

/** The parts of a resource that can be shown. */
export interface ResourceExcerpt {
  readonly parts: readonly {
    readonly uri: string;
    readonly mimeType: string | undefined;
    /** Cleaned. A very long text keeps its head and tail. */
    readonly text: string;
    readonly totalChars: number;
  }[];
  /** As `data:` URLs. */
  readonly images: readonly string[];
  /** Number of contents that are not in `parts`. */
  readonly leftOut: number;
}

const MAX_PARTS = 20;
/** Maximum number of images of one resource or prompt. */
export const MAX_IMAGES = 10;
/** Maximum characters of an image: about 5 MB, the limit of providers. */
export const MAX_IMAGE_CHARS = 7_000_000;
const MAX_URI_CHARS = 500;
const TEXT_TYPE = /^(?:text\/|application\/(?:.*\+)?(?:json|xml|yaml|javascript))/i;

/**
 * Extracts what can be shown from a `resources/read` result, however malformed. Pure; never throws.
 * @param uri - The URI that was read, for contents without their own.
 * @param maxChars - The most that can be shown of one text.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources
 */
export function excerptOf(
  result: Readonly<Record<string, unknown>>,
  uri: string,
  maxChars: number,
): ResourceExcerpt {
  const contents = (
    Array.isArray(result["contents"]) ? (result["contents"] as unknown[]) : []
  ).filter(isRecord);
  const images: string[] = [];
  const parts = contents.slice(0, MAX_PARTS).map((content) => {
    const mimeType = typeof content["mimeType"] === "string" ? content["mimeType"] : undefined;
    const text = textOf(content, mimeType, images);
    const kept = text.length > 2 * maxChars ? halved(text, maxChars) : defang(text);
    return {
      uri: typeof content["uri"] === "string" ? content["uri"] : uri,
      mimeType,
      text: kept,
      totalChars: text.length,
    };
  });
  return { parts, images, leftOut: contents.length - parts.length };
}

/** The text of one content. An image goes to `images`, with a line of text in its place. */
function textOf(
  { text, blob }: Record<string, unknown>,
  mimeType: string | undefined,
  images: string[],
): string {
  if (typeof text === "string") return text;
  if (typeof blob !== "string") return "";
  if (mimeType !== undefined && TEXT_TYPE.test(mimeType)) {
    const decoded = decode(blob);
    if (decoded !== undefined) return decoded;
  }
  const { image, text: line } = readBinary(blob, mimeType, "binary");
  if (image === undefined) return line;
  if (blob.length > MAX_IMAGE_CHARS)
    return `[Image of about ${Math.ceil((blob.length * 3) / 4)} bytes, too large to be shown]`;
  if (images.length >= MAX_IMAGES) return "[One more image, not shown]";
  images.push(image.image_url.url);
  return "[Image, shown apart from this text]";
}

function halved(text: string, maxChars: number): string {
  const tail = defang(text.slice(text.length - maxChars));
  return `${defang(text.slice(0, maxChars))}${cutNotice(text.length)}${tail}`;
}

/** Decodes text that was sent as a blob; `undefined` when it is not UTF-8. */
function decode(blob: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(blob, "base64"));
  } catch {
    return undefined;
  }
}

/** Characters that an excerpt needs of a turn's room: its texts and URIs. */
export function excerptChars({ parts }: ResourceExcerpt): number {
  return parts.reduce((sum, { text, uri }) => sum + text.length + uri.length, 0);
}

/**
 * Renders a resource as `<MCP_RESOURCE …>` blocks, one for each content. Server text cannot open or
 * close a block. Pure.
 * @param maxChars - Characters of all blocks, including tags, as long as the tags alone fit.
 */
export function renderResource(
  serverName: string,
  uri: string,
  excerpt: ResourceExcerpt,
  maxChars: number,
): string {
  if (excerpt.parts.length === 0) return block(serverName, uri, undefined, "(It is empty.)");
  const tags = excerpt.parts.map(
    (part) => block(serverName, part.uri, part.mimeType, "").length + 1,
  );
  // Tags take at most half of the room. The first content is always shown.
  let left = maxChars / 2;
  const shown = excerpt.parts.filter((_part, index) => (left -= tags[index]!) >= 0 || index === 0);
  const hidden = excerpt.leftOut + excerpt.parts.length - shown.length;
  const more =
    hidden === 0
      ? ""
      : `\n${block(serverName, uri, undefined, `[${hidden} more contents, not shown]`)}`;
  const room = Math.max(
    0,
    maxChars - more.length - tags.slice(0, shown.length).reduce((sum, chars) => sum + chars, 0),
  );
  const total = shown.reduce((sum, { text }) => sum + text.length, 0);
  const share =
    total > room
      ? fairShare(
          shown.map(({ text }) => text.length),
          room,
        )
      : room;
  const blocks = shown.map((part) =>
    block(serverName, part.uri, part.mimeType, cutMiddle(part.text, share, part.totalChars)),
  );
  return blocks.join("\n") + more;
}

/** Renders the block of a resource that could not be read. `why` is for the model. */
export function renderFailure(serverName: string, uri: string, why: string): string {
  return block(serverName, uri, undefined, `<error>${oneLine(why, 1_000)}</error>`);
}

function block(
  serverName: string,
  uri: string,
  mimeType: string | undefined,
  body: string,
): string {
  const type = mimeType === undefined ? "" : ` mimeType="${attribute(mimeType, 100)}"`;
  return `<MCP_RESOURCE server="${attribute(serverName, 64)}" uri="${attribute(uri, MAX_URI_CHARS)}"${type}>\n${body}\n</MCP_RESOURCE>`;
}

/** Escapes untrusted text for an attribute. */
function attribute(text: string, maxChars: number): string {
  const escaped = oneLine(text, maxChars)
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
  return cut(escaped, maxChars);
}
