import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";

/** Unanswered tool calls of the last answer; none once a human message follows it. */
export function openCalls(messages: readonly BaseMessage[]): NonNullable<AIMessage["tool_calls"]> {
  const last = messages.findLastIndex((message) => AIMessage.isInstance(message));
  if (last < 0) return [];
  const behind = messages.slice(last + 1);
  if (behind.some((message) => HumanMessage.isInstance(message))) return [];
  const answered = new Set(
    behind.flatMap((message) => (ToolMessage.isInstance(message) ? message.tool_call_id : [])),
  );
  return ((messages[last] as AIMessage).tool_calls ?? []).filter(
    ({ id }) => id === undefined || !answered.has(id),
  );
}
