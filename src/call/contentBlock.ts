import { isRecord } from "../text/isRecord.js";
import { oneLine } from "../text/clean.js";
import type { ImageBlock } from "./result.js";

/**
 * Where a model takes images of results: in the tool message, in a human message after the step's
 * tool messages, or nowhere.
 */
export type ImagePlacement = "tool" | "human" | "none";

/** The part of a content block that goes to the model. */
export interface BlockReading {
  readonly text: string;
  readonly image: ImageBlock | undefined;
  /** True when text and image hold everything in the block. */
  readonly isWhole: boolean;
}

const NOTHING: BlockReading = { text: "", image: undefined, isWhole: false };
const MAX_URI_CHARS = 1_000;
const IMAGE_TYPE = /^image\/(?:png|jpe?g|gif|webp)$/i;
/*
 * Looks for wrong characters: a match of the whole string needs a stack as deep as the data is
 * long.
 */
const NOT_BASE64 = /[^A-Za-z0-9+/=]|=[^=]|={3}/;
/** Base64 prefixes of image data: the data decides the type, not the server's `mimeType`. */
const SIGNATURES = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
] as const;

/**
 * Reads one content block, however malformed. Never throws and never fetches.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
 */
export function readBlock(block: unknown, serverName: string): BlockReading {
  if (!isRecord(block) || isForUserAlone(block)) return NOTHING;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string" ? whole(block["text"]) : NOTHING;
    // No kind of MCP, but what some frameworks send of a tool that failed.
    case "error": {
      const text = block["text"] ?? block["message"];
      return typeof text === "string" ? whole(text) : line(jsonText(block));
    }
    case undefined:
      return typeof block["text"] === "string" ? whole(block["text"]) : line(jsonText(block));
    case "image":
      return readBinary(block["data"], block["mimeType"], "image");
    case "audio":
      return line(describeBinary(block["data"], block["mimeType"], "audio"));
    case "resource_link":
      return line(describeLink(block, serverName));
    case "resource":
      return isRecord(block["resource"]) ? readResource(block["resource"], serverName) : NOTHING;
    default:
      return line(
        `[Content of kind ${oneLine(typeof block["type"] === "string" ? block["type"] : "unknown", 60)}, not shown]`,
      );
  }
}

/** A value as JSON; a notice for one that is nested too deep. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return "[Content that is nested too deep, not shown]";
  }
}

/** True when the user is the only audience: the application shows it, not the model. */
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
    if (image !== undefined)
      return { text: `Resource ${name}, shown as an image`, image, isWhole: true };
  }
  return line(`${describeBinary(blob, mimeType, "resource").slice(0, -1)}: ${name}]`);
}

/** Reads data as an image when it is one the model takes, else as one line of text. */
export function readBinary(data: unknown, mimeType: unknown, kind: string): BlockReading {
  const compact = typeof data === "string" ? data.replace(/\s+/g, "") : "";
  const isImage =
    typeof mimeType === "string" &&
    IMAGE_TYPE.test(mimeType) &&
    compact.length % 4 === 0 &&
    !NOT_BASE64.test(compact);
  const type = isImage
    ? SIGNATURES.find(([signature]) => compact.startsWith(signature))?.[1]
    : undefined;
  if (type === undefined) return line(describeBinary(data, mimeType, kind));
  return {
    text: "",
    image: { type: "image_url", image_url: { url: `data:${type};base64,${compact}` } },
    isWhole: true,
  };
}

/** Describes data in one line, without the data. */
function describeBinary(data: unknown, mimeType: unknown, kind: string): string {
  const type = typeof mimeType === "string" ? oneLine(mimeType, 60) : kind;
  const size = typeof data === "string" ? `, about ${Math.ceil((data.length * 3) / 4)} bytes` : "";
  return `[${type} data${size}, not shown]`;
}

/** Describes a resource in one line: its mention, title, MIME type and description. */
export function describeLink(block: Record<string, unknown>, serverName: string): string {
  const parts = [block["title"] ?? block["name"], block["mimeType"], block["description"]];
  const about = parts
    .filter((part): part is string => typeof part === "string" && part !== "")
    .map((part) => oneLine(part, 200));
  return `${mention(serverName, block["uri"])}${about.length === 0 ? "" : ` (${about.join("; ")})`}`;
}

/** Names a resource as `@server:uri`, with the URI in quotes when it has spaces. */
export function mention(serverName: string, uri: unknown): string {
  const text = typeof uri === "string" ? uri : "unknown";
  // Cuts the data in a `data:` URI.
  const shown = /^data:/i.test(text)
    ? `${text.slice(0, 60).split(",")[0]!}, ${text.length} characters`
    : text;
  const name = oneLine(shown, MAX_URI_CHARS);
  return `@${oneLine(serverName, 64)}:${name.includes(" ") && name === text ? `"${name}"` : name}`;
}

function whole(text: string): BlockReading {
  return { text, image: undefined, isWhole: true };
}

function line(text: string): BlockReading {
  return { text, image: undefined, isWhole: false };
}
