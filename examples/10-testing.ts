// Tests of agents without servers: recorded once from the real server-everything, then scripted.
// Run it with `npx tsx examples/10-testing.ts`; it needs no network and no keys.
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { createAgent } from "langchain";
import { mcpMiddleware } from "langchain-mcp-middleware";
import { createMcpTestHub, McpHub, recordMcpServers } from "langchain-mcp-middleware/testing";

// %% 1. Record what servers offer, once; keep it as JSON beside the tests
const hub = new McpHub({
  mcpServers: { demo: { command: "npx", args: ["mcp-server-everything"] } },
});
const recorded = await recordMcpServers(hub);
await hub.close();
const { tools, prompts = [], resources = [] } = recorded["demo"]!;
console.log(tools.length > 5, prompts.length > 2, resources.length > 2);
// → true true true

// %% 2. A hub of that, with scripted answers
// Names, listing, search, policy and checks of arguments are those of the real thing; no process is
// started.
await using test = createMcpTestHub({
  mcpServers: {
    demo: {
      recording: recorded["demo"]!,
      defer: true,
      answers: {
        echo: ({ arguments: { message } }) => `You said ${String(message)}.`,
        "get-sum": ["42", new Error("the abacus broke")],
      },
    },
  },
});

// %% 3. An agent on it
const call = (id: string, name: string, args: Record<string, unknown>) =>
  new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id, name, args }] });
const model = fakeModel()
  .respond(call("1", "search_mcp_tools", { query: "add two numbers" }))
  .respond(call("2", "mcp__demo__get-sum", { a: 20, b: 22 }))
  .respond(call("3", "mcp__demo__get-sum", { a: 1 }))
  .respond(call("4", "mcp__demo__get-sum", { a: 1, b: 1 }))
  .respond(new AIMessage("It was 42 once."));
const agent = createAgent({ model, middleware: [mcpMiddleware(test.hub)] });
const { messages } = await agent.invoke({ messages: "What is 20 and 22?" });
const answers = messages.filter((message) => ToolMessage.isInstance(message));
console.log(answers.map(({ status }) => status).join(" "));
// → success success error error

// %% 4. What reached the server: the call that did not fit is not there
console.log(JSON.stringify(test.calls.map(({ target, arguments: args }) => [target, args])));
// → [["get-sum",{"a":20,"b":22}],["get-sum",{"a":1,"b":1}]]

// %% 5. A server that dies
await test.fail("demo");
const { content, status } = await test.hub
  .callTool("demo", "echo", { message: "hello" })
  .catch((error: unknown) => ({ content: (error as Error).name, status: "none" }));
console.log(status, content);
// → none McpConnectionError
await test.restore("demo");
console.log((await test.hub.callTool("demo", "echo", { message: "hello" })).content.split("\n")[1]);
// → You said hello.
