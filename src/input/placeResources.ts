import { HumanMessage, type BaseMessage } from "@langchain/core/messages";

import { mention, type ImagePlacement } from "../call/contentBlock.js";
import type { ThreadResource } from "../state.js";

export interface PlacedResources {
  /** Blocks for the end of the system message, in order of first mention. */
  readonly system: readonly string[];
  readonly messages: BaseMessage[];
}

type ContentBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

/**
 * Puts a thread's resources into a request. Pure, so that prompt caches hold; the thread's messages
 * do not change. Text goes to the system message or beside the message that mentions it. Images
 * always go beside that message.
 * @param threadIds - Ids of the thread's messages. A resource is shown while a message that
 * mentions it exists.
 */
export function placeResources(
  resources: readonly ThreadResource[],
  messages: BaseMessage[],
  threadIds: ReadonlySet<string>,
  placement: "system" | "message",
  images: ImagePlacement,
): PlacedResources {
  const system: string[] = [];
  const beside = new Map<string, ContentBlock[]>();
  const present = new Set(
    messages.flatMap((message) =>
      HumanMessage.isInstance(message) && message.id !== undefined ? [message.id] : [],
    ),
  );
  for (const resource of resources) {
    if (!resource.messageIds.some((id) => threadIds.has(id))) continue;
    const text =
      resource.failure === undefined ? resource.block : `${resource.failure}\n${resource.block}`;
    const messageId = resource.messageIds.find((id) => present.has(id));
    const isBeside = placement === "message" && messageId !== undefined;
    if (!isBeside) system.push(text);
    if (messageId === undefined) continue;
    const blocks = [
      ...(isBeside ? [{ type: "text" as const, text }] : []),
      ...imageBlocks(resource, images),
    ];
    if (blocks.length > 0) beside.set(messageId, [...(beside.get(messageId) ?? []), ...blocks]);
  }
  if (beside.size === 0) return { system, messages };
  return {
    system,
    messages: messages.map((message) => withBlocks(message, beside.get(message.id ?? ""))),
  };
}

function imageBlocks(
  { serverName, uri, images }: ThreadResource,
  placement: ImagePlacement,
): ContentBlock[] {
  if (images.length === 0) return [];
  const what = images.length === 1 ? "The image" : `The ${images.length} images`;
  if (placement === "none")
    return [
      {
        type: "text",
        text: `[${what} of ${mention(serverName, uri)} cannot be seen by this model.]`,
      },
    ];
  return [
    { type: "text", text: `${what} of ${mention(serverName, uri)} (untrusted):` },
    ...images.map((url) => ({ type: "image_url" as const, image_url: { url } })),
  ];
}

function withBlocks(
  message: BaseMessage,
  blocks: readonly ContentBlock[] | undefined,
): BaseMessage {
  if (blocks === undefined) return message;
  const { content, id, name, additional_kwargs, response_metadata } = message;
  const own =
    typeof content === "string"
      ? content === ""
        ? []
        : [{ type: "text" as const, text: content }]
      : content;
  return new HumanMessage({
    content: [...own, ...blocks] as never,
    ...(id === undefined ? {} : { id }),
    ...(name === undefined ? {} : { name }),
    // Deprecated for provider data, but LangChain's middleware keeps its own data there.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    additional_kwargs,
    response_metadata,
  });
}
