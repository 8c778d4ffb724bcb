// A whole agent over a real server, with the installed versions of the peers: managed and wrapped.
import assert from "node:assert/strict";

import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { MemorySaver } from "@langchain/langgraph";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";
import { McpHub, mcpMiddleware } from "langchain-mcp-middleware";

const servers = {
  everything: {
    command: "node",
    args: ["node_modules/@modelcontextprotocol/server-everything/dist/index.js"],
    stderr: "ignore",
  },
};
const calling = (...calls) =>
  new AIMessage({
    content: "",
    tool_calls: calls.map(([id, name, args]) => ({ type: "tool_call", id, name, args })),
  });

async function turn(source) {
  const model = fakeModel()
    .respond(calling(["1", "search_mcp_tools", { query: "mcp__everything__echo" }]))
    .respond(
      calling(
        ["2", "mcp__everything__echo", { message: "hallo" }],
        ["3", "search_mcp_tools", { query: "get-sum" }],
        ["4", "mcp__everything__get-sum", {}],
      ),
    )
    .respond(new AIMessage("done"))
    .respond(new AIMessage("again"));
  const agent = createAgent({
    model,
    checkpointer: new MemorySaver(),
    middleware: [
      mcpMiddleware(source, {
        timeouts: { startupDeadlineMs: 20_000 },
        limits: { autoDeferChars: 0 },
      }),
    ],
  });
  const thread = { configurable: { thread_id: "1" } };
  const { messages } = await agent.invoke({ messages: "go" }, thread);
  assert.match(messages.find((message) => message.tool_call_id === "2").text, /Echo: hallo/);
  assert.equal(messages.find((message) => message.tool_call_id === "4").status, "error");
  const { mcpActivation } = await agent.invoke({ messages: "again" }, thread);
  assert.deepEqual(Object.keys(mcpActivation.promoted).sort().slice(0, 1), [
    "mcp__everything__echo",
  ]);
  assert.match(JSON.stringify(model.calls[0].messages[0].content), /AVAILABLE_MCP_TOOLS/);
}

const hub = new McpHub({ mcpServers: servers });
await turn(hub);
await hub.close();
const client = new MultiServerMCPClient({ mcpServers: servers });
await turn(client);
await assert.rejects(McpHub.wrap(client).callTool("everything", "get-sum", { a: "x" }), {
  code: "INVALID_ARGUMENTS",
});
await client.close();
