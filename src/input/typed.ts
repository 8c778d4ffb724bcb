import { AIMessage, HumanMessage, type BaseMessage, type MessageContent } from "@langchain/core/messages";

/** Key of `additional_kwargs` that says from which command a message is. */
export const COMMAND_ORIGIN = "mcpCommand";
/** Where LangChain's own middleware says that it made a message. */
const SOURCE = "lc_source";
const ANSWER = "mcpAnswer";

/** Where a message comes from that took the place of a command: `additional_kwargs.mcpCommand`. JSON. */
export interface McpCommandOrigin {
  readonly serverName: string;
  readonly promptName: string;
  readonly arguments: Readonly<Record<string, string>>;
  /** What the person typed. */
  readonly text: string;
}

/** Where a message comes from, when it took the place of a command. */
export function commandOriginOf(message: BaseMessage): McpCommandOrigin | undefined {
  return message.additional_kwargs[COMMAND_ORIGIN] as McpCommandOrigin | undefined;
}

/**
 * The newest message of the person, when nothing has answered it yet and it is as it was typed. Messages that were made
 * by a summary or by a prompt are nobody's words.
 */
export function newestTyped(messages: readonly BaseMessage[]): HumanMessage | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index]!;
    if (AIMessage.isInstance(message)) return undefined;
    if (!HumanMessage.isInstance(message)) continue;
    if (commandOriginOf(message) !== undefined) return undefined;
    if (kwargsOf(message)[SOURCE] === undefined) return message;
  }
  return undefined;
}

/** The texts of a message, block by block: words of two blocks are not one word. */
export function textsOf({ content }: BaseMessage): string[] {
  if (typeof content === "string") return [content];
  return content.flatMap((block) => (block.type === "text" && "text" in block ? [String(block["text"])] : []));
}

/** What a message holds besides its first text: a command is typed in that alone. */
export function attachmentsOf({ content }: BaseMessage): Exclude<MessageContent, string> {
  if (typeof content === "string") return [];
  const first = content.findIndex(({ type }) => type === "text");
  return content.filter((_block, index) => index !== first);
}

/** An answer to what a person typed, in place of the model's. Neither is part of what the model is sent later. */
export function answerTo(typed: HumanMessage | undefined, text: string): AIMessage {
  const message = new AIMessage(text);
  message.additional_kwargs[ANSWER] = { messageId: typed?.id ?? "" };
  return message;
}

/** True for an answer in the model's place. */
export function isAnswerTo(message: BaseMessage | undefined): message is AIMessage {
  return message !== undefined && AIMessage.isInstance(message) && kwargsOf(message)[ANSWER] !== undefined;
}

/** The messages without what was answered in the model's place; the same array when there is nothing of the kind. */
export function withoutAnswered(messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const hidden = new Set<BaseMessage>();
  for (const message of messages) {
    if (!isAnswerTo(message)) continue;
    hidden.add(message);
    const { messageId } = kwargsOf(message)[ANSWER] as { readonly messageId?: unknown };
    const asked = messages.find(({ id }) => id !== undefined && id === messageId);
    if (asked !== undefined && HumanMessage.isInstance(asked)) hidden.add(asked);
  }
  return hidden.size === 0 ? messages : messages.filter((message) => !hidden.has(message));
}

/** What LangChain's middleware keeps with a message. Deprecated for what providers send, and still the place for it. */
function kwargsOf(message: BaseMessage): Readonly<Record<string, unknown>> {
  return message.additional_kwargs;
}
