import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";

/** The tool calls of the last answer that nothing has answered yet. Behind a word of the person there are none: it was given up. */
export function openCalls(messages: readonly BaseMessage[]): NonNullable<AIMessage["tool_calls"]> {
  const last = messages.findLastIndex((message) => AIMessage.isInstance(message));
  if (last < 0) return [];
  const behind = messages.slice(last + 1);
  if (behind.some((message) => HumanMessage.isInstance(message))) return [];
  const answered = new Set(behind.flatMap((message) => (ToolMessage.isInstance(message) ? message.tool_call_id : [])));
  return ((messages[last] as AIMessage).tool_calls ?? []).filter(({ id }) => id === undefined || !answered.has(id));
}
