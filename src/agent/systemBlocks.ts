import { SystemMessage } from "@langchain/core/messages";

/** Appends text blocks to a system message, with an empty line before each. */
export function withBlocks(systemMessage: SystemMessage, texts: readonly string[]): SystemMessage {
  const written = texts.filter((text) => text !== "");
  if (written.length === 0) return systemMessage;
  const isAlone = systemMessage.text === "";
  const content = written.map((text, index) => ({
    type: "text" as const,
    text: isAlone && index === 0 ? text : `\n\n${text}`,
  }));
  const blocks = new SystemMessage({ content });
  return isAlone ? blocks : systemMessage.concat(blocks);
}
