import {
  AIMessage,
  HumanMessage,
  ToolMessage,
  type BaseMessage,
  type MessageContent,
} from "@langchain/core/messages";

import { toRequestMessages } from "../../../src/agent/requestMessages.js";

const PICTURE = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
const artifact = { serverName: "s", toolName: "t", durationMs: 1, isError: false, blocks: [] };
const ours = (content: MessageContent, id: string) =>
  new ToolMessage({ content, tool_call_id: id, name: "t", id, artifact, status: "success" });
const place = (
  messages: BaseMessage[],
  images: "tool" | "human" | "none" = "human",
  maxStepResultChars = 1_000,
) => toRequestMessages(messages, { images, maxStepResultChars });

describe("toRequestMessages", () => {
  const step: BaseMessage[] = [
    new HumanMessage("go"),
    new AIMessage("calls"),
    ours([{ type: "text", text: "words" }, PICTURE], "1"),
    ours("plain", "2"),
    new AIMessage("done"),
  ];

  it("leaves messages that need no change as they are", () => {
    const plain: BaseMessage[] = [new HumanMessage("go"), ours("plain", "1")];
    expect(place(plain)).toBe(plain);
    expect(place(step, "tool")).toBe(step);
  });

  it("puts images after the tool messages of their step for clients that take only text there", () => {
    const placed = place(step);
    expect(placed.map((message) => message.type)).toEqual([
      "human",
      "ai",
      "tool",
      "tool",
      "human",
      "ai",
    ]);
    expect(placed[2]!.content).toBe("words\n[The image of this result follows below.]");
    expect(placed[4]!.content).toEqual([
      { type: "text", text: expect.stringContaining("untrusted") },
      PICTURE,
    ]);
    expect(placed[2]).toMatchObject({
      tool_call_id: "1",
      name: "t",
      id: "1",
      status: "success",
      artifact,
    });
    expect(step[2]!.content).toHaveLength(2);
  });

  it("says so where the model cannot see images", () => {
    expect(place(step, "none")[2]!.content).toContain("cannot see");
    expect(place(step, "none")).toHaveLength(step.length);
  });

  it("keeps the results of a step within their common limit: short ones whole, long ones cut alike", () => {
    const messages: BaseMessage[] = [
      ours("a".repeat(5_000), "1"),
      ours("short", "2"),
      ours("b".repeat(4_000), "3"),
    ];
    const placed = place(messages, "human", 1_000);
    const lengths = placed.map(({ text }) => text.length);
    expect(lengths.reduce((sum, length) => sum + length)).toBeLessThanOrEqual(1_000);
    expect(placed[1]!.text).toBe("short");
    expect(Math.abs(lengths[0]! - lengths[2]!)).toBeLessThanOrEqual(2);
    expect(placed[0]!.text).toContain("5000 characters in all");
  });

  it("gives the same messages for the same step whatever follows, and does not change messages of other tools", () => {
    const first = place(step.slice(0, 4));
    expect(
      place(step)
        .slice(0, first.length)
        .map(({ content }) => content),
    ).toEqual(first.map(({ content }) => content));
    const theirs = [new ToolMessage({ content: "x".repeat(9_000), tool_call_id: "1" })];
    expect(place(theirs)).toBe(theirs);
  });
});
