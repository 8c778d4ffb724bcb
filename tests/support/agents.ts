import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { createMiddleware } from "langchain";

/** One scripted tool call. */
export interface ScriptedCall {
  readonly name: string;
  readonly args?: Record<string, unknown>;
  readonly id: string;
}

/** An answer with tool calls and no text. */
export function calling(...calls: ScriptedCall[]): AIMessage {
  return new AIMessage({
    content: "",
    tool_calls: calls.map(({ name, args = {}, id }) => ({ type: "tool_call", name, args, id })),
  });
}

/** A model that gives these answers in turn. */
export function scripted(...answers: (AIMessage | string)[]) {
  const model = fakeModel();
  for (const answer of answers)
    model.respond(typeof answer === "string" ? new AIMessage(answer) : answer);
  return model;
}

/** What a model call was given. */
export interface SeenCall {
  readonly system: string;
  readonly blocks: readonly string[];
  readonly tools: readonly string[];
  readonly messages: readonly BaseMessage[];
}

/** A middleware that writes down each model call as the model gets it; stands last. */
export function spyMiddleware(): {
  readonly seen: SeenCall[];
  readonly middleware: ReturnType<typeof createMiddleware>;
} {
  const seen: SeenCall[] = [];
  const middleware = createMiddleware({
    name: "spy",
    wrapModelCall: (request, handler) => {
      const { content } = request.systemMessage;
      seen.push({
        system: request.systemMessage.text,
        blocks:
          typeof content === "string"
            ? [content]
            : content.map((block) => ("text" in block ? String(block.text) : "")),
        tools: request.tools.map((tool) => String(tool["name"])),
        messages: [...request.messages],
      });
      return handler(request);
    },
  });
  return { seen, middleware: middleware as ReturnType<typeof createMiddleware> };
}

/** The tool messages of a run by tool call id. */
export function answersOf(messages: readonly BaseMessage[]): Record<string, ToolMessage> {
  return Object.fromEntries(
    messages
      .filter((message) => ToolMessage.isInstance(message))
      .map((message) => [message.tool_call_id, message]),
  );
}
