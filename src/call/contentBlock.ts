import { isRecord } from "../text/isRecord.js";
import { oneLine } from "../text/clean.js";
import type { ImageBlock } from "./result.js";

/**
 * Where a model client takes images of tool results: `"tool"`, in the tool message; `"human"`, in a human message behind the
 * tool messages of the step; `"none"`: the model takes no images.
 */
export type ImagePlacement = "tool" | "human" | "none";

/** What of a content block goes to the model. */
export interface BlockReading {
  /** Its part of the text; `""` when it has none. */
  readonly text: string;
  readonly image: ImageBlock | undefined;
  /** Whether text and image say all that the block holds. */
  readonly isWhole: boolean;
}

const NOTHING: BlockReading = { text: "", image: undefined, isWhole: false };
const MAX_URI_CHARS = 1_000;
const IMAGE_TYPE = /^image\/(?:png|jpe?g|gif|webp)$/i;
/* Not one pattern for all of it: that takes a stack as deep as the data is long. */
const NOT_BASE64 = /[^A-Za-z0-9+/=]|=[^=]|={3}/;
/** How the data of an image begins, in base64. What it is says the data, not the server. */
const SIGNATURES = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
] as const;

/**
 * Reads one content block of a result, however malformed. Never throws, never fetches.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
 */
export function readBlock(block: unknown, serverName: string): BlockReading {
  if (!isRecord(block) || isForUserAlone(block)) return NOTHING;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string" ? whole(block["text"]) : NOTHING;
    case "image":
      return readBinary(block["data"], block["mimeType"], "image");
    case "audio":
      return line(describeBinary(block["data"], block["mimeType"], "audio"));
    case "resource_link":
      return line(describeLink(block, serverName));
    case "resource":
      return isRecord(block["resource"]) ? readResource(block["resource"], serverName) : NOTHING;
    default:
      return line(`[Content of kind ${oneLine(typeof block["type"] === "string" ? block["type"] : "unknown", 60)}, not shown]`);
  }
}

/** Blocks and resources whose audience is only the user are for the application to show. */
export function isForUserAlone({ annotations }: Record<string, unknown>): boolean {
  const audience = isRecord(annotations) ? annotations["audience"] : undefined;
  return Array.isArray(audience) && audience.length > 0 && audience.every((who) => who === "user");
}

function readResource(resource: Record<string, unknown>, serverName: string): BlockReading {
  const { uri, mimeType, text, blob } = resource;
  const name = mention(serverName, uri);
  if (typeof text === "string") return whole(`Resource ${name}:\n${text}`);
  if (typeof mimeType === "string" && IMAGE_TYPE.test(mimeType)) {
    const { image } = readBinary(blob, mimeType, "image");
    if (image !== undefined) return { text: `Resource ${name}, shown as an image`, image, isWhole: true };
  }
  return line(`${describeBinary(blob, mimeType, "resource").slice(0, -1)}: ${name}]`);
}

/** Reads data that may be an image; any other is a line of text. */
export function readBinary(data: unknown, mimeType: unknown, kind: string): BlockReading {
  const compact = typeof data === "string" ? data.replace(/\s+/g, "") : "";
  const isImage =
    typeof mimeType === "string" && IMAGE_TYPE.test(mimeType) && compact.length % 4 === 0 && !NOT_BASE64.test(compact);
  const type = isImage ? SIGNATURES.find(([signature]) => compact.startsWith(signature))?.[1] : undefined;
  if (type === undefined) return line(describeBinary(data, mimeType, kind));
  return { text: "", image: { type: "image_url", image_url: { url: `data:${type};base64,${compact}` } }, isWhole: true };
}

/** One line for data that is not shown. Never the data. */
function describeBinary(data: unknown, mimeType: unknown, kind: string): string {
  const type = typeof mimeType === "string" ? oneLine(mimeType, 60) : kind;
  const size = typeof data === "string" ? `, about ${Math.ceil((data.length * 3) / 4)} bytes` : "";
  return `[${type} data${size}, not shown]`;
}

/** A resource with what its server says of it, as one line. */
export function describeLink(block: Record<string, unknown>, serverName: string): string {
  const parts = [block["title"] ?? block["name"], block["mimeType"], block["description"]];
  const about = parts.filter((part): part is string => typeof part === "string" && part !== "").map((part) => oneLine(part, 200));
  return `${mention(serverName, block["uri"])}${about.length === 0 ? "" : ` (${about.join("; ")})`}`;
}

/** A resource as the model and people can name it: `@server:uri`, in quotes when it has spaces. */
export function mention(serverName: string, uri: unknown): string {
  const text = typeof uri === "string" ? uri : "unknown";
  // Data in a URI is data all the same.
  const shown = /^data:/i.test(text) ? `${text.slice(0, 60).split(",")[0]!}, ${text.length} characters` : text;
  const name = oneLine(shown, MAX_URI_CHARS);
  return `@${oneLine(serverName, 64)}:${name.includes(" ") && name === text ? `"${name}"` : name}`;
}

function whole(text: string): BlockReading {
  return { text, image: undefined, isWhole: true };
}

function line(text: string): BlockReading {
  return { text, image: undefined, isWhole: false };
}
