// The SDK recommends McpServer, but it takes no JSON schemas.
/* eslint-disable @typescript-eslint/no-deprecated */
import { isDeepStrictEqual } from "node:util";

import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { McpMiddlewareError, messageOf } from "../../errors.js";
import {
  answerTo,
  toPromptResult,
  toResourceResult,
  toToolResult,
  type McpTestAnswer,
  type McpTestCall,
} from "./answers.js";
import type { McpRecording } from "./recording.js";

export interface McpTestScript {
  readonly answers: Readonly<Record<string, McpTestAnswer>>;
  readonly prompts: Readonly<Record<string, McpTestAnswer>>;
  readonly resources: Readonly<Record<string, McpTestAnswer>>;
}

/** A server in this process: offers a recording, gives scripted answers, reports calls. */
export class TestServer {
  readonly #serverName: string;
  readonly #script: McpTestScript;
  readonly #onCall: (kind: keyof McpTestScript, call: McpTestCall) => void;
  readonly #counts = new Map<string, number>();
  readonly #open = new Set<Server>();
  #recording: McpRecording;
  #isDown = false;

  constructor(
    serverName: string,
    recording: McpRecording,
    script: McpTestScript,
    onCall: (kind: keyof McpTestScript, call: McpTestCall) => void,
  ) {
    this.#serverName = serverName;
    this.#recording = recording;
    this.#script = script;
    this.#onCall = onCall;
  }

  /**
   * Replaces the recording, and announces other tools.
   * @returns How the hub learns of it at once.
   */
  async offer(recording: McpRecording): Promise<"nothing" | "refresh" | "reconnect"> {
    const before = this.#recording;
    this.#recording = recording;
    if (this.#open.size === 0) return "nothing";
    if (!isDeepStrictEqual({ ...before, tools: [] }, { ...recording, tools: [] }))
      return "reconnect";
    await Promise.all([...this.#open].map((server) => server.sendToolListChanged()));
    return "refresh";
  }

  /** Ends every connection and refuses new ones, or accepts them again. */
  async setDown(isDown: boolean): Promise<void> {
    this.#isDown = isDown;
    if (isDown) await Promise.all([...this.#open].map((server) => server.close()));
  }

  /** Makes a transport that is connected to this server. @throws while it is down. */
  async connect(): Promise<Transport> {
    if (this.#isDown) throw new Error(`the test server "${this.#serverName}" is down`);
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const server = this.#makeServer();
    this.#open.add(server);
    server.onclose = () => void this.#open.delete(server);
    await server.connect(theirs);
    return ours;
  }

  #makeServer(): Server {
    const { instructions, serverInfo } = this.#recording;
    const capabilities = this.#capabilities();
    const server = new Server(
      { name: this.#serverName, version: "0.0.0", ...serverInfo },
      { capabilities, ...(instructions === undefined ? {} : { instructions }) },
    );
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: this.#recording.tools }));
    server.setRequestHandler(
      CallToolRequestSchema,
      async ({ params }) => (await this.#callTool(params.name, params.arguments ?? {})) as never,
    );
    if (capabilities.prompts !== undefined) this.#servePrompts(server);
    if (capabilities.resources !== undefined) this.#serveResources(server);
    return server;
  }

  #capabilities() {
    const { prompts, resources, resourceTemplates } = this.#recording;
    const hasPrompts = prompts !== undefined || Object.keys(this.#script.prompts).length > 0;
    const hasResources =
      (resources ?? resourceTemplates) !== undefined ||
      Object.keys(this.#script.resources).length > 0;
    return {
      tools: { listChanged: true },
      ...(hasPrompts ? { prompts: {} } : {}),
      ...(hasResources ? { resources: {} } : {}),
    };
  }

  #servePrompts(server: Server): void {
    const { prompts } = this.#script;
    const names = Object.keys(prompts).map((name) => ({ name }));
    server.setRequestHandler(ListPromptsRequestSchema, () => ({
      prompts: this.#recording.prompts ?? names,
    }));
    server.setRequestHandler(
      GetPromptRequestSchema,
      async ({ params }) =>
        toPromptResult(
          await this.#refusable("prompts", params.name, params.arguments ?? {}),
        ) as never,
    );
  }

  #serveResources(server: Server): void {
    const uris = Object.keys(this.#script.resources).map((uri) => ({ uri, name: uri }));
    const listed = () => ({ resources: this.#recording.resources ?? uris }) as never;
    server.setRequestHandler(ListResourcesRequestSchema, listed);
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
      resourceTemplates: this.#recording.resourceTemplates ?? [],
    }));
    server.setRequestHandler(
      ReadResourceRequestSchema,
      async ({ params: { uri } }) =>
        toResourceResult(await this.#refusable("resources", uri, {}), uri) as never,
    );
  }

  async #callTool(toolName: string, args: Readonly<Record<string, unknown>>): Promise<object> {
    try {
      return toToolResult(await this.#answer("answers", toolName, args));
    } catch (error) {
      // A script's error is a failed tool's answer.
      return toToolResult(new Error(messageOf(error)));
    }
  }

  async #refusable(
    kind: keyof McpTestScript,
    target: string,
    args: Readonly<Record<string, unknown>>,
  ) {
    try {
      const value = await this.#answer(kind, target, args);
      if (value instanceof Error) throw value;
      return value;
    } catch (error) {
      if (error instanceof McpError || McpMiddlewareError.isInstance(error)) throw error;
      throw new McpError(ErrorCode.InvalidParams, messageOf(error));
    }
  }

  #answer(kind: keyof McpTestScript, target: string, args: Readonly<Record<string, unknown>>) {
    const key = `${kind}\n${target}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    const call: McpTestCall = { serverName: this.#serverName, target, arguments: args, count };
    this.#onCall(kind, call);
    const script = this.#script[kind];
    const answer = Object.hasOwn(script, target) ? script[target] : undefined;
    if (answer === undefined)
      throw new Error(
        `No answer is scripted for "${target}" of the test server "${this.#serverName}".`,
      );
    return answerTo(answer, call);
  }
}
