import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { loadMcpTools } from "@langchain/mcp-adapters";

import { checkArguments } from "../../src/catalog/schema/checkArguments.js";
import { toModelSchema } from "../../src/catalog/schema/modelSchema.js";
import { PROFILES } from "../../src/catalog/schema/profiles.js";
import { repairArguments } from "../../src/catalog/schema/repairArguments.js";
import { readTool, toolEntry, type ToolEntry } from "../../src/catalog/toolEntry.js";
import { toolViolations } from "../../tests/support/providerRules.js";
import { loadRecordings, RECORDINGS } from "../recorded.js";
import { limitRow, ratioRow, type Row } from "../report.js";

const SCRIPT = fileURLToPath(new URL("../../../shared/peer/schema-fidelity.mjs", import.meta.url));
const VIEW = fileURLToPath(new URL("../modelSchema.ts", import.meta.url));

/**
 * What of the recorded tools' schemas survives to the model, what providers would refuse, and what
 * the view costs.
 */
export async function fidelityRows(): Promise<Row[]> {
  const entries = loadRecordings("all").flatMap(({ file, tools }) =>
    tools.flatMap((value) => {
      const reading = readTool(value);
      return reading.kind === "dropped"
        ? []
        : [toolEntry(file, `mcp__s__${reading.tool.name}`.slice(0, 64), reading.tool)];
    }),
  );
  return [...lossRow(), await refusalRow(entries), timeRow(entries)];
}

/** Percent of parameters that lose type, choices or required flag. */
function lossRow(): Row[] {
  if (!existsSync(SCRIPT)) return [];
  const measure = (how: string): number => {
    const printed = execFileSync(process.execPath, ["--import", "tsx", SCRIPT, RECORDINGS, how], {
      encoding: "utf8",
    });
    return Number(/loss % of params: ([\d.]+)/.exec(printed)![1]);
  };
  return [
    ratioRow(
      "parameters that lose type, enum or required flag",
      measure(VIEW),
      measure("adapter"),
      "%",
      "0",
      (ratio) => ratio === 0,
    ),
  ];
}

/** Tools that OpenAI or Anthropic would refuse: ours, and as the adapter gives them. */
async function refusalRow(entries: readonly ToolEntry[]): Promise<Row> {
  const refused = (name: string, description: string, schema: unknown): boolean =>
    toolViolations("openai-chat", {
      tools: [{ function: { name, description, parameters: schema } }],
    }).length +
      toolViolations("anthropic", { tools: [{ name, description, input_schema: schema }] }).length >
    0;
  const ours = entries.filter(({ boundName, description, inputSchema }) =>
    refused(
      boundName,
      description.slice(0, PROFILES.generic.maxDescriptionChars),
      toModelSchema(inputSchema),
    ),
  ).length;
  let peer = 0;
  for (const { toolName, description, inputSchema } of entries) {
    const client = {
      listTools: () =>
        Promise.resolve({
          tools: [{ name: toolName, description, inputSchema: structuredClone(inputSchema) }],
        }),
    };
    const [tool] = await loadMcpTools("s", client as never, { throwOnLoadError: false });
    if (tool === undefined) peer += 1;
    else {
      const { function: sent } = convertToOpenAITool(tool);
      if (refused(sent.name, sent.description ?? "", sent.parameters)) peer += 1;
    }
  }
  return ratioRow(
    "recorded tools that a provider refuses",
    ours,
    peer,
    "tools",
    "0",
    (ratio) => ratio === 0,
    `of ${entries.length}; by the rules in tests/support/providerRules.ts`,
  );
}

/** Making the view of every recorded schema, and repairing and checking arguments against it. */
function timeRow(entries: readonly ToolEntry[]): Row {
  const startedAt = performance.now();
  for (const { inputSchema, hash } of entries) {
    toModelSchema(inputSchema);
    checkArguments(inputSchema, repairArguments(inputSchema, {}), hash);
  }
  const took = (performance.now() - startedAt) / entries.length;
  return limitRow(
    "view, repair and check of a recorded tool",
    took,
    "ms",
    "≤ 0.5 ms",
    took <= 0.5,
    "first use, nothing cached",
  );
}
