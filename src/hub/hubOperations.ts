import { plainJson } from "../call/callArguments.js";
import { askNow } from "../ask/people.js";
import type { Caller } from "../call/caller.js";
import type { CallOutcome } from "../call/result.js";
import type { ToolChange } from "../catalog/toolFingerprints.js";
import type { OnAsk } from "../config/askSchema.js";
import { isRecord } from "../text/isRecord.js";
import type { McpRunContext } from "../config/policyOptions.js";
import type { McpConsents } from "../connect/stdio/consents.js";
import { McpConfigError } from "../errors.js";
import { partsOf } from "./hubParts.js";
import type { McpCommand } from "../input/commands.js";

/** Who an operation is for, and how a person is asked. */
export interface OperationOptions {
  /** Context for policy, scopes and workspaces. Default: empty. */
  readonly context?: McpRunContext;
  readonly signal?: AbortSignal;
  /** Asks a person. Without it, operations that need approval are refused. */
  readonly onAsk?: OnAsk;
}

/** The prompt, or the resource template, whose argument is completed. */
export type CompletionReference =
  { readonly promptName: string } | { readonly uriTemplate: string };

/** Suggested values of an argument. Untrusted. */
export interface ArgumentCompletion {
  /** At most 100, best first. */
  readonly values: readonly string[];
  /** Number of all values, if the server reports it. */
  readonly total?: number;
  readonly hasMore: boolean;
}

/** Operations on a hub's servers, for programs. Each passes the policy. */
export abstract class HubOperations {
  /**
   * Approved programs, and those that wait for approval.
   * @throws {McpConfigError} for a hub without the option `consent`.
   */
  get consents(): McpConsents {
    const { consents } = partsOf(this);
    if (consents !== undefined) return consents;
    throw new McpConfigError(
      'This hub asks nobody about programs. Make it with the option security: { consent: { store: "…" } }.',
    );
  }

  /**
   * Tools that changed since they were first seen and are not accepted yet (option
   * `security.toolFingerprints`).
   */
  toolChanges(): ToolChange[] {
    return partsOf(this).fingerprints.changes();
  }

  /**
   * Accepts the tools of a server as they are now; withheld ones are offered again.
   * @param toolNames - Raw tool names. Default: all that changed.
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  async acceptTools(serverName: string, toolNames?: readonly string[]): Promise<void> {
    const { pool, fingerprints, settings } = partsOf(this);
    const connection = pool.connection(serverName);
    fingerprints.accept(serverName, toolNames);
    await fingerprints.settled();
    if (settings.toolFingerprints.onChange === "deny" && connection.state.kind === "connected")
      await connection.refresh();
  }

  /**
   * Calls a tool through the gate.
   * @param args - Repaired and validated like a model's arguments.
   * @throws {McpPolicyError} when the policy denies it, or a person did not approve.
   * @throws {McpNotFoundError} for an unknown server or tool.
   * @throws {McpProtocolError} for wrong arguments, or when the server refuses the call.
   * @throws {McpConnectionError} when the server cannot be reached or does not answer.
   */
  async callTool(
    serverName: string,
    toolName: string,
    args: unknown = {},
    options: OperationOptions = {},
  ): Promise<CallOutcome> {
    return partsOf(this).gate.call({
      ...callerFor(options),
      serverName,
      toolName,
      arguments: plainJson(args),
    });
  }

  /**
   * Gets a prompt of a server, as the server sends it. Untrusted.
   * @throws {McpPolicyError} when the policy denies it (`mcp:invoke:<server>:<prompt>`), or a
   * person did not approve.
   * @throws {McpProtocolError} when the server refuses, {@link McpConnectionError} when it does not
   * answer.
   * @see https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#getting-a-prompt
   */
  getPrompt(
    serverName: string,
    promptName: string,
    args: Readonly<Record<string, string>> = {},
    options: OperationOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return partsOf(this).reads.getPrompt(serverName, promptName, args, callerFor(options));
  }

  /**
   * Reads a resource of a server, as the server sends it. Untrusted.
   * @throws {McpPolicyError} when the policy denies it (`mcp:read:<server>:<uri>`), or a person did
   * not approve.
   * @throws {McpProtocolError} when the server refuses, {@link McpConnectionError} when it does not
   * answer.
   * @see https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources
   */
  readResource(
    serverName: string,
    uri: string,
    options: OperationOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return partsOf(this).reads.readResource({ serverName, uri }, callerFor(options));
  }

  /**
   * Lists the prompts of a server, unparsed and untrusted; empty without prompts.
   * @throws {McpPolicyError} when the policy denies it (`mcp:list:<server>`), or a person did not
   * approve.
   * @throws {McpConnectionError} when the server does not answer.
   */
  listPrompts(serverName: string, options: OperationOptions = {}): Promise<readonly unknown[]> {
    return partsOf(this).reads.list(serverName, "prompts", callerFor(options));
  }

  /** Lists the resources of a server, like {@link listPrompts}. */
  listResources(serverName: string, options: OperationOptions = {}): Promise<readonly unknown[]> {
    return partsOf(this).reads.list(serverName, "resources", callerFor(options));
  }

  /** Lists the resource templates of a server, like {@link listPrompts}. */
  listResourceTemplates(
    serverName: string,
    options: OperationOptions = {},
  ): Promise<readonly unknown[]> {
    return partsOf(this).reads.list(serverName, "resourceTemplates", callerFor(options));
  }

  /**
   * Prompts as commands, for a user interface: those that the policy lets `context` invoke. Skips
   * servers that cannot be listed.
   * @param options - `servers`: only these. Default: all enabled ones.
   */
  listCommands(
    options: OperationOptions & { readonly servers?: readonly string[] } = {},
  ): Promise<McpCommand[]> {
    const { commands, settings } = partsOf(this);
    const enabled = [...settings.servers.values()].flatMap(({ serverName, enabled }) =>
      enabled ? [serverName] : [],
    );
    return commands.list(options.servers ?? enabled, callerFor(options));
  }

  /**
   * Completes an argument that is being typed; empty if the server offers no completions. Needs
   * permission to list, and for a prompt also to invoke it.
   * @param reference - The prompt, or the resource template by its `uriTemplate`.
   * @param argument - Its name, and what is typed so far.
   * @param options - `arguments`: those that are already known.
   * @throws {McpPolicyError} when the policy denies it, {@link McpProtocolError} when the server
   * refuses.
   * @see https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/completion
   */
  async completeArgument(
    serverName: string,
    reference: CompletionReference,
    argument: { readonly name: string; readonly value: string },
    options: OperationOptions & { readonly arguments?: Readonly<Record<string, string>> } = {},
  ): Promise<ArgumentCompletion> {
    const promptName = "promptName" in reference ? reference.promptName : undefined;
    const ref =
      "promptName" in reference
        ? { type: "ref/prompt", name: reference.promptName }
        : { type: "ref/resource", uri: reference.uriTemplate };
    const context =
      options.arguments === undefined ? {} : { context: { arguments: { ...options.arguments } } };
    const params = { ref, argument: { ...argument }, ...context };
    const { completion } = await partsOf(this).reads.complete(
      serverName,
      params,
      promptName,
      callerFor(options),
    );
    const { values, total, hasMore } = isRecord(completion) ? completion : {};
    const texts = Array.isArray(values)
      ? (values as unknown[]).filter((value) => typeof value === "string")
      : [];
    return {
      values: texts.slice(0, 100),
      ...(typeof total === "number" ? { total } : {}),
      hasMore: hasMore === true,
    };
  }

  /**
   * Subscribes to a resource: changes arrive as event `resourceUpdated` until {@link
   * unsubscribeResource}, also after a reconnect. Needs permission to read the resource.
   * @throws {McpPolicyError} when the policy denies it, {@link McpProtocolError} when the server
   * refuses.
   * @see https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions
   */
  async subscribeResource(
    serverName: string,
    uri: string,
    options: OperationOptions = {},
  ): Promise<void> {
    await partsOf(this).reads.subscription({ serverName, uri }, "subscribe", callerFor(options));
  }

  /** Ends {@link subscribeResource}. */
  async unsubscribeResource(
    serverName: string,
    uri: string,
    options: OperationOptions = {},
  ): Promise<void> {
    await partsOf(this).reads.subscription({ serverName, uri }, "unsubscribe", callerFor(options));
  }
}

export function callerFor({ context, signal, onAsk }: OperationOptions): Caller {
  return {
    context,
    signal,
    ...(onAsk === undefined ? {} : { ask: (asked) => askNow(asked, onAsk, { context, signal }) }),
  };
}
