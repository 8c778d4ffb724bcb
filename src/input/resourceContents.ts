import { readBinary } from "../call/contentBlock.js";
import { fairShare } from "../text/clean.js";
import { cutMiddle, cutNotice, defang } from "../call/result.js";
import { cut, oneLine } from "../text/clean.js";
import { isRecord } from "../text/isRecord.js";

/** What is kept of a resource that was read: as much of its text as can be shown, and its images. */
export interface ResourceExcerpt {
  readonly parts: readonly {
    readonly uri: string;
    readonly mimeType: string | undefined;
    /** Clean; of a very long text head and tail. */
    readonly text: string;
    readonly totalChars: number;
  }[];
  /** As `data:` URLs. */
  readonly images: readonly string[];
  /** Contents that are not among the parts. */
  readonly leftOut: number;
}

const MAX_PARTS = 20;
/** Images of one resource or prompt that are shown. */
export const MAX_IMAGES = 10;
/** Characters of an image: about 5 MB, which is what providers take. */
export const MAX_IMAGE_CHARS = 7_000_000;
const MAX_URI_CHARS = 500;
const TEXT_TYPE = /^(?:text\/|application\/(?:.*\+)?(?:json|xml|yaml|javascript))/i;

/**
 * Takes what can be shown out of the answer to `resources/read`, however malformed. Pure; never throws.
 *
 * @param uri - The URI that was read; contents that have none of their own are of it.
 * @param maxChars - No more than this can be shown of one text.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources
 */
export function excerptOf(result: Readonly<Record<string, unknown>>, uri: string, maxChars: number): ResourceExcerpt {
  const contents = (Array.isArray(result["contents"]) ? (result["contents"] as unknown[]) : []).filter(isRecord);
  const images: string[] = [];
  const parts = contents.slice(0, MAX_PARTS).map((content) => {
    const mimeType = typeof content["mimeType"] === "string" ? content["mimeType"] : undefined;
    const text = textOf(content, mimeType, images);
    const kept = text.length > 2 * maxChars ? halved(text, maxChars) : defang(text);
    return { uri: typeof content["uri"] === "string" ? content["uri"] : uri, mimeType, text: kept, totalChars: text.length };
  });
  return { parts, images, leftOut: contents.length - parts.length };
}

/** The text of one content; an image is put to the images and leaves a line. */
function textOf({ text, blob }: Record<string, unknown>, mimeType: string | undefined, images: string[]): string {
  if (typeof text === "string") return text;
  if (typeof blob !== "string") return "";
  if (mimeType !== undefined && TEXT_TYPE.test(mimeType)) {
    const decoded = decode(blob);
    if (decoded !== undefined) return decoded;
  }
  const { image, text: line } = readBinary(blob, mimeType, "binary");
  if (image === undefined) return line;
  if (blob.length > MAX_IMAGE_CHARS) return `[Image of about ${Math.ceil((blob.length * 3) / 4)} bytes, too large to be shown]`;
  if (images.length >= MAX_IMAGES) return "[One more image, not shown]";
  images.push(image.image_url.url);
  return "[Image, shown apart from this text]";
}

/** Head and tail of a very long text, with a notice between them. */
function halved(text: string, maxChars: number): string {
  const tail = defang(text.slice(text.length - maxChars));
  return `${defang(text.slice(0, maxChars))}${cutNotice(text.length)}${tail}`;
}

/** Text that was sent as data. */
function decode(blob: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(blob, "base64"));
  } catch {
    return undefined;
  }
}

/** Characters of the texts and URIs of an excerpt: what it asks for of the room of a turn. */
export function excerptChars({ parts }: ResourceExcerpt): number {
  return parts.reduce((sum, { text, uri }) => sum + text.length + uri.length, 0);
}

/**
 * The `<MCP_RESOURCE …>` blocks of a resource, one for each of its contents. Pure.
 *
 * What a server wrote cannot end a block or begin one.
 *
 * @param maxChars - Characters of all of it, tags included, as long as the tags alone fit.
 */
export function renderResource(serverName: string, uri: string, excerpt: ResourceExcerpt, maxChars: number): string {
  if (excerpt.parts.length === 0) return block(serverName, uri, undefined, "(It is empty.)");
  const tags = excerpt.parts.map((part) => block(serverName, part.uri, part.mimeType, "").length + 1);
  // Tags take half of the room at the most; the first content is always shown.
  let left = maxChars / 2;
  const shown = excerpt.parts.filter((_part, index) => (left -= tags[index]!) >= 0 || index === 0);
  const hidden = excerpt.leftOut + excerpt.parts.length - shown.length;
  const more = hidden === 0 ? "" : `\n${block(serverName, uri, undefined, `[${hidden} more contents, not shown]`)}`;
  const room = Math.max(0, maxChars - more.length - tags.slice(0, shown.length).reduce((sum, chars) => sum + chars, 0));
  const total = shown.reduce((sum, { text }) => sum + text.length, 0);
  const share =
    total > room
      ? fairShare(
          shown.map(({ text }) => text.length),
          room,
        )
      : room;
  const blocks = shown.map((part) => block(serverName, part.uri, part.mimeType, cutMiddle(part.text, share, part.totalChars)));
  return blocks.join("\n") + more;
}

/**
 * The block of a resource that could not be read.
 *
 * @param why - For the model.
 */
export function renderFailure(serverName: string, uri: string, why: string): string {
  return block(serverName, uri, undefined, `<error>${oneLine(why, 1_000)}</error>`);
}

function block(serverName: string, uri: string, mimeType: string | undefined, body: string): string {
  const type = mimeType === undefined ? "" : ` mimeType="${attribute(mimeType, 100)}"`;
  return `<MCP_RESOURCE server="${attribute(serverName, 64)}" uri="${attribute(uri, MAX_URI_CHARS)}"${type}>\n${body}\n</MCP_RESOURCE>`;
}

/** Untrusted text that cannot end an attribute. */
function attribute(text: string, maxChars: number): string {
  const escaped = oneLine(text, maxChars).replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return cut(escaped, maxChars);
}
