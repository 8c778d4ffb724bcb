import { ToolMessage } from "@langchain/core/messages";
import { isGraphBubbleUp } from "@langchain/langgraph";

import { GatedTool, type McpToolMetadata } from "../catalog/gatedTool.js";
import { toModelSchema } from "../catalog/modelSchema.js";
import type { SchemaProfile } from "../catalog/profiles.js";
import { cut, removeInvisible } from "../catalog/text.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { ServerSettings } from "../config/settings.js";
import { McpMiddlewareError } from "../errors.js";
import type { RunOrigin } from "../events.js";
import { errorTextForModel } from "./errorText.js";
import type { Gate } from "./gate.js";
import type { McpArtifact } from "./result.js";

/**
 * The LangChain tool of a catalog entry, as it is bound.
 *
 * It calls through the gate, not through a connection: an object that an agent holds works again after a reconnect.
 * A call never throws for what the server or the connection did; it answers with a `ToolMessage` of status `error`.
 */
export function boundTool(entry: ToolEntry, settings: ServerSettings, gate: Gate, profile: SchemaProfile): GatedTool {
  const { serverName, toolName, boundName } = entry;
  const metadata: McpToolMetadata = {
    serverName,
    toolName,
    annotations: entry.annotations,
    outputSchema: entry.outputSchema,
    category: settings.category,
    tags: settings.tags,
    ...(settings.metadata === undefined ? {} : { serverMetadata: settings.metadata }),
  };
  const text = removeInvisible(entry.description || (entry.title ?? `Tool ${toolName} of server ${serverName}`));
  return new GatedTool({
    name: boundName,
    description: cut(text, profile.maxDescriptionChars),
    schema: toModelSchema(entry.inputSchema, profile),
    metadata,
    run: async (args, { toolCallId, name, config }) => {
      const startedAt = performance.now();
      const base = { name, tool_call_id: toolCallId };
      try {
        const { signal } = config;
        const outcome = await gate.call({
          serverName,
          toolName,
          arguments: args,
          toolCallId,
          signal,
          origin: originOf(config),
          config,
        });
        const { content, images, artifact, status } = outcome;
        const text = content === "" ? [] : [{ type: "text" as const, text: content }];
        return new ToolMessage({ ...base, content: images.length === 0 ? content : [...text, ...images], artifact, status });
      } catch (error) {
        if (isGraphBubbleUp(error) || config.signal?.aborted === true) throw error;
        const artifact: McpArtifact = {
          serverName,
          toolName,
          durationMs: performance.now() - startedAt,
          isError: true,
          blocks: [],
          ...(McpMiddlewareError.isInstance(error) ? { errorCode: error.code } : {}),
        };
        return new ToolMessage({ ...base, content: errorTextForModel(error, boundName), artifact, status: "error" });
      }
    },
  });
}

/** Thread and run of a LangChain configuration. */
export function originOf(config: {
  readonly configurable?: Readonly<Record<string, unknown>> | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly runId?: string | undefined;
}): RunOrigin {
  const threadId = config.configurable?.["thread_id"];
  const runId = config.runId ?? config.configurable?.["run_id"] ?? config.metadata?.["run_id"];
  return { threadId: typeof threadId === "string" ? threadId : undefined, runId: typeof runId === "string" ? runId : undefined };
}
