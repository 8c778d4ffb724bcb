import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, type AgentMiddleware } from "langchain";

import { McpHub, mcpMiddleware, type AskRequest, type McpAgentOptions, type McpHubOptions } from "../../src/index.js";
import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";
import { answersOf, scripted } from "./agents.js";

/** Tools of a governed server: the hints say what each does, the calls are counted. */
export const GOVERNED_TOOLS = [
  { name: "get_page", description: "Reads a page", annotations: { readOnlyHint: true } },
  { name: "put_page", description: "Writes a page", annotations: { destructiveHint: false } },
  { name: "drop_page", description: "Deletes a page", annotations: { destructiveHint: true } },
  { name: "drop_wiki", description: "Deletes everything", annotations: { destructiveHint: true } },
].map((tool) => ({ ...tool, inputSchema: { type: "object", properties: { page: { type: "string" } } } }));

/** Rules for them: reading is free, writing is asked, the wiki is not dropped. */
export const RULES: Partial<McpHubOptions> & { readonly server?: object } = {
  policy: { deny: ["mcp:call:wiki:drop_wiki"], ask: ["mcp:call:wiki:put_*", "mcp:call:wiki:drop_page"] },
};

/** A hub with a policy on a server that counts. */
export interface Governed extends AsyncDisposable {
  readonly hub: McpHub;
  readonly http: HttpFixture;
  /** How often each tool ran, by raw name. */
  readonly ran: Record<string, number>;
}

/** Starts the server and makes the hub. */
export async function governed(options: Partial<McpHubOptions> & { readonly server?: object } = RULES): Promise<Governed> {
  const { server = {}, ...rest } = options;
  const http = await serveHttp({ name: "wiki", noBase: true, tools: GOVERNED_TOOLS });
  const hub = new McpHub({
    mcpServers: { wiki: { url: http.url, trustAnnotations: true, ...server } },
    warnings: "silent",
    ...rest,
    timeouts: { startupDeadlineMs: 20_000 },
    limits: { autoDeferChars: 0 },
  });
  return {
    hub,
    http,
    ran: http.stats.callsByTool,
    [Symbol.asyncDispose]: async () => {
      await hub.close();
      await http.close();
    },
  };
}

/** Answers of a thread's turn: a result, or what a person is asked. */
export interface Turn {
  readonly asked: AskRequest | undefined;
  readonly interrupts: number;
  readonly answers: Record<string, { readonly text: string; readonly status: string | undefined }>;
  readonly last: string;
}

/** An agent with a scripted model, and its one thread. */
export function threadOf(
  hub: McpHub,
  answers: Parameters<typeof scripted>,
  more: {
    readonly options?: McpAgentOptions;
    readonly middleware?: (ours: AgentMiddleware) => AgentMiddleware[];
    readonly checkpointer?: unknown;
    readonly tools?: unknown[];
  } = {},
) {
  const ours = mcpMiddleware(hub, more.options) as unknown as AgentMiddleware;
  const model = scripted(...answers);
  const checkpointer = "checkpointer" in more ? more.checkpointer : new MemorySaver();
  const agent = createAgent({
    model,
    middleware: more.middleware?.(ours) ?? [ours],
    ...(more.tools === undefined ? {} : { tools: more.tools }),
    ...(checkpointer === undefined ? {} : { checkpointer }),
  } as never);
  const config = { configurable: { thread_id: "1" } };
  const run = async (input: unknown, context?: object): Promise<Turn> => {
    const result = (await agent.invoke(
      input as never,
      { ...config, ...(context === undefined ? {} : { context }) } as never,
    )) as {
      messages: Parameters<typeof answersOf>[0];
      __interrupt__?: { value: AskRequest }[];
    };
    const interrupts = result.__interrupt__ ?? [];
    return {
      asked: interrupts[0]?.value,
      interrupts: interrupts.length,
      answers: Object.fromEntries(
        Object.entries(answersOf(result.messages)).map(([id, { text, status }]) => [id, { text, status }]),
      ),
      last: result.messages.at(-1)?.text ?? "",
    };
  };
  return {
    model,
    agent,
    config,
    say: (text = "go", context?: object) => run({ messages: text, ...{} }, context),
    send: run,
    answer: (decisions: unknown, context?: object) => run(new Command({ resume: { decisions } }), context),
  };
}
