import { CallbackManager, parseCallbackConfigArg } from "@langchain/core/callbacks/manager";
import type { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { StructuredTool, type ToolRunnableConfig } from "@langchain/core/tools";

import type { JsonSchema, ToolAnnotations } from "../catalog/toolEntry.js";

/** Metadata of a bound tool of an MCP server. */
export interface McpToolMetadata extends Record<string, unknown> {
  readonly serverName: string;
  /** The server's own name of the tool. */
  readonly toolName: string;
  readonly annotations: ToolAnnotations | undefined;
  readonly outputSchema: JsonSchema | undefined;
  readonly category: string | undefined;
  readonly tags: readonly string[];
  /** `metadata` of the server's configuration, unread. */
  readonly serverMetadata?: Readonly<Record<string, unknown>>;
}

/** Runs a call. The arguments are as the model sent them, unchecked. */
export type RunTool = (
  args: unknown,
  call: { readonly toolCallId: string; readonly name: string; readonly config: RunnableConfig },
) => Promise<ToolMessage>;

/** Definition of a {@link McpTool}. */
export interface McpToolFields {
  readonly name: string;
  readonly description: string;
  /** The schema the model sees. */
  readonly schema: JsonSchema;
  readonly metadata: Record<string, unknown>;
  readonly run: RunTool;
}

/**
 * A LangChain tool whose calls go through our gate.
 *
 * Not `tool(…)`: core checks arguments against the schema before the function runs, refuses what could be repaired, and
 * lets some schemas end the whole run. Here the arguments arrive as they were sent, and repair and check come after.
 */
export class McpTool extends StructuredTool {
  static override lc_name(): string {
    return "McpTool";
  }

  override name: string;
  override description: string;
  override schema: JsonSchema;
  readonly #fields: McpToolFields;

  constructor(fields: McpToolFields) {
    const { name, description, schema, metadata } = fields;
    super({ metadata });
    this.name = name;
    this.description = description;
    this.schema = schema;
    this.#fields = fields;
  }

  /** The same tool, whose calls run otherwise. */
  running(run: RunTool): McpTool {
    return new McpTool({ ...this.#fields, run });
  }

  /** Runs the tool with callbacks as core does, but without its check. */
  override async call(input: unknown, configArg?: ToolRunnableConfig, tags?: string[]): Promise<never> {
    const config = parseCallbackConfigArg(configArg) as ToolRunnableConfig;
    const manager = CallbackManager.configure(
      config.callbacks,
      this.callbacks,
      config.tags ?? tags,
      this.tags,
      config.metadata,
      this.metadata,
      { verbose: this.verbose },
    );
    const { id = "", name = this.name } = config.toolCall ?? {};
    const run = await manager?.handleToolStart(
      this.toJSON(),
      typeof input === "string" ? input : JSON.stringify(input ?? {}),
      config.runId,
      undefined,
      undefined,
      undefined,
      config.runName ?? this.name,
      id,
    );
    try {
      const message = await this.#fields.run(input, {
        toolCallId: id,
        name,
        config: { ...config, callbacks: run?.getChild() } as RunnableConfig,
      });
      await run?.handleToolEnd(message);
      // Without a tool call there is nobody to answer: core returns the content then.
      return (config.toolCall === undefined ? message.content : message) as never;
    } catch (error) {
      await run?.handleToolError(error);
      throw error;
    }
  }

  protected override _call(): Promise<never> {
    throw new Error("McpTool runs in call().");
  }
}
