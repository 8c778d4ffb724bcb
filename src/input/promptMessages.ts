import {
  AIMessage,
  HumanMessage,
  type BaseMessage,
  type MessageContent,
} from "@langchain/core/messages";

import { readBlock } from "../call/contentBlock.js";
import { fairShare } from "../text/clean.js";
import { cutMiddle, defang, type ImageBlock } from "../call/result.js";
import { isRecord } from "../text/isRecord.js";
import { attachmentsOf, COMMAND_ORIGIN, textsOf, type McpCommandOrigin } from "./typed.js";
import { MAX_IMAGE_CHARS, MAX_IMAGES } from "./resourceContents.js";

const MAX_MESSAGES = 50;

/**
 * Converts a prompt's messages, to replace the command that was typed. `[]` when the prompt is
 * empty. Pure. The first message takes the id of `typed`, and the last human message its images and
 * files. Each message carries its origin. Server text cannot open or close one of our blocks.
 * @param maxChars - Characters of all texts together.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
 */
export function toPromptMessages(
  result: Readonly<Record<string, unknown>>,
  {
    serverName,
    promptName,
    arguments: args,
  }: Pick<McpCommandOrigin, "serverName" | "promptName" | "arguments">,
  typed: HumanMessage,
  maxChars: number,
): BaseMessage[] {
  const sent = (Array.isArray(result["messages"]) ? (result["messages"] as unknown[]) : [])
    .filter(isRecord)
    .slice(0, MAX_MESSAGES);
  const readings = sent
    .map(({ role, content }) => readMessage(role, content, serverName))
    .filter(({ text, images }) => text.trim() !== "" || images.length > 0);
  if (readings.length === 0) return [];
  const lengths = readings.map(({ text }) => text.length);
  const share =
    lengths.reduce((sum, length) => sum + length, 0) > maxChars
      ? fairShare(lengths, maxChars)
      : maxChars;
  const [command = ""] = textsOf(typed);
  const origin: McpCommandOrigin = { serverName, promptName, arguments: args, text: command };
  const base = { additional_kwargs: { [COMMAND_ORIGIN]: origin } };
  // Providers want the conversation to begin and end with the person.
  const leading = readings[0]!.isAssistant ? [new HumanMessage({ ...base, content: command })] : [];
  const trailing = readings.at(-1)!.isAssistant
    ? [new HumanMessage({ ...base, content: command })]
    : [];
  let imagesLeft = MAX_IMAGES;
  const messages: BaseMessage[] = readings.map(({ isAssistant, text, images }) => {
    const shown = defang(cutMiddle(text, share));
    if (isAssistant) return new AIMessage({ ...base, content: shown });
    const pictures = images.slice(0, imagesLeft);
    imagesLeft -= pictures.length;
    return new HumanMessage({ ...base, content: contentOf(shown, pictures) });
  });
  const all = [...leading, ...messages, ...trailing];
  const attached = attachmentsOf(typed);
  if (attached.length > 0) attach(all, attached);
  const [first] = all as [BaseMessage];
  if (typed.id !== undefined) first.id = typed.id;
  if (typed.name !== undefined) first.name = typed.name;
  first.additional_kwargs = { ...typed.additional_kwargs, [COMMAND_ORIGIN]: origin };
  return all;
}

interface MessageReading {
  readonly isAssistant: boolean;
  readonly text: string;
  readonly images: readonly ImageBlock[];
}

function readMessage(role: unknown, content: unknown, serverName: string): MessageReading {
  const isAssistant = role === "assistant";
  const blocks = (Array.isArray(content) ? (content as unknown[]) : [content]).map((block) =>
    readBlock(block, serverName),
  );
  const sent = blocks.flatMap(({ image }) => image ?? []);
  // Providers take only text from an assistant.
  const images = isAssistant
    ? []
    : sent.filter(({ image_url: { url } }) => url.length <= MAX_IMAGE_CHARS);
  const lost = images.length === sent.length ? [] : ["[An image, not shown]"];
  const texts = [...blocks.map(({ text }) => text), ...lost].filter((text) => text !== "");
  return { isAssistant, text: texts.join("\n"), images };
}

function contentOf(text: string, images: readonly ImageBlock[]): MessageContent {
  return images.length === 0
    ? text
    : [...(text === "" ? [] : [{ type: "text" as const, text }]), ...images];
}

function attach(messages: BaseMessage[], blocks: Exclude<MessageContent, string>): void {
  const last = messages.findLast((message) => HumanMessage.isInstance(message))!;
  const own =
    typeof last.content === "string"
      ? [{ type: "text" as const, text: last.content }]
      : last.content;
  last.content = [...own, ...blocks] as MessageContent;
}
