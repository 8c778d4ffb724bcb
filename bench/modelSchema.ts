// The shape that ../shared/peer/schema-fidelity.mjs asks for.
import { toModelSchema as view } from "../src/catalog/schema/modelSchema.js";
import { readTool } from "../src/catalog/toolEntry.js";

/** The schema the model sees of a raw tool. */
export function toModelSchema(rawTool: unknown): unknown {
  const reading = readTool(rawTool);
  return reading.kind === "dropped" ? undefined : view(reading.tool.inputSchema);
}
