import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
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
import { mcpMiddleware, type AskRequest, type McpAgentOptions, type McpHub, type WrappableClient } from "../../src/index.js";
import { scripted } from "./agents.js";

/** One turn of a conversation, whatever the agent is made of. */
export interface FaceTurn {
  readonly messages: readonly BaseMessage[];
  /** Answers of tools by call id. */
  readonly answers: Readonly<Record<string, ToolMessage>>;
  readonly last: string;
  /** What a person was asked. */
  readonly asked: AskRequest | undefined;
}

/** A conversation. `decide` answers what is asked. */
export interface Face {
  readonly say: (text: string, decide?: (request: AskRequest) => unknown[]) => Promise<FaceTurn>;
  /** What the model was sent, call by call. */
  readonly sent: readonly (readonly BaseMessage[])[];
}

type Answers = readonly (AIMessage | string)[];
type MakeFace = (hub: McpHub | WrappableClient, answers: Answers, options?: McpAgentOptions) => Face;

/** The ways in. */
export const FACES: Readonly<Record<string, MakeFace>> = {
  createAgent: (hub, answers, options) =>
    overGraph(answers, (model, checkpointer) =>
      createAgent({ model, middleware: [mcpMiddleware(hub, options) as unknown as AgentMiddleware], checkpointer } as never),
    ),
  createMcpGraph: (hub, answers, options) =>
    overGraph(answers, (model, checkpointer) => createMcpGraph(hub, { ...options, model: model, checkpointer })),
  "nodes of a graph of one's own": (hub, answers, options) =>
    overGraph(answers, (model, checkpointer) => {
      const nodes = createMcpNodes(hub, { ...options, model: model });
      const state = new StateSchema({ messages: MessagesValue, ...mcpStateFields });
      return new StateGraph(state)
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
        .compile({ checkpointer });
    }),
  "nodes of a graph with annotations": (hub, answers, options) =>
    overGraph(answers, (model, checkpointer) => {
      const nodes = createMcpNodes(hub, { ...options, model });
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
        .compile({ checkpointer });
    }),
  createMcpSession: (hub, answers, options) => {
    const model = scripted(...answers, ...endless());
    let asked: AskRequest | undefined;
    let decide: ((request: AskRequest) => unknown[]) | undefined;
    const onAsk = (request: AskRequest) => {
      asked = request;
      return { decisions: (decide?.(request) ?? []) as never };
    };
    let state: object = {};
    let messages: BaseMessage[] = [];
    return {
      sent: sentTo(model),
      say: async (text, answer) => {
        asked = undefined;
        decide = answer;
        // Each turn in a session of its own: all it is goes through JSON.
        const session = createMcpSession(hub, { ...options, onAsk, state: JSON.parse(JSON.stringify(state)) as object });
        try {
          messages = await session.loop(model).invoke([...messages, new HumanMessage(text)]);
        } catch (error) {
          if (!McpStepLimitError.isInstance(error)) throw error;
          messages = error.messages as BaseMessage[];
        }
        state = session.state;
        return turnOf(messages, asked);
      },
    };
  },
};

interface RunnableGraph {
  invoke: (input: never, config: never) => Promise<unknown>;
}

function overGraph(answers: Answers, make: (model: ReturnType<typeof scripted>, checkpointer: MemorySaver) => unknown): Face {
  const model = scripted(...answers, ...endless());
  const graph = make(model, new MemorySaver()) as RunnableGraph;
  const config = { configurable: { thread_id: "1" }, recursionLimit: 100 };
  return {
    sent: sentTo(model),
    say: async (text, decide) => {
      type Result = { messages: BaseMessage[]; __interrupt__?: { value: AskRequest }[] };
      let result = (await graph.invoke({ messages: [new HumanMessage(text)] } as never, config as never)) as Result;
      const asked = result.__interrupt__?.[0]?.value;
      const decisions = asked === undefined ? undefined : decide?.(asked);
      // Without answers the question is left open.
      if (decisions !== undefined && decisions.length > 0) {
        result = (await graph.invoke(new Command({ resume: { decisions } }) as never, config as never)) as Result;
      }
      return turnOf(result.messages, asked);
    },
  };
}

function endless(): string[] {
  return Array.from({ length: 20 }, () => "ok");
}

function sentTo(model: ReturnType<typeof scripted>): (readonly BaseMessage[])[] {
  return new Proxy([], {
    get: (_target, key) =>
      Reflect.get(
        model.calls.map(({ messages }) => messages),
        key,
      ) as unknown,
  });
}

function turnOf(messages: readonly BaseMessage[], asked: AskRequest | undefined): FaceTurn {
  const answers = messages.filter((message) => ToolMessage.isInstance(message));
  return {
    messages,
    answers: Object.fromEntries(answers.map((message) => [message.tool_call_id, message])),
    last: messages.at(-1)?.text ?? "",
    asked,
  };
}
