import {
  AIMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  type BaseMessage,
} from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import {
  Annotation,
  Command,
  END,
  MemorySaver,
  MessagesAnnotation,
  MessagesValue,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { createAgent, type AgentMiddleware } from "langchain";

import { createMcpSession, McpStepLimitError } from "../../src/chain.js";
import { createMcpGraph, createMcpNodes, mcpAnnotation, mcpStateFields } from "../../src/graph.js";
import {
  mcpMiddleware,
  type AskRequest,
  type McpAgentOptions,
  type McpHub,
  type WrappableClient,
} from "../../src/index.js";
import type { SeenCall } from "./agents.js";

type Model = ReturnType<typeof fakeModel>;

/** Faces whose threads are those of a graph. */
export type GraphFace = keyof typeof GRAPHS;
export type Face = GraphFace | "createMcpSession";

/** One turn: what the model was sent, what a person was asked, what came of it. */
export interface Turn {
  /** The model calls of this turn. */
  readonly calls: readonly SeenCall[];
  /** Resource blocks of the last model call of this turn. */
  readonly blocks: readonly string[];
  readonly asked: AskRequest | undefined;
  readonly interrupts: number;
  readonly messages: readonly BaseMessage[];
  /** Answers of tools by call id. */
  readonly answers: Readonly<
    Record<string, { readonly text: string; readonly status: string | undefined }>
  >;
  readonly last: string;
}

export interface SayOptions {
  /** Context of the run. */
  readonly context?: object;
  /** Answers what is asked; without it, or with no answers, the question is left open. */
  readonly decide?: (request: AskRequest) => readonly unknown[];
}

/** A conversation on any face. */
export interface Conversation {
  readonly say: (text?: string, options?: SayOptions) => Promise<Turn>;
  /** The model calls so far. */
  readonly seen: readonly SeenCall[];
  /** The thread's state, private keys included. */
  readonly state: () => Promise<Record<string, unknown>>;
}

/** A conversation in a graph, which can also be given any input, and answers later. */
export interface GraphConversation extends Conversation {
  readonly run: (input: unknown, options?: SayOptions) => Promise<Turn>;
  readonly answer: (decisions: readonly unknown[], options?: SayOptions) => Promise<Turn>;
}

export interface ConversationSetup {
  /** Default: `createAgent`. */
  readonly face?: Face;
  readonly options?: McpAgentOptions;
  /** `false`: none. Not used by a session. */
  readonly checkpointer?: unknown;
  /** The middleware of `createAgent`. Default: ours alone. */
  readonly middleware?: (ours: AgentMiddleware) => AgentMiddleware[];
  /** Tools of `createAgent` itself. */
  readonly tools?: readonly unknown[];
}

type Hub = McpHub | WrappableClient;
type Answers = readonly (AIMessage | string)[];

/** A conversation with an agent whose model gives these answers, then "ok". */
export function converse(
  hub: Hub,
  answers?: Answers,
  setup?: ConversationSetup & { readonly face?: GraphFace },
): GraphConversation;
export function converse(hub: Hub, answers: Answers, setup: ConversationSetup): Conversation;
export function converse(
  hub: Hub,
  answers: Answers = [],
  setup: ConversationSetup = {},
): Conversation {
  const { face = "createAgent" } = setup;
  const { model, seen } = watchedModel(answers);
  return face === "createMcpSession"
    ? inSession(hub, model, seen, setup)
    : inGraph(GRAPHS[face](hub, model, setup), seen);
}

interface Result {
  readonly messages: readonly BaseMessage[];
  readonly __interrupt__?: readonly { readonly value: AskRequest }[];
}

interface Graph {
  invoke: (input: unknown, config: object) => Promise<Result>;
  getState: (config: object) => Promise<{ values: Record<string, unknown> }>;
}

function inGraph(graph: Graph, seen: readonly SeenCall[]): GraphConversation {
  const config = { configurable: { thread_id: "1" }, recursionLimit: 100 };
  const run: GraphConversation["run"] = async (input, { context, decide } = {}) => {
    const before = seen.length;
    const configOfRun = { ...config, ...(context === undefined ? {} : { context }) };
    let result = await graph.invoke(input, configOfRun);
    const interrupts = result.__interrupt__ ?? [];
    const asked = interrupts[0]?.value;
    const decisions = asked === undefined ? [] : (decide?.(asked) ?? []);
    if (decisions.length > 0)
      result = await graph.invoke(new Command({ resume: { decisions } }), configOfRun);
    return turnOf(result.messages, seen.slice(before), asked, interrupts.length);
  };
  return {
    seen,
    run,
    say: (text = "go", options) => run({ messages: [new HumanMessage(text)] }, options),
    answer: (decisions, options) => run(new Command({ resume: { decisions } }), options),
    state: async () => (await graph.getState(config)).values,
  };
}

/** Each turn in a session of its own: all that the next one has went through JSON. */
function inSession(
  hub: Hub,
  model: Model,
  seen: readonly SeenCall[],
  { options }: ConversationSetup,
): Conversation {
  let state: object = {};
  let messages: BaseMessage[] = [];
  return {
    seen,
    state: async () => ({ ...state }),
    say: async (text = "go", { decide } = {}) => {
      const before = seen.length;
      const asked: AskRequest[] = [];
      const onAsk = (request: AskRequest) => {
        asked.push(request);
        return { decisions: (decide?.(request) ?? []) as never };
      };
      const session = createMcpSession(hub, {
        ...options,
        onAsk,
        state: JSON.parse(JSON.stringify(state)) as object,
      });
      try {
        messages = await session.loop(model).invoke([...messages, new HumanMessage(text)]);
      } catch (error) {
        if (!McpStepLimitError.isInstance(error)) throw error;
        messages = error.messages as BaseMessage[];
      }
      state = session.state;
      return turnOf(messages, seen.slice(before), asked.at(-1), asked.length);
    },
  };
}

/** Makes the graph of each face. */
const GRAPHS = {
  createAgent: (hub: Hub, model: Model, setup: ConversationSetup): Graph => {
    const ours = mcpMiddleware(hub, setup.options) as unknown as AgentMiddleware;
    const middleware = setup.middleware?.(ours) ?? [ours];
    const { tools = [] } = setup;
    const { graph } = createAgent({ model, middleware, tools, ...saverOf(setup) } as never);
    return graph as unknown as Graph;
  },
  createMcpGraph: (hub: Hub, model: Model, setup: ConversationSetup): Graph =>
    createMcpGraph(hub, { ...setup.options, model, ...saverOf(setup) }) as unknown as Graph,
  "nodes of a graph with StateSchema": (
    hub: Hub,
    model: Model,
    setup: ConversationSetup,
  ): Graph => {
    const nodes = createMcpNodes(hub, { ...setup.options, model });
    return new StateGraph(new StateSchema({ messages: MessagesValue, ...mcpStateFields }))
      .addNode("input", nodes.input)
      .addNode("callModel", async (now, config) => {
        const request = await nodes.prepareModelCall(now, config);
        const { systemMessage, messages, tools } = request;
        const input = systemMessage === undefined ? messages : [systemMessage, ...messages];
        const answer = await model.bindTools(tools as never).invoke(input, config);
        if (!AIMessage.isInstance(answer)) throw new Error("no answer");
        // The guard narrows to another structure of the same class.
        // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
        return { ...request.update, ...(await request.complete(answer)), messages: [answer] };
      })
      .addNode("policy", nodes.policy)
      .addNode("tools", nodes.tools)
      .addEdge(START, "input")
      .addConditionalEdges("input", nodes.afterInput, ["callModel", "policy", END])
      .addConditionalEdges("callModel", nodes.afterModel, ["policy", END])
      .addConditionalEdges("policy", nodes.afterPolicy, ["tools", "callModel", END])
      .addEdge("tools", "callModel")
      .compile(saverOf(setup)) as unknown as Graph;
  },
  "nodes of a graph with Annotation": (hub: Hub, model: Model, setup: ConversationSetup): Graph => {
    const nodes = createMcpNodes(hub, { ...setup.options, model });
    return new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, ...mcpAnnotation.spec }))
      .addNode("input", nodes.input)
      .addNode("callModel", nodes.callModel)
      .addNode("policy", nodes.policy)
      .addNode("tools", nodes.tools)
      .addEdge(START, "input")
      .addConditionalEdges("input", nodes.afterInput, ["callModel", "policy", END])
      .addConditionalEdges("callModel", nodes.afterModel, ["policy", END])
      .addConditionalEdges("policy", nodes.afterPolicy, ["tools", "callModel", END])
      .addEdge("tools", "callModel")
      .compile(saverOf(setup)) as unknown as Graph;
  },
};

/** The faces, for `describe.each`. */
export const FACES: readonly Face[] = [...(Object.keys(GRAPHS) as GraphFace[]), "createMcpSession"];

function saverOf({ checkpointer = new MemorySaver() }: ConversationSetup): {
  checkpointer?: never;
} {
  return checkpointer === false ? {} : { checkpointer: checkpointer as never };
}

/** A scripted model that writes down what each call was given. */
function watchedModel(answers: Answers): {
  readonly model: Model;
  readonly seen: readonly SeenCall[];
} {
  const model = fakeModel();
  const seen: SeenCall[] = [];
  let tools: string[] = [];
  const bindTools = model.bindTools.bind(model);
  model.bindTools = (given) => {
    tools = given.map((tool) => String((tool as { readonly name?: unknown }).name));
    return bindTools(given);
  };
  for (const answer of [...answers, ...Array.from({ length: 20 }, () => "ok")]) {
    model.respond((messages) => {
      seen.push(seenCall(messages, tools));
      // A call without tools binds none.
      tools = [];
      return typeof answer === "string" ? new AIMessage(answer) : answer;
    });
  }
  return { model, seen };
}

function seenCall([first, ...rest]: readonly BaseMessage[], tools: readonly string[]): SeenCall {
  const system = first !== undefined && SystemMessage.isInstance(first) ? first : undefined;
  const content = system?.content ?? "";
  return {
    system: system?.text ?? "",
    blocks:
      typeof content === "string"
        ? [content]
        : content.map((block) => ("text" in block ? String(block["text"]) : "")),
    tools,
    messages: system === undefined && first !== undefined ? [first, ...rest] : rest,
  };
}

function turnOf(
  messages: readonly BaseMessage[],
  calls: readonly SeenCall[],
  asked: AskRequest | undefined,
  interrupts: number,
): Turn {
  const answers = messages.filter((message) => ToolMessage.isInstance(message));
  const blocks = (calls.at(-1)?.blocks ?? []).map((block) => block.trim());
  return {
    calls,
    blocks: blocks.filter((block) => block.startsWith("<MCP_RESOURCE ")),
    asked,
    interrupts,
    messages,
    answers: Object.fromEntries(
      answers.map(({ tool_call_id, text, status }) => [tool_call_id, { text, status }]),
    ),
    last: messages.at(-1)?.text ?? "",
  };
}
