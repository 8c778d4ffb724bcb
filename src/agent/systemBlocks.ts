import { SystemMessage } from "@langchain/core/messages";

/** A system message with more text blocks at its end; a line is left free between each and the text before it. */
export function withBlocks(systemMessage: SystemMessage, texts: readonly string[]): SystemMessage {
  const written = texts.filter((text) => text !== "");
  if (written.length === 0) return systemMessage;
  const isAlone = systemMessage.text === "";
  const content = written.map((text, index) => ({ type: "text" as const, text: isAlone && index === 0 ? text : `\n\n${text}` }));
  const blocks = new SystemMessage({ content });
  return isAlone ? blocks : systemMessage.concat(blocks);
}
