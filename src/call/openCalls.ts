import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";

/** The tool calls of the last answer that nothing has answered yet. */
export function openCalls(messages: readonly BaseMessage[]): NonNullable<AIMessage["tool_calls"]> {
  const last = messages.findLastIndex((message) => AIMessage.isInstance(message));
  if (last < 0) return [];
  const answered = new Set(
    messages.slice(last + 1).flatMap((message) => (ToolMessage.isInstance(message) ? message.tool_call_id : [])),
  );
  return ((messages[last] as AIMessage).tool_calls ?? []).filter(({ id }) => id === undefined || !answered.has(id));
}
