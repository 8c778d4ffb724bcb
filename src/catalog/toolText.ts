import { createTwoFilesPatch } from "diff";

import stringify from "safe-stable-stringify";

import { cut, removeInvisible } from "../text/clean.js";
import type { RawTool } from "./toolEntry.js";

/** What of a tool can change. */
export type ToolField = "title" | "description" | "arguments" | "annotations";

/** The parts of a tool that a model or a policy goes by, as text. JSON. */
export type ToolTexts = Readonly<Record<ToolField, string>>;

/* What is kept of a part for a later diff. The digest is of all of it. */
const MAX_PART_CHARS = 8_000;
const MAX_DIFF_CHARS = 4_000;
/* One diff; texts that differ in everything take longest, and show least. */
const DIFF_MS = 20;
/* All diffs that are made at the same time. */
const ALL_DIFFS_MS = 200;
const FIELDS: readonly ToolField[] = ["title", "description", "arguments", "annotations"];

/** The parts of a tool as text, whole. @throws for a schema that is too deep to be written. */
export function toolTexts({ title, description, inputSchema, annotations }: Omit<RawTool, "outputSchema">): ToolTexts {
  return { title: title ?? "", description, arguments: json(inputSchema), annotations: json(annotations) };
}

/** Whatever the order of keys. @throws for what is too deep to be written. */
function json(value: unknown): string {
  if (value === undefined) return "";
  try {
    return stringify(value) ?? "";
  } catch {
    return JSON.stringify(value);
  }
}

/** The parts as they are kept for a later diff. */
export function keptTexts(texts: ToolTexts): ToolTexts {
  return Object.fromEntries(FIELDS.map((field) => [field, detached(texts[field])])) as ToolTexts;
}

/** The head of a text; a part of a long one would keep all of it in memory. */
function detached(text: string): string {
  return text.length <= MAX_PART_CHARS ? text : Buffer.from(cut(text, MAX_PART_CHARS), "utf16le").toString("utf16le");
}

/** The parts that differ. */
export function changedFields(before: ToolTexts, after: ToolTexts): ToolField[] {
  return FIELDS.filter((field) => before[field] !== after[field]);
}

/** Makes diffs, as many as can be made in a short time: whoever changes a thousand tools must not stop the process. */
export class Differ {
  readonly #endsAt = performance.now() + ALL_DIFFS_MS;

  /** A unified diff of what changed, for people: at most 4,000 characters, without characters that cannot be seen. */
  describe(before: ToolTexts, after: ToolTexts): string {
    const parts = changedFields(before, after).map((field) => {
      const [old, next] = [before, after].map((texts) => lines(field, texts[field]));
      const timeout = Math.min(DIFF_MS, this.#endsAt - performance.now());
      const patch = timeout <= 0 ? undefined : createTwoFilesPatch(field, field, old!, next!, "", "", { context: 2, timeout });
      return patch === undefined ? `--- ${field}\n+++ ${field}\n(it differs, and is not shown)` : withoutHead(patch);
    });
    return cut(parts.join("\n"), MAX_DIFF_CHARS);
  }
}

/** A patch without the lines that name no file of ours. */
function withoutHead(patch: string): string {
  return patch.slice(patch.indexOf("---")).trimEnd();
}

/** A part as lines; JSON is broken where its elements begin. */
function lines(field: ToolField, text: string): string {
  const shown = removeInvisible(cut(text, MAX_PART_CHARS));
  const isJson = field === "arguments" || field === "annotations";
  return `${isJson ? shown.replace(/[{[,]/g, "$&\n") : shown}\n`;
}
