import {
  HumanMessage,
  ToolMessage,
  type BaseMessage,
  type MessageContent,
} from "@langchain/core/messages";

import type { ImagePlacement } from "../call/contentBlock.js";
import { cutMiddle, isMcpArtifact, type ImageBlock } from "../call/result.js";
import { fairShare } from "../text/clean.js";

export interface ResultPlacement {
  readonly images: ImagePlacement;
  /** Characters of all results of one step together. */
  readonly maxStepResultChars: number;
}

const IMAGE_FOLLOWS = "[The image of this result follows below.]";
const IMAGE_NOT_SHOWN = "[This result has an image, which this model cannot see.]";

/**
 * Fits results of one step into their limit and places images. Pure; returns the same array if
 * nothing changes.
 */
export function toRequestMessages(
  messages: BaseMessage[],
  placement: ResultPlacement,
): BaseMessage[] {
  const result: BaseMessage[] = [];
  let isChanged = false;
  for (let index = 0; index < messages.length;) {
    const step = stepAt(messages, index);
    if (step.length === 0) {
      result.push(messages[index]!);
      index += 1;
      continue;
    }
    const placed = placeStep(step, placement);
    if (placed !== step) isChanged = true;
    result.push(...placed);
    index += step.length;
  }
  return isChanged ? result : messages;
}

function stepAt(messages: readonly BaseMessage[], from: number): ToolMessage[] {
  const step: ToolMessage[] = [];
  for (let index = from; index < messages.length; index += 1) {
    const message = messages[index]!;
    if (!ToolMessage.isInstance(message)) break;
    step.push(message);
  }
  return step;
}

function placeStep(
  step: ToolMessage[],
  { images, maxStepResultChars }: ResultPlacement,
): BaseMessage[] {
  const ours = step.map((message) => isMcpArtifact(message.artifact));
  const lengths = step.map((message, index) =>
    ours[index] === true ? textOf(message.content).length : 0,
  );
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const share =
    total > maxStepResultChars ? fairShare(lengths, maxStepResultChars) : Number.POSITIVE_INFINITY;
  const moved: ImageBlock[] = [];
  let isChanged = false;
  const placed = step.map((message, index) => {
    if (ours[index] !== true) return message;
    const text = cutMiddle(textOf(message.content), share);
    const pictures = imagesOf(message.content);
    if (lengths[index]! <= share && (pictures.length === 0 || images === "tool")) return message;
    isChanged = true;
    if (images === "human") moved.push(...pictures);
    return withContent(message, contentFor(text, pictures, images));
  });
  if (!isChanged) return step;
  return moved.length === 0
    ? placed
    : [
        ...placed,
        new HumanMessage({
          content: [{ type: "text", text: imageCaption(moved.length) }, ...moved],
        }),
      ];
}

function contentFor(
  text: string,
  pictures: readonly ImageBlock[],
  images: ImagePlacement,
): MessageContent {
  if (pictures.length === 0) return text;
  if (images === "tool") return [{ type: "text", text }, ...pictures];
  const note = images === "human" ? IMAGE_FOLLOWS : IMAGE_NOT_SHOWN;
  return text === "" ? note : `${text}\n${note}`;
}

function imageCaption(count: number): string {
  return count === 1
    ? "The image of the tool result above (untrusted):"
    : `The ${count} images of the tool results above, in their order (untrusted):`;
}

/** A copy of one of our tool messages, which have no other fields. */
function withContent(
  { id, name, status, tool_call_id, artifact }: ToolMessage,
  content: MessageContent,
): ToolMessage {
  return new ToolMessage({
    content,
    tool_call_id,
    artifact: artifact as unknown,
    ...(id === undefined ? {} : { id }),
    ...(name === undefined ? {} : { name }),
    ...(status === undefined ? {} : { status }),
  });
}

function textOf(content: MessageContent): string {
  if (typeof content === "string") return content;
  return content
    .map((block) => (block.type === "text" && "text" in block ? String(block["text"]) : ""))
    .join("");
}

function imagesOf(content: MessageContent): ImageBlock[] {
  return typeof content === "string"
    ? []
    : content
        .filter((block) => block.type === "image_url")
        .map((block) => block as unknown as ImageBlock);
}
