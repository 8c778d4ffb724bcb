import { McpConfigError } from "../../errors.js";
import type { McpHubOptions } from "../../config/hubOptions.js";
import { isRecord } from "../../text/isRecord.js";
import { nearest } from "../../text/nearest.js";
import type { McpServerEntry } from "../../config/serverOptions.js";
import { McpHub } from "../../hub/mcpHub.js";
import type { McpTestAnswer, McpTestCall } from "./answers.js";
import type { McpRecording } from "./recording.js";
import { TestServer, type McpTestScript } from "./testServer.js";

/**
 * One server of a test hub: its recording, its answers, and server options other than transport.
 */
export interface McpTestServerEntry extends Omit<
  McpServerEntry,
  | "command"
  | "args"
  | "env"
  | "cwd"
  | "url"
  | "headers"
  | "auth"
  | "authProvider"
  | "createTransport"
  | "client"
> {
  /** Its recording: from {@link recordMcpServers}, `hub.snapshot(name)`, or written by hand. */
  readonly recording: McpRecording;
  /** Answers of tools by raw name; a tool without one returns an error. Default: none. */
  readonly answers?: Readonly<Record<string, McpTestAnswer>>;
  /** Answers of prompts by name; text becomes a user message. Default: none. */
  readonly prompts?: Readonly<Record<string, McpTestAnswer>>;
  /** Contents of resources by URI. Default: none. */
  readonly resources?: Readonly<Record<string, McpTestAnswer>>;
}

/** Options of {@link createMcpTestHub}. */
export interface McpTestHubOptions extends Omit<McpHubOptions, "mcpServers"> {
  readonly mcpServers: Readonly<Record<string, McpTestServerEntry>>;
}

/** A call that reached a test server. */
export interface McpTestHubCall extends McpTestCall {
  readonly kind: "tool" | "prompt" | "resource";
}

const NOTHING = {} as McpTestServerEntry;
const KINDS = { answers: "tool", prompts: "prompt", resources: "resource" } as const;

/** A hub of recorded servers, with a log of calls. Close it with `close()` or `await using`. */
export class McpTestHub implements AsyncDisposable {
  /** The hub, for `mcpMiddleware` and the other faces. */
  readonly hub: McpHub;
  /** Calls that reached the servers, in order; denied and invalid ones are missing. */
  readonly calls: McpTestHubCall[];
  readonly #servers: ReadonlyMap<string, TestServer>;

  /** @internal Made by {@link createMcpTestHub}. */
  constructor(hub: McpHub, servers: ReadonlyMap<string, TestServer>, calls: McpTestHubCall[]) {
    this.hub = hub;
    this.#servers = servers;
    this.calls = calls;
  }

  /**
   * Replaces the recording of a server, and waits until the hub knows it. Announces other tools by
   * `list_changed`; reconnects for other prompts, resources and instructions.
   * @throws {McpConfigError} for a recording without tools.
   */
  async offer(serverName: string, recording: McpRecording): Promise<void> {
    checkScript(serverName, recording, {});
    const next = await this.#server(serverName).offer(recording);
    if (next === "refresh") await this.hub.refresh(serverName);
    if (next === "reconnect") await this.hub.reconnect(serverName);
  }

  /** Ends a server's connections and refuses new ones until {@link restore}. */
  async fail(serverName: string): Promise<void> {
    await this.#server(serverName).setDown(true);
  }

  /** Makes a server reachable again, and reconnects it. */
  async restore(serverName: string): Promise<void> {
    await this.#server(serverName).setDown(false);
    await this.hub.reconnect(serverName);
  }

  close(): Promise<void> {
    return this.hub.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #server(serverName: string): TestServer {
    const server = this.#servers.get(serverName);
    if (server !== undefined) return server;
    throw new McpConfigError(
      `The test hub has no server "${serverName}". It has: ${[...this.#servers.keys()].join(", ")}.`,
    );
  }
}

/**
 * Makes a hub for tests of agents: servers are recordings in this process, with scripted answers.
 * Names, listing, search, policy, validation and results are those of a real hub.
 * @throws {McpConfigError} for wrong options, and for an answer of a tool that the recording does
 * not have.
 * @example await using test = createMcpTestHub({ mcpServers: { tracker: { recording:
 * recorded.tracker, answers: { create_issue: "Created #7" } } }, }); const agent = createAgent({
 * model, middleware: [mcpMiddleware(test.hub)] });
 */
export function createMcpTestHub(given: McpTestHubOptions): McpTestHub {
  const { mcpServers, ...options } = isRecord(given) ? given : ({} as McpTestHubOptions);
  if (!isRecord(mcpServers)) {
    throw new McpConfigError(
      'createMcpTestHub: give "mcpServers", such as { tracker: { recording, answers } }.',
    );
  }
  const calls: McpTestHubCall[] = [];
  const servers = new Map<string, TestServer>();
  const entries: Record<string, McpServerEntry> = {};
  for (const [serverName, options] of Object.entries(mcpServers)) {
    const {
      recording,
      answers = {},
      prompts = {},
      resources = {},
      ...entry
    } = (options as typeof options | null) ?? NOTHING;
    checkScript(serverName, recording, answers);
    const script: McpTestScript = { answers, prompts, resources };
    const server = new TestServer(serverName, recording, script, (kind, call) =>
      calls.push({ kind: KINDS[kind], ...call }),
    );
    servers.set(serverName, server);
    entries[serverName] = { ...entry, createTransport: () => server.connect() };
  }
  return new McpTestHub(new McpHub({ ...options, mcpServers: entries }), servers, calls);
}

function checkScript(
  serverName: string,
  recording: unknown,
  answers: Readonly<Record<string, McpTestAnswer>>,
): void {
  const tools: unknown = isRecord(recording) ? recording["tools"] : undefined;
  if (!Array.isArray(tools) || !tools.every(isRecord)) {
    throw new McpConfigError(
      `Test server "${serverName}": "recording" needs "tools", an array as the server lists them.`,
      {
        serverName,
      },
    );
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
