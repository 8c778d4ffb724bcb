import { McpConfigError } from "../../errors.js";
import type { McpHubOptions } from "../../config/hubOptions.js";
import { isRecord } from "../../text/isRecord.js";
import { nearest } from "../../text/nearest.js";
import type { McpServerEntry } from "../../config/serverOptions.js";
import { McpHub } from "../../hub/mcpHub.js";
import type { McpTestAnswer, McpTestCall } from "./answers.js";
import type { McpRecording } from "./recording.js";
import { TestServer, type McpTestScript } from "./testServer.js";

/** One server of a test hub: what it offers, what it answers, and any option of a server entry but how it is reached. */
export interface McpTestServerEntry extends Omit<
  McpServerEntry,
  "command" | "args" | "env" | "cwd" | "url" | "headers" | "auth" | "authProvider" | "createTransport" | "client"
> {
  /** What it offers: from {@link recordMcpServers}, `hub.snapshot(name)`, or written by hand. */
  readonly recording: McpRecording;
  /** Answers of tools, by raw name. A tool without one answers with an error that says so. Default: none. */
  readonly answers?: Readonly<Record<string, McpTestAnswer>>;
  /** Answers of prompts, by name: a text is a message of the user. Default: none. */
  readonly prompts?: Readonly<Record<string, McpTestAnswer>>;
  /** Contents of resources, by URI. Default: none. */
  readonly resources?: Readonly<Record<string, McpTestAnswer>>;
}

/** Options of {@link createMcpTestHub}: those of a hub, with servers that are recorded and scripted. */
export interface McpTestHubOptions extends Omit<McpHubOptions, "mcpServers"> {
  readonly mcpServers: Readonly<Record<string, McpTestServerEntry>>;
}

/** A call that reached a test server. */
export interface McpTestHubCall extends McpTestCall {
  readonly kind: "tool" | "prompt" | "resource";
}

const NOTHING = {} as McpTestServerEntry;
const KINDS = { answers: "tool", prompts: "prompt", resources: "resource" } as const;

/** A hub without servers, and what its agents did. Close it with `close()` or `await using`. */
export class McpTestHub implements AsyncDisposable {
  /** The hub, for `mcpMiddleware` and the like. */
  readonly hub: McpHub;
  /** What reached the servers, in order: what was refused, denied or did not fit is not there. */
  readonly calls: McpTestHubCall[];
  readonly #servers: ReadonlyMap<string, TestServer>;

  /** @internal Made by {@link createMcpTestHub}. */
  constructor(hub: McpHub, servers: ReadonlyMap<string, TestServer>, calls: McpTestHubCall[]) {
    this.hub = hub;
    this.#servers = servers;
    this.calls = calls;
  }

  /**
   * Has a server offer something else from now on. Other tools are announced (`list_changed`), and the hub has listed them
   * after this; for other prompts, resources and instructions it connects anew.
   *
   * @throws {McpConfigError} for a recording without tools.
   */
  async offer(serverName: string, recording: McpRecording): Promise<void> {
    checkScript(serverName, recording, {});
    const next = await this.#server(serverName).offer(recording);
    if (next === "refresh") await this.hub.refresh(serverName);
    if (next === "reconnect") await this.hub.reconnect(serverName);
  }

  /** Ends the connections of a server; until {@link restore} it cannot be reached. */
  async fail(serverName: string): Promise<void> {
    await this.#server(serverName).setDown(true);
  }

  /** Lets a server be reached again, and opens it. */
  async restore(serverName: string): Promise<void> {
    await this.#server(serverName).setDown(false);
    await this.hub.reconnect(serverName);
  }

  /** Closes the hub. */
  close(): Promise<void> {
    return this.hub.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #server(serverName: string): TestServer {
    const server = this.#servers.get(serverName);
    if (server !== undefined) return server;
    throw new McpConfigError(`The test hub has no server "${serverName}". It has: ${[...this.#servers.keys()].join(", ")}.`);
  }
}

/**
 * A hub for tests of agents: its servers are recordings in this process, with scripted answers. Names, listing, search,
 * policy, checks of arguments and results are those of the real thing.
 *
 * @throws {McpConfigError} for wrong options, and for an answer of a tool that the recording does not have.
 * @example
 * await using test = createMcpTestHub({
 *   mcpServers: { tracker: { recording: recorded.tracker, answers: { create_issue: "Created #7" } } },
 * });
 * const agent = createAgent({ model, middleware: [mcpMiddleware(test.hub)] });
 */
export function createMcpTestHub(given: McpTestHubOptions): McpTestHub {
  const { mcpServers, ...options } = isRecord(given) ? given : ({} as McpTestHubOptions);
  if (!isRecord(mcpServers)) {
    throw new McpConfigError('createMcpTestHub: give "mcpServers", such as { tracker: { recording, answers } }.');
  }
  const calls: McpTestHubCall[] = [];
  const servers = new Map<string, TestServer>();
  const entries: Record<string, McpServerEntry> = {};
  for (const [serverName, options] of Object.entries(mcpServers)) {
    const { recording, answers = {}, prompts = {}, resources = {}, ...entry } = (options as typeof options | null) ?? NOTHING;
    checkScript(serverName, recording, answers);
    const script: McpTestScript = { answers, prompts, resources };
    const server = new TestServer(serverName, recording, script, (kind, call) => calls.push({ kind: KINDS[kind], ...call }));
    servers.set(serverName, server);
    entries[serverName] = { ...entry, createTransport: () => server.connect() };
  }
  return new McpTestHub(new McpHub({ ...options, mcpServers: entries }), servers, calls);
}

function checkScript(serverName: string, recording: unknown, answers: Readonly<Record<string, McpTestAnswer>>): void {
  const tools: unknown = isRecord(recording) ? recording["tools"] : undefined;
  if (!Array.isArray(tools) || !tools.every(isRecord)) {
    throw new McpConfigError(`Test server "${serverName}": "recording" needs "tools", an array as the server lists them.`, {
      serverName,
    });
  }
  const names = (tools as { readonly name?: unknown }[]).map(({ name }) => String(name));
  for (const toolName of Object.keys(answers)) {
    if (names.includes(toolName)) continue;
    const guess = nearest(toolName, names);
    throw new McpConfigError(
      `Test server "${serverName}": "answers" has "${toolName}", which the recording does not have${guess === undefined ? "" : `, did you mean "${guess}"?`}.`,
      { serverName, toolName },
    );
  }
}
