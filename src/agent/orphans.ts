import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";

import { errorMessage } from "../call/failureText.js";

const NOT_RUN =
  "This call was not run: another call of the same step was stopped. Call it again if it is still needed.";
const GIVEN_UP = "This call was not run: the person went on before it was approved.";

/**
 * Answers unanswered calls of ours, because providers reject a history without. Pure; returns the
 * same array if none is open.
 */
export function withOrphansAnswered(
  messages: readonly BaseMessage[],
  isOurs: (name: string) => boolean,
): readonly BaseMessage[] {
  const orphans = new Map<number, ToolMessage[]>();
  messages.forEach((message, index) => {
    if (!AIMessage.isInstance(message) || (message.tool_calls ?? []).length === 0) return;
    const end = endOfStep(messages, index);
    const answers = messages.slice(index + 1, end + 1);
    const answered = new Set(
      answers.flatMap((answer) => (ToolMessage.isInstance(answer) ? answer.tool_call_id : [])),
    );
    const open = (message.tool_calls ?? []).filter(
      ({ id, name }) => id !== undefined && !answered.has(id) && isOurs(name),
    );
    if (open.length > 0)
      orphans.set(
        end,
        open.map((call) =>
          errorMessage(call, HumanMessage.isInstance(messages[end + 1]) ? GIVEN_UP : NOT_RUN),
        ),
      );
  });
  if (orphans.size === 0) return messages;
  return messages.flatMap((message, index) => [message, ...(orphans.get(index) ?? [])]);
}

function endOfStep(messages: readonly BaseMessage[], from: number): number {
  let end = from;
  while (end + 1 < messages.length && ToolMessage.isInstance(messages[end + 1])) end += 1;
  return end;
}
