import { isRecord } from "../../text/isRecord.js";
import { matchGlobs } from "../../text/globs.js";
import type { ServerSettings } from "../../config/settings.js";
import type { ServerSnapshot } from "../catalog.js";
import type { SearchFields } from "./searchIndex.js";
import type { ToolEntry } from "../toolEntry.js";

const MAX_SUMMARY_CHARS = 300;
const MAX_BACKGROUND_CHARS = 400;
const SENTENCE_END = /[.!?](?=\s|$)|[。！？]|\n/u;

/** The texts by which a tool is found. */
export function searchFields(
  entry: Pick<
    ToolEntry,
    "serverName" | "toolName" | "title" | "annotations" | "description" | "inputSchema"
  >,
  settings: Pick<ServerSettings, "description" | "category" | "tags" | "keywords" | "toolKeywords">,
  snapshot: Pick<ServerSnapshot, "serverInfo" | "instructions">,
): SearchFields {
  const { properties } = entry.inputSchema;
  const parameters = isRecord(properties) ? Object.entries(properties) : [];
  const own = Object.entries(settings.toolKeywords).flatMap(([glob, words]) =>
    matchGlobs([glob])(entry.toolName) ? words : [],
  );
  return {
    name: `${entry.toolName} ${entry.title ?? entry.annotations?.title ?? ""} ${own.join(" ")}`,
    server: [
      entry.serverName,
      snapshot.serverInfo?.title ?? "",
      settings.category ?? "",
      ...settings.tags,
      ...settings.keywords,
    ].join(" "),
    ...splitDescription(entry.description),
    background: `${settings.description ?? ""} ${(snapshot.instructions ?? "").slice(0, MAX_BACKGROUND_CHARS)}`,
    argumentNames: parameters.map(([name]) => name).join(" "),
    argumentDescriptions: parameters.map(([, schema]) => describeParameter(schema)).join(" "),
  };
}

/** Splits a description into its first sentence, the purpose of the tool, and the rest. */
export function splitDescription(text: string): {
  readonly summary: string;
  readonly description: string;
} {
  const end = SENTENCE_END.exec(text);
  const at = Math.min(end === null ? text.length : end.index + 1, MAX_SUMMARY_CHARS);
  return { summary: text.slice(0, at), description: text.slice(at) };
}

function describeParameter(schema: unknown): string {
  if (!isRecord(schema)) return "";
  const { description, enum: choices } = schema;
  const words = Array.isArray(choices)
    ? choices.filter((choice) => typeof choice === "string").slice(0, 20)
    : [];
  return [typeof description === "string" ? description : "", ...words].join(" ");
}
