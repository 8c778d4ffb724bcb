import { CallbackManager, parseCallbackConfigArg } from "@langchain/core/callbacks/manager";
import type { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { StructuredTool, type ToolRunnableConfig } from "@langchain/core/tools";

import type { JsonSchema, ToolAnnotations } from "../catalog/toolEntry.js";

/** Metadata of a bound MCP tool. */
export interface McpToolMetadata extends Record<string, unknown> {
  readonly serverName: string;
  /** The tool's name on its server. */
  readonly toolName: string;
  readonly annotations: ToolAnnotations | undefined;
  readonly outputSchema: JsonSchema | undefined;
  readonly category: string | undefined;
  readonly tags: readonly string[];
  /** `metadata` of the server's configuration, as given. */
  readonly serverMetadata?: Readonly<Record<string, unknown>>;
}

/** Runs a call. The arguments are unchecked, as the model sent them. */
export type RunTool = (
  args: unknown,
  call: { readonly toolCallId: string; readonly name: string; readonly config: RunnableConfig },
) => Promise<ToolMessage>;

export interface McpToolFields {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly metadata: Record<string, unknown>;
  readonly run: RunTool;
}

/**
 * A LangChain tool that gets its arguments as the model sent them; the call repairs and checks
 * them.
 *
 * Not made by `tool(…)`: core checks first, refuses arguments that can be repaired, and ends the
 * run for some schemas.
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

  /** The same tool with another function for its calls. */
  running(run: RunTool): McpTool {
    return new McpTool({ ...this.#fields, run });
  }

  /** Runs the tool with callbacks like core, but without core's argument check. */
  override async call(
    input: unknown,
    configArg?: ToolRunnableConfig,
    tags?: string[],
  ): Promise<never> {
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
      // Like core, returns the content when there is no tool call to answer.
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
