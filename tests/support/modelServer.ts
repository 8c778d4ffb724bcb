// A loopback server that speaks the wire forms of the providers: records each request, gives
// scripted answers.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";

/** A scripted answer: text, or tool calls. */
export type ScriptedAnswer =
  | string
  | readonly {
      readonly id: string;
      readonly name: string;
      readonly args: Record<string, unknown>;
    }[];

/** The wire forms. */
export type Wire = "anthropic" | "openai-chat" | "openai-responses" | "google";
export const WIRES: readonly Wire[] = ["anthropic", "openai-chat", "openai-responses", "google"];

/** A recorded request body. */
export type RequestBody = Record<string, unknown>;

export interface ModelServer {
  readonly requests: RequestBody[];
  readonly answers: ScriptedAnswer[];
  readonly client: (wire: Wire) => BaseChatModel;
  readonly close: () => Promise<void>;
}

/** Starts the server. Without a scripted answer it says "ok". */
export async function serveModel(): Promise<ModelServer> {
  const requests: RequestBody[] = [];
  const answers: ScriptedAnswer[] = [];
  const http = createServer((request, response) => {
    void (async () => {
      let text = "";
      for await (const chunk of request.setEncoding("utf8")) text += chunk as string;
      requests.push(JSON.parse(text) as RequestBody);
      const path = request.url ?? "";
      const answer = answers.shift() ?? "ok";
      const body = path.includes("/messages")
        ? anthropic(answer)
        : path.includes("/chat/completions")
          ? chat(answer)
          : path.includes("/responses")
            ? responses(answer)
            : google(answer);
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    })();
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const make: Record<Wire, () => BaseChatModel> = {
    anthropic: () =>
      new ChatAnthropic({
        apiKey: "x",
        model: "claude-sonnet-4-5",
        anthropicApiUrl: base,
        maxRetries: 0,
      }),
    "openai-chat": () =>
      new ChatOpenAI({
        apiKey: "x",
        model: "gpt-4o",
        configuration: { baseURL: `${base}/v1` },
        maxRetries: 0,
      }),
    "openai-responses": () =>
      new ChatOpenAI({
        apiKey: "x",
        model: "gpt-5",
        useResponsesApi: true,
        configuration: { baseURL: `${base}/v1` },
        maxRetries: 0,
      }),
    google: () =>
      new ChatGoogleGenerativeAI({
        apiKey: "x",
        model: "gemini-2.5-pro",
        baseUrl: base,
        maxRetries: 0,
      }),
  };
  return {
    requests,
    answers,
    client: (wire) => make[wire](),
    close: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

/** Answers need ids of their own: an equal id replaces a message of the thread. */
let ids = 0;
const nextId = (prefix: string): string => `${prefix}_${(ids += 1)}`;

function anthropic(answer: ScriptedAnswer): object {
  const content =
    typeof answer === "string"
      ? [{ type: "text", text: answer }]
      : answer.map(({ id, name, args }) => ({ type: "tool_use", id, name, input: args }));
  return {
    id: nextId("m"),
    type: "message",
    role: "assistant",
    model: "m",
    content,
    stop_reason: typeof answer === "string" ? "end_turn" : "tool_use",
    usage: { input_tokens: 1, output_tokens: 1 },
  };
}

function chat(answer: ScriptedAnswer): object {
  const calls =
    typeof answer === "string"
      ? undefined
      : answer.map(({ id, name, args }) => ({
          id,
          type: "function",
          function: { name, arguments: JSON.stringify(args) },
        }));
  const message = {
    role: "assistant",
    content: typeof answer === "string" ? answer : null,
    ...(calls === undefined ? {} : { tool_calls: calls }),
  };
  return {
    id: nextId("c"),
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message, finish_reason: calls ? "tool_calls" : "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
}

function responses(answer: ScriptedAnswer): object {
  const output =
    typeof answer === "string"
      ? [
          {
            type: "message",
            id: nextId("msg"),
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: answer, annotations: [] }],
          },
        ]
      : answer.map(({ id, name, args }) => ({
          type: "function_call",
          id: `fc_${id}`,
          call_id: id,
          name,
          arguments: JSON.stringify(args),
          status: "completed",
        }));
  return {
    id: nextId("resp"),
    object: "response",
    created_at: 1,
    model: "m",
    status: "completed",
    output,
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  };
}

function google(answer: ScriptedAnswer): object {
  const parts =
    typeof answer === "string"
      ? [{ text: answer }]
      : answer.map(({ name, args }) => ({ functionCall: { name, args } }));
  return {
    candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
}
