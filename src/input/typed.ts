import {
  AIMessage,
  HumanMessage,
  type BaseMessage,
  type MessageContent,
} from "@langchain/core/messages";

/** Key in `additional_kwargs` for the command that a message replaced. */
export const COMMAND_ORIGIN = "mcpCommand";
/** Key by which LangChain's middleware marks messages that it made. */
const SOURCE = "lc_source";
const ANSWER = "mcpAnswer";

/** Origin of a message that replaced a command, in `additional_kwargs.mcpCommand`. JSON. */
export interface McpCommandOrigin {
  readonly serverName: string;
  readonly promptName: string;
  readonly arguments: Readonly<Record<string, string>>;
  /** The text that the person typed. */
  readonly text: string;
}

/** The command that a message replaced; `undefined` for any other message. */
export function commandOriginOf(message: BaseMessage): McpCommandOrigin | undefined {
  return message.additional_kwargs[COMMAND_ORIGIN] as McpCommandOrigin | undefined;
}

/**
 * The person's newest message, when it is unanswered. Messages made by a summary or a prompt do not
 * count as typed.
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

/** The text blocks of a message. Kept apart, so that words of two blocks do not join. */
export function textsOf({ content }: BaseMessage): string[] {
  if (typeof content === "string") return [content];
  return content.flatMap((block) =>
    block.type === "text" && "text" in block ? [String(block["text"])] : [],
  );
}

/** All content but the first text block: a command is typed in that block alone. */
export function attachmentsOf({ content }: BaseMessage): Exclude<MessageContent, string> {
  if (typeof content === "string") return [];
  const first = content.findIndex(({ type }) => type === "text");
  return content.filter((_block, index) => index !== first);
}

/** Answers typed input in the model's place. The model is later sent neither message. */
export function answerTo(typed: HumanMessage | undefined, text: string): AIMessage {
  const message = new AIMessage(text);
  message.additional_kwargs[ANSWER] = { messageId: typed?.id ?? "" };
  return message;
}

export function isAnswerTo(message: BaseMessage | undefined): message is AIMessage {
  return (
    message !== undefined &&
    AIMessage.isInstance(message) &&
    kwargsOf(message)[ANSWER] !== undefined
  );
}

/**
 * Leaves out answers in the model's place and the input they answer. Returns the same array when
 * there are none.
 */
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

/**
 * LangChain's middleware keeps its own data there, though the field is deprecated for provider
 * data.
 */
function kwargsOf(message: BaseMessage): Readonly<Record<string, unknown>> {
  return message.additional_kwargs;
}
