import { createTwoFilesPatch } from "diff";
import stringify from "safe-stable-stringify";

import { cut, removeInvisible } from "./text.js";
import type { RawTool } from "./toolEntry.js";

/** What of a tool can change. */
export type ToolField = "title" | "description" | "arguments" | "annotations";

/** The parts of a tool that a model or a policy goes by, as text. JSON. */
export type ToolTexts = Readonly<Record<ToolField, string>>;

/* What is kept of a part for a later diff. The digest is of all of it. */
const MAX_PART_CHARS = 20_000;
const MAX_DIFF_CHARS = 4_000;
const DIFF_MS = 100;
const FIELDS: readonly ToolField[] = ["title", "description", "arguments", "annotations"];

/** The parts of a tool as text, whole. */
export function toolTexts({ title, description, inputSchema, annotations }: Omit<RawTool, "outputSchema">): ToolTexts {
  const json = (value: unknown): string => (value === undefined ? "" : (stringify(value, null, 2) ?? ""));
  return { title: title ?? "", description, arguments: json(inputSchema), annotations: json(annotations) };
}

/** The parts as they are kept for a later diff. */
export function keptTexts(texts: ToolTexts): ToolTexts {
  return Object.fromEntries(FIELDS.map((field) => [field, cut(texts[field], MAX_PART_CHARS)])) as ToolTexts;
}

/** The parts that differ. */
export function changedFields(before: ToolTexts, after: ToolTexts): ToolField[] {
  return FIELDS.filter((field) => before[field] !== after[field]);
}

/** A unified diff of what changed, for people: at most 4,000 characters, without characters that cannot be seen. */
export function describeChange(before: ToolTexts, after: ToolTexts): string {
  const parts = changedFields(before, after).map((field) => {
    const [old, next] = [before, after].map((texts) => removeInvisible(cut(texts[field], MAX_PART_CHARS)));
    const patch = createTwoFilesPatch(field, field, old!, next!, "", "", { context: 2, timeout: DIFF_MS });
    // Of texts that differ in everything no diff is made in time.
    return patch === undefined ? `--- ${field}\n+++ ${field}\n(it differs as a whole)` : patch.replace(/^=+\n/, "").trimEnd();
  });
  return cut(parts.join("\n"), MAX_DIFF_CHARS);
}
