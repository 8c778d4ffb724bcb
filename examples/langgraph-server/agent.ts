// The agent that a LangGraph server serves: the hub is made once per process, threads are kept by
// the server.
import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { createAgent } from "langchain";
import { McpHub, mcpMiddleware } from "langchain-mcp-middleware";

const hub = new McpHub({
  mcpServers: { demo: { command: "npx", args: ["mcp-server-everything"], defer: true } },
  policy: { ask: ["mcp:call:demo:get-sum"] },
  timeouts: { startupDeadlineMs: 20_000 },
});
const call = (id: string, name: string, args: Record<string, unknown>) =>
  new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id, name, args }] });

// In place of a real model, so that this needs no key.
const model = fakeModel()
  .respond(call("1", "search_mcp_tools", { query: "add two numbers" }))
  .respond(call("2", "mcp__demo__get-sum", { a: 20, b: 22 }))
  .respond(new AIMessage("It is 42."));

export const agent = createAgent({ model, middleware: [mcpMiddleware(hub)] });
