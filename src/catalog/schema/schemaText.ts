import { toModelSchema } from "./modelSchema.js";
import { PROFILES } from "./profiles.js";
import { cut, escapeTags, removeInvisible } from "../../text/clean.js";
import type { ToolEntry } from "../toolEntry.js";

const MAX_SCHEMA_CHARS = 8_000;

/** The arguments of a tool for a model: JSON Schema on one line, at most 8,000 characters. */
export function schemaText({ inputSchema }: ToolEntry): string {
  const text = JSON.stringify(toModelSchema(inputSchema, PROFILES.generic));
  return cut(escapeTags(removeInvisible(text)), MAX_SCHEMA_CHARS);
}
