// `npm start`: one agent over three real MCP servers. Prints what the model saw, what it found and
// what it got. With ANTHROPIC_API_KEY or OPENAI_API_KEY set a real model is asked; otherwise a
// scripted one.
import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { ChatOpenAI } from "@langchain/openai";
import { getEncoding } from "js-tiktoken";
import { createAgent, createMiddleware } from "langchain";
import { McpHub, mcpMiddleware, previewContext } from "langchain-mcp-middleware";

await using hub = new McpHub({
  mcpServers: {
    everything: { command: "npx", args: ["mcp-server-everything"] },
    files: { command: "npx", args: ["mcp-server-filesystem", "."] },
    memory: { command: "npx", args: ["mcp-server-memory"] },
  },
});
const { connected, failed } = await hub.connect();
for (const serverName of connected) console.log(`connected: ${serverName}`);
for (const { error } of failed) console.log(error.message);

console.log("\n=== What the model sees of MCP in its first call ===\n");
const { listing, tools } = await previewContext(hub);
console.log(listing);
console.log(`\nTools: ${tools.map(({ name }) => name).join(", ")}`);

console.log("\n=== The run ===\n");
const print = createMiddleware({
  name: "print",
  wrapModelCall: async (request, handler) => {
    const answer = await handler(request);
    const names = request.tools.map((tool) => String(tool["name"]));
    const calls = answer.tool_calls ?? [];
    console.log(
      `model (${names.length} tools bound): ${answer.text || calls.map(({ name, args }) => `${name}(${JSON.stringify(args)})`).join("\n  ")}`,
    );
    return answer;
  },
});
const agent = createAgent({
  model: pickModel(),
  systemPrompt: "You are a helpful assistant.",
  middleware: [mcpMiddleware(hub), print],
});
const { messages } = await agent.invoke({
  messages: "How much is 19 plus 23, and which files are in this folder?",
});
for (const message of messages.filter((one) => ToolMessage.isInstance(one))) {
  console.log(
    `\n${message.name} (${message.status}):\n${message.text.split("\n").slice(0, 40).join("\n")}`,
  );
}
console.log(`\nanswer: ${messages.at(-1)!.text}`);

const encoding = getEncoding("o200k_base");
const count = (value: unknown): number =>
  encoding.encode(typeof value === "string" ? value : JSON.stringify(value)).length;
const all = await hub.getTools();
const withUs =
  count(listing) +
  tools.reduce(
    (sum, { name, description, schema }) =>
      sum + count({ type: "function", function: { name, description, parameters: schema } }),
    0,
  );
const everything = all.reduce((sum, tool) => sum + count(convertToOpenAITool(tool)), 0);
const format = (value: number): string => value.toLocaleString("en-US");
console.log(
  `\nTokens of MCP in the first model call: ${format(withUs)} in place of ${format(everything)} for all ${all.length} tools; ${format(everything - withUs)} withheld.`,
);

function pickModel(): BaseChatModel {
  if (process.env["ANTHROPIC_API_KEY"]) return new ChatAnthropic({ model: "claude-sonnet-4-5" });
  if (process.env["OPENAI_API_KEY"]) return new ChatOpenAI({ model: "gpt-5-mini" });
  const calling = (...calls: [id: string, name: string, args: Record<string, unknown>][]) =>
    new AIMessage({
      content: "",
      tool_calls: calls.map(([id, name, args]) => ({ type: "tool_call", id, name, args })),
    });
  return fakeModel()
    .respond(
      calling([
        "1",
        "search_mcp_tools",
        { queries: ["add two numbers", "list the files of a directory"], limit: 1 },
      ]),
    )
    .respond(
      calling(
        ["2", "mcp__everything__get-sum", { a: 19, b: 23 }],
        ["3", "mcp__files__list_directory", { path: "." }],
      ),
    )
    .respond(new AIMessage("19 plus 23 is 42, and the files are listed above."));
}
