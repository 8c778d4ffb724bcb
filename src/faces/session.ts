import { randomUUID } from "node:crypto";

import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  coerceMessageLikeToMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  AIMessage,
  type BaseMessage,
} from "@langchain/core/messages";
import { RunnableLambda, type Runnable, type RunnableConfig } from "@langchain/core/runnables";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { isCommand } from "@langchain/langgraph";

import { OwnTools } from "../agent/ownTools.js";
import { errorMessage } from "../call/failureText.js";
import type { RunContext, ToolCall } from "../agent/runContext.js";
import { isRecord } from "../text/isRecord.js";
import { parseAgentOptions, type McpAgentOptions } from "../config/agentOptions.js";
import type { McpRunContext } from "../config/policyOptions.js";
import type { WrappableClient } from "../connect/open/wrapped.js";
import { McpAgent } from "../agent/mcpAgent.js";
import { McpConfigError, McpStepLimitError } from "../errors.js";
import { hubOf, type McpHub } from "../hub/mcpHub.js";
import { callModel, prepareModelRequest, type ModelRequest } from "../agent/modelRequest.js";
import {
  EMPTY_ACTIVATION,
  mergeActivation,
  type McpStateUpdate,
  type McpThreadState,
} from "../state.js";

/** Options of {@link createMcpSession}. */
export interface McpSessionOptions extends McpAgentOptions {
  /** Your own tools. They win over MCP tools of the same name. */
  readonly ownTools?: readonly StructuredToolInterface[];
  /** Precedes the listing in the system message. */
  readonly systemPrompt?: string | SystemMessage;
  /** Context for policy, scopes and workspaces. Default: empty. */
  readonly context?: McpRunContext;
  /** `session.state` of an earlier session. Default: a new conversation. */
  readonly state?: McpThreadState;
}

/** Result of `session.begin()`. */
export interface McpTurn {
  /** The messages to continue with, each with an id. */
  readonly messages: BaseMessage[];
  /** Set when the person was answered without the model, by a command's usage for example. */
  readonly answer: AIMessage | undefined;
}

/** Text, or messages in any form that LangChain takes. */
export type McpSessionInput = string | BaseLanguageModelInput;

/**
 * One conversation of a LangChain chain, one turn at a time. You keep the messages; `state` is the
 * rest. There are no interrupts: `onAsk` asks a person, and without it calls that need approval are
 * refused.
 */
export class McpSession {
  readonly #agent: McpAgent;
  readonly #tools: OwnTools;
  readonly #systemPrompt: string | SystemMessage | undefined;
  readonly #context: McpRunContext | undefined;
  #state: McpThreadState;
  /** The last request, until its answer is reviewed. */
  #request: ModelRequest | undefined;

  /** @internal Made by {@link createMcpSession}. */
  constructor(hub: McpHub, options: McpSessionOptions) {
    const { ownTools = [], systemPrompt, context, state = {}, ...agentOptions } = options;
    this.#agent = new McpAgent(hub, parseAgentOptions(agentOptions, "createMcpSession options"));
    this.#tools = new OwnTools(this.#agent, ownTools);
    this.#systemPrompt = systemPrompt;
    this.#context = context;
    if (!isRecord(state)) {
      throw new McpConfigError(
        'createMcpSession: "state" has to be an object as session.state gave it.',
      );
    }
    this.#state = structuredClone(state);
  }

  /** State besides the messages. JSON: store it with them, and pass it to the next session. */
  get state(): McpThreadState {
    return structuredClone(this.#state);
  }

  /** Begins a turn: connects servers, takes mentions and commands of the newest human message. */
  async begin(input: McpSessionInput, config?: RunnableConfig): Promise<McpTurn> {
    return this.#turn(withIds(toMessages(input)), config);
  }

  /**
   * Returns system message, messages and tools for a model. Does not take typed input; see {@link
   * begin}.
   */
  async prepare(
    messages: readonly BaseMessage[],
    model?: unknown,
    config?: RunnableConfig,
  ): Promise<Omit<ModelRequest, "complete" | "update">> {
    const { systemMessage, messages: sent, tools } = await this.#prepared(messages, model, config);
    return { systemMessage, messages: sent, tools };
  }

  /**
   * Runs the tool calls of a model's answer concurrently. A failure becomes an answer of status
   * `error`.
   */
  async runTools(answer: AIMessage, config?: RunnableConfig): Promise<ToolMessage[]> {
    if (!AIMessage.isInstance(answer)) {
      throw new McpConfigError("session.runTools takes the AIMessage that a model answered with.");
    }
    this.#apply(await this.#request?.complete(answer));
    this.#request = undefined;
    this.#apply(await this.#agent.ask(this.#run(config), [answer], undefined));
    const run = this.#run(config);
    const outcomes = await Promise.all(
      (answer.tool_calls ?? []).map((call) => this.#runCall(call, run)),
    );
    for (const { update } of outcomes) this.#apply(update);
    return outcomes.map(({ message }) => message);
  }

  /**
   * Adds the listing and the resources to a prompt: `prompt.pipe(session.context()).pipe(model)`.
   * Does not take mentions and commands; {@link begin} and {@link model} do.
   */
  context(): Runnable<McpSessionInput, BaseMessage[]> {
    return RunnableLambda.from(async (input: McpSessionInput, config) => {
      const { systemMessage, messages } = await this.#prepared(
        toMessages(input),
        undefined,
        config,
      );
      return systemMessage === undefined ? [...messages] : [systemMessage, ...messages];
    });
  }

  /**
   * Calls the model with listing, resources and tools: `prompt.pipe(session.model(model))`. Takes
   * mentions and commands if the last message is human; returns the answer of a command that needs
   * no model.
   */
  model(model: BaseChatModel): Runnable<McpSessionInput, AIMessage> {
    return RunnableLambda.from(async (input: McpSessionInput, config) => {
      let messages = withIds(toMessages(input));
      if (HumanMessage.isInstance(messages.at(-1))) {
        const turn = await this.#turn(messages, config);
        if (turn.answer !== undefined) return turn.answer;
        messages = turn.messages;
      }
      return callModel(model, await this.#prepared(messages, model, config), this.#run(config));
    });
  }

  /** Runs the calls of an answer: `….pipe(session.model(model)).pipe(session.tools())`. */
  tools(): Runnable<AIMessage, ToolMessage[]> {
    return RunnableLambda.from((answer: AIMessage, config) => this.runTools(answer, config));
  }

  /**
   * Runs a whole tool-calling loop, and returns the messages of the turn, including the given ones.
   * @param options - `maxSteps`: most model calls, at least 1. Default 10.
   * @throws {McpStepLimitError} with the messages so far when the last one still calls tools.
   */
  loop(
    model: BaseChatModel,
    { maxSteps = 10 }: { readonly maxSteps?: number } = {},
  ): Runnable<McpSessionInput, BaseMessage[]> {
    if (!Number.isInteger(maxSteps) || maxSteps < 1) {
      throw new McpConfigError(
        `session.loop: "maxSteps" has to be a whole number of at least 1; ${String(maxSteps)} was given.`,
      );
    }
    return RunnableLambda.from(async (input: McpSessionInput, config) => {
      const { messages, answer: given } = await this.begin(input, config);
      if (given !== undefined) return messages;
      for (let step = 1; step <= maxSteps; step += 1) {
        const request = await this.#prepared(messages, model, config);
        const answer = await callModel(model, request, this.#run(config));
        const results = await this.runTools(answer, config);
        messages.push(...withIds([answer, ...results]));
        if (results.length === 0) return messages;
      }
      throw new McpStepLimitError(
        `The model still calls tools after ${maxSteps} steps. Raise "maxSteps", or go on with error.messages.`,
        messages,
      );
    });
  }

  async #turn(messages: BaseMessage[], config: RunnableConfig | undefined): Promise<McpTurn> {
    let turn = await this.#agent.start(this.#run(config), messages);
    this.#apply(turn.update);
    const asked = await this.#agent.answerTyped(this.#run(config), messages, undefined);
    if (asked !== undefined) {
      this.#apply(asked.update);
      turn = asked;
    }
    const all = withIds(replaced(messages, turn.messages));
    const last = all.at(-1);
    return {
      messages: all,
      answer: turn.isAnswered && AIMessage.isInstance(last) ? last : undefined,
    };
  }

  /** Prepares a request; a prompt's own system message replaces `systemPrompt`. */
  async #prepared(
    input: readonly BaseMessage[],
    model: unknown,
    config: RunnableConfig | undefined,
  ): Promise<ModelRequest> {
    const [first, ...rest] = input;
    const leading = first !== undefined && SystemMessage.isInstance(first) ? first : undefined;
    const messages = withIds(leading === undefined ? input : rest);
    const systemPrompt = leading ?? this.#systemPrompt;
    const request = await prepareModelRequest(
      this.#agent,
      this.#run(config),
      messages,
      this.#tools,
      { systemPrompt, model },
    );
    this.#apply(request.update);
    this.#request = request;
    return request;
  }

  async #runCall(
    call: ToolCall,
    run: RunContext,
  ): Promise<{ readonly message: ToolMessage; readonly update: McpStateUpdate | undefined }> {
    const { result, update } = await this.#tools.run(run, call);
    if (!isCommand(result)) return { message: result, update };
    return {
      message: errorMessage(
        call,
        `${call.name} answered with a Command, which only a graph can follow.`,
      ),
      update,
    };
  }

  #run(config: RunnableConfig | undefined): RunContext {
    return this.#agent.runOf(
      this.#state,
      config,
      this.#context === undefined ? {} : { context: this.#context },
    );
  }

  #apply(update: McpStateUpdate | undefined): void {
    if (update === undefined) return;
    const { mcpActivation = EMPTY_ACTIVATION } = this.#state;
    const merged =
      update.mcpActivation === undefined
        ? {}
        : { mcpActivation: mergeActivation(mcpActivation, update.mcpActivation) };
    this.#state = { ...this.#state, ...update, ...merged };
  }
}

/**
 * Makes a conversation with MCP tools for LangChain chains.
 * @param hubOrClient - A hub, or a `MultiServerMCPClient`, which is wrapped and stays yours.
 * @throws {McpConfigError} for unknown or wrong options.
 * @example
 * const session = createMcpSession(hub, { systemPrompt: "Be brief." });
 * const messages = await session.loop(model).invoke("Which files are here?");
 */
export function createMcpSession(
  hubOrClient: McpHub | WrappableClient,
  options: McpSessionOptions = {},
): McpSession {
  return new McpSession(hubOf(hubOrClient, "createMcpSession"), options);
}

function toMessages(input: McpSessionInput): BaseMessage[] {
  if (typeof input === "string") return [new HumanMessage(input)];
  if (Array.isArray(input)) return input.map((message) => coerceMessageLikeToMessage(message));
  const prompt = input as Exclude<McpSessionInput, string | readonly unknown[]> | undefined;
  if (typeof prompt?.toChatMessages === "function") return prompt.toChatMessages();
  throw new McpConfigError(
    "A session takes text, a list of messages, or what a prompt template makes.",
  );
}

/** Copies of the messages without an id, with one: mentions and notes refer to it. */
function withIds(messages: readonly BaseMessage[]): BaseMessage[] {
  return messages.map((message) => {
    if (message.id !== undefined) return message;
    const copy = Object.assign(
      Object.create(Object.getPrototypeOf(message) as object) as BaseMessage,
      message,
    );
    copy.id = randomUUID();
    return copy;
  });
}

/** Replaces messages by those with the same id, and appends the others. */
function replaced(messages: readonly BaseMessage[], others: readonly BaseMessage[]): BaseMessage[] {
  const byId = new Map(
    others.flatMap((message) => (message.id === undefined ? [] : [[message.id, message] as const])),
  );
  const ids = new Set(messages.map(({ id }) => id));
  return [
    ...messages.map((message) => byId.get(message.id ?? "") ?? message),
    ...others.filter(({ id }) => id === undefined || !ids.has(id)),
  ];
}
