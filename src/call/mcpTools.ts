import { ToolMessage } from "@langchain/core/messages";
import { isGraphBubbleUp } from "@langchain/langgraph";

import { toModelSchema } from "../catalog/schema/modelSchema.js";
import { PROFILES, type SchemaProfile } from "../catalog/schema/profiles.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { ServerSettings } from "../config/settings.js";
import { McpMiddlewareError, McpProtocolError } from "../errors.js";
import { cut, removeInvisible } from "../text/clean.js";
import { callerOf, type Caller } from "./caller.js";
import { jsonText } from "./contentBlock.js";
import { errorTextForModel } from "./failureText.js";
import type { Gate } from "./gate.js";
import { McpTool, type McpToolMetadata, type RunTool } from "./mcpTool.js";
import type { McpArtifact } from "./result.js";

/* Data of an error that the artifact keeps. */
const MAX_ERROR_DATA_CHARS = 20_000;

/**
 * Makes the LangChain tools of a hub when they are bound. They keep working after a reconnect. A
 * failed call returns a `ToolMessage` with status `error`; only aborts and graph interrupts are
 * thrown.
 */
export class McpTools {
  readonly #servers: ReadonlyMap<string, ServerSettings>;
  readonly #gate: Gate;
  readonly #made = new WeakMap<ToolEntry, Map<string, McpTool>>();
  readonly #sizes = new WeakMap<McpTool, number>();

  constructor(servers: ReadonlyMap<string, ServerSettings>, gate: Gate) {
    this.#servers = servers;
    this.#gate = gate;
  }

  /** The tool of an entry: the same object for the same entry and profile. */
  of(entry: ToolEntry, profile: SchemaProfile = PROFILES.generic): McpTool {
    let made = this.#made.get(entry);
    if (made === undefined) this.#made.set(entry, (made = new Map<string, McpTool>()));
    let tool = made.get(profile.name);
    if (tool === undefined) made.set(profile.name, (tool = this.#make(entry, profile)));
    return tool;
  }

  /** Characters of a tool's definition in the form that a model client gets. */
  sizeOf(entry: ToolEntry, profile: SchemaProfile): number {
    const tool = this.of(entry, profile);
    const known = this.#sizes.get(tool);
    if (known !== undefined) return known;
    const size = JSON.stringify([tool.name, tool.description, tool.schema]).length;
    this.#sizes.set(tool, size);
    return size;
  }

  /** The tool of an entry, with calls made for `caller`. */
  for(entry: ToolEntry, caller: Caller): McpTool {
    return this.of(entry).running(this.runner(entry, caller));
  }

  /** Makes the function that runs an entry's calls. `caller` overrides the caller of the run. */
  runner({ serverName, toolName, boundName }: ToolEntry, caller?: Caller): RunTool {
    return async (args, { toolCallId, name, config }) => {
      const startedAt = performance.now();
      const base = { name, tool_call_id: toolCallId };
      try {
        const who = { ...callerOf(config), ...caller, config, signal: config.signal, toolCallId };
        const outcome = await this.#gate.call({ ...who, serverName, toolName, arguments: args });
        const { content, images, artifact, status } = outcome;
        const text = content === "" ? [] : [{ type: "text" as const, text: content }];
        return new ToolMessage({
          ...base,
          content: images.length === 0 ? content : [...text, ...images],
          artifact,
          status,
        });
      } catch (error) {
        if (isGraphBubbleUp(error) || config.signal?.aborted === true) throw error;
        const durationMs = performance.now() - startedAt;
        const code = McpMiddlewareError.isInstance(error) ? { errorCode: error.code } : {};
        const data = McpProtocolError.isInstance(error) ? error.data : undefined;
        const isKept = data !== undefined && jsonText(data).length <= MAX_ERROR_DATA_CHARS;
        const artifact: McpArtifact = {
          serverName,
          toolName,
          durationMs,
          isError: true,
          blocks: [],
          ...code,
          ...(isKept ? { errorData: data } : {}),
        };
        return new ToolMessage({
          ...base,
          content: errorTextForModel(error, boundName),
          artifact,
          status: "error",
        });
      }
    };
  }

  #make(entry: ToolEntry, profile: SchemaProfile): McpTool {
    const { serverName, toolName, boundName, annotations, outputSchema } = entry;
    const { category, tags, metadata: serverMetadata } = this.#servers.get(serverName)!;
    const metadata: McpToolMetadata = {
      serverName,
      toolName,
      annotations,
      outputSchema,
      category,
      tags,
      ...(serverMetadata === undefined ? {} : { serverMetadata }),
    };
    const text = removeInvisible(
      entry.description || (entry.title ?? `Tool ${toolName} of server ${serverName}`),
    );
    return new McpTool({
      name: boundName,
      description: cut(text, profile.maxDescriptionChars),
      schema: toModelSchema(entry.inputSchema, profile),
      metadata,
      run: this.runner(entry),
    });
  }
}
