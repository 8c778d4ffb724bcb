import { toModelSchema } from "./modelSchema.js";
import { PROFILES } from "./profiles.js";
import { cut, escapeTags, removeInvisible } from "../../text/clean.js";
import type { ToolEntry } from "../toolEntry.js";

const MAX_SCHEMA_CHARS = 8_000;

/** The arguments of a tool as text for a model: JSON Schema in one line. */
export function schemaText({ inputSchema }: ToolEntry): string {
  const text = JSON.stringify(toModelSchema(inputSchema, PROFILES.generic));
  return cut(escapeTags(removeInvisible(text)), MAX_SCHEMA_CHARS);
}
