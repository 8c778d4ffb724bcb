import { ToolMessage } from "@langchain/core/messages";
import { isGraphBubbleUp } from "@langchain/langgraph";

import { McpTool, type McpToolParts, type McpToolMetadata } from "./mcpTool.js";
import { toModelSchema } from "../catalog/schema/modelSchema.js";
import type { SchemaProfile } from "../catalog/schema/profiles.js";
import { cut, removeInvisible } from "../text/clean.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { McpRunContext } from "../config/policyOptions.js";
import type { ServerSettings } from "../config/settings.js";
import { McpMiddlewareError } from "../errors.js";
import type { RunOrigin } from "../events.js";
import { errorTextForModel } from "./errorText.js";
import type { Gate } from "./gate.js";
import type { Caller } from "./permits.js";
import type { McpArtifact } from "./result.js";

/**
 * The LangChain tool of a catalog entry, as it is bound.
 *
 * It calls through the gate, not through a connection: an object that an agent holds works again after a reconnect.
 * A call never throws for what the server or the connection did; it answers with a `ToolMessage` of status `error`.
 */
export function boundTool(entry: ToolEntry, settings: ServerSettings, gate: Gate, profile: SchemaProfile): McpTool {
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
  return new McpTool({
    name: boundName,
    description: cut(text, profile.maxDescriptionChars),
    schema: toModelSchema(entry.inputSchema, profile),
    metadata,
    run: runCall(entry, gate),
  });
}

/**
 * Runs the calls of a bound tool through the gate.
 *
 * @param caller - Who they are for, and what a person has said. Default: the context of the run they are made in.
 */
export function runCall({ serverName, toolName, boundName }: ToolEntry, gate: Gate, caller?: Caller): McpToolParts["run"] {
  return async (args, { toolCallId, name, config }) => {
    const startedAt = performance.now();
    const base = { name, tool_call_id: toolCallId };
    try {
      const outcome = await gate.call({
        context: contextOf(config),
        ...caller,
        serverName,
        toolName,
        arguments: args,
        toolCallId,
        signal: config.signal,
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
  };
}

/** The context of a run, as LangGraph hands it on. */
export function contextOf(config: object | undefined): McpRunContext {
  const context = config === undefined || !("context" in config) ? undefined : config.context;
  return typeof context === "object" && context !== null ? (context as McpRunContext) : {};
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
