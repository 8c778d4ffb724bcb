import { plainJson } from "../call/callArguments.js";
import type { Caller } from "../call/permits.js";
import type { CallOutcome } from "../call/result.js";
import type { ToolChange } from "../catalog/toolFingerprints.js";
import type { OnAsk } from "../config/askSchema.js";
import { isRecord } from "../text/isRecord.js";
import type { McpRunContext } from "../config/policyOptions.js";
import type { HubSettings } from "../config/settings.js";
import type { McpConsents } from "../connect/stdio/consents.js";
import { McpConfigError } from "../errors.js";
import type { HubParts } from "./hubParts.js";
import type { McpCommand } from "../input/commands.js";

/** Who an operation of the hub is for, and how a person is asked when the policy says so. */
export interface OperationOptions {
  /** What policy, scopes and workspaces are decided for. Default: nobody in particular. */
  readonly context?: McpRunContext;
  readonly signal?: AbortSignal;
  /** Asks a person. Without it an operation that has to be asked is refused. */
  readonly onAsk?: OnAsk;
}

/** What is completed: an argument of a prompt, or a variable of a resource template. */
export type CompletionReference = { readonly promptName: string } | { readonly uriTemplate: string };

/** How what is typed could go on. Untrusted. */
export interface ArgumentCompletion {
  /** At most 100, the likeliest first. */
  readonly values: readonly string[];
  /** How many there are, when the server says so. */
  readonly total?: number;
  /** Whether there are more. */
  readonly hasMore: boolean;
}

/** What a program can do with the servers of a hub. All of it passes the gate. */
export abstract class HubOperations {
  readonly #settings: HubSettings;
  readonly #parts: HubParts;

  /** @internal */
  constructor(settings: HubSettings, parts: HubParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  /**
   * Which programs people have approved, and which wait for them.
   *
   * @throws {McpConfigError} for a hub without the option `consent`.
   */
  get consents(): McpConsents {
    const { consents } = this.#parts;
    if (consents !== undefined) return consents;
    throw new McpConfigError('This hub asks nobody about programs. Make it with the option consent: { store: "…" }.');
  }

  /** @internal The same; `undefined` for a hub without the option. */
  get programs(): McpConsents | undefined {
    return this.#parts.consents;
  }

  /** Tools that are not what they were when they were seen first, and that nobody has accepted (option `toolFingerprints`). */
  toolChanges(): ToolChange[] {
    return this.#parts.fingerprints.changes();
  }

  /**
   * Takes tools of a server as they are now; those that were withheld are offered again.
   *
   * @param toolNames - The server's own names. Default: all that changed.
   * @throws {McpNotFoundError} for a server that is not configured.
   */
  async acceptTools(serverName: string, toolNames?: readonly string[]): Promise<void> {
    const connection = this.#parts.pool.connection(serverName);
    this.#parts.fingerprints.accept(serverName, toolNames);
    await this.#parts.fingerprints.settled();
    if (this.#settings.toolFingerprints.onChange === "deny" && connection.state.kind === "connected") await connection.refresh();
  }

  /**
   * Calls a tool through the gate.
   *
   * @param args - Repaired and checked as those of a model are.
   * @throws {McpPolicyError} when the policy denies it, or a person has to be asked and did not approve.
   * @throws {McpNotFoundError} for an unknown server or tool.
   * @throws {McpProtocolError} when the arguments do not fit or the server refuses the call.
   * @throws {McpConnectionError} when the server cannot be reached or does not answer.
   */
  async callTool(serverName: string, toolName: string, args: unknown = {}, options: OperationOptions = {}): Promise<CallOutcome> {
    return this.#parts.gate.call({ ...callerOf(options), serverName, toolName, arguments: plainJson(args) });
  }

  /**
   * Gets a prompt of a server, as the server sends it. Untrusted.
   *
   * @throws {McpPolicyError} when the policy denies it (`mcp:invoke:<server>:<prompt>`), or a person did not approve.
   * @throws {McpProtocolError} when the server refuses, {@link McpConnectionError} when it does not answer.
   * @see https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#getting-a-prompt
   */
  getPrompt(
    serverName: string,
    promptName: string,
    args: Readonly<Record<string, string>> = {},
    options: OperationOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#parts.requests.getPrompt({ ...callerOf(options), serverName, promptName, arguments: args });
  }

  /**
   * Reads a resource of a server, as the server sends it. Untrusted.
   *
   * @throws {McpPolicyError} when the policy denies it (`mcp:read:<server>:<uri>`), or a person did not approve.
   * @throws {McpProtocolError} when the server refuses, {@link McpConnectionError} when it does not answer.
   * @see https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources
   */
  readResource(serverName: string, uri: string, options: OperationOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    return this.#parts.requests.readResource({ ...callerOf(options), serverName, uri });
  }

  /**
   * Lists the prompts of a server, unread and untrusted; empty for a server that has none.
   *
   * @throws {McpPolicyError} when the policy denies it (`mcp:list:<server>`), or a person did not approve.
   * @throws {McpConnectionError} when the server does not answer.
   */
  listPrompts(serverName: string, options: OperationOptions = {}): Promise<readonly unknown[]> {
    return this.#parts.requests.list({ ...callerOf(options), serverName, key: "prompts" });
  }

  /** Lists the resources of a server, as {@link listPrompts} does its prompts. */
  listResources(serverName: string, options: OperationOptions = {}): Promise<readonly unknown[]> {
    return this.#parts.requests.list({ ...callerOf(options), serverName, key: "resources" });
  }

  /** Lists the resource templates of a server, as {@link listPrompts} does its prompts. */
  listResourceTemplates(serverName: string, options: OperationOptions = {}): Promise<readonly unknown[]> {
    return this.#parts.requests.list({ ...callerOf(options), serverName, key: "resourceTemplates" });
  }

  /**
   * The prompts of servers as commands, for a user interface: those that the policy lets `context` invoke. A server that
   * cannot be reached, or may not be listed, has none.
   *
   * @param options - `servers`: of these alone. Default: all that are enabled.
   */
  listCommands(options: OperationOptions & { readonly servers?: readonly string[] } = {}): Promise<McpCommand[]> {
    const enabled = [...this.#settings.servers.values()].flatMap(({ serverName, enabled }) => (enabled ? [serverName] : []));
    return this.#parts.commands.list(options.servers ?? enabled, callerOf(options));
  }

  /**
   * Asks a server how an argument that is being typed could go on. Nothing is suggested by a server that does not offer
   * this. The permission is that of listing; what may not be invoked is not completed either.
   *
   * @param reference - The prompt, or the resource template by its `uriTemplate`.
   * @param argument - Its name, and what is typed so far.
   * @param options - `arguments`: those that are already known.
   * @throws {McpPolicyError} when the policy denies it, {@link McpProtocolError} when the server refuses.
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
    const context = options.arguments === undefined ? {} : { context: { arguments: { ...options.arguments } } };
    const params = { ref, argument: { ...argument }, ...context };
    const { completion } = await this.#parts.requests.complete({ ...callerOf(options), serverName, promptName, params });
    const { values, total, hasMore } = isRecord(completion) ? completion : {};
    const texts = Array.isArray(values) ? (values as unknown[]).filter((value) => typeof value === "string") : [];
    return { values: texts.slice(0, 100), ...(typeof total === "number" ? { total } : {}), hasMore: hasMore === true };
  }

  /**
   * Has a server tell of changes of a resource, by the event `resourceUpdated`, until {@link unsubscribeResource}; also
   * after a reconnect. The permission is that of reading it.
   *
   * @throws {McpPolicyError} when the policy denies it, {@link McpProtocolError} when the server refuses.
   * @see https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions
   */
  async subscribeResource(serverName: string, uri: string, options: OperationOptions = {}): Promise<void> {
    await this.#parts.requests.subscription({ ...callerOf(options), serverName, uri, change: "subscribe" });
  }

  /** Ends {@link subscribeResource}. */
  async unsubscribeResource(serverName: string, uri: string, options: OperationOptions = {}): Promise<void> {
    await this.#parts.requests.subscription({ ...callerOf(options), serverName, uri, change: "unsubscribe" });
  }
}

/** Only what a caller may say: an approval is not. */
function callerOf({ context, signal, onAsk }: OperationOptions): Caller {
  return { context, signal, onAsk };
}
