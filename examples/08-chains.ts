// Chains: a tool-calling loop without a graph, on the real server-everything.
// Run it with `npx tsx examples/08-chains.ts`; it needs no network and no keys.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { createMcpSession, McpHub, type McpThreadState } from "langchain-mcp-middleware/chain";

await using hub = new McpHub({
  mcpServers: { demo: { command: "npx", args: ["mcp-server-everything"], defer: true } },
});
await hub.connect();
const call = (id: string, name: string, args: object) =>
  new AIMessage({
    content: "",
    tool_calls: [{ type: "tool_call", id, name, args: args as Record<string, unknown> }],
  });
const model = fakeModel()
  .respond(call("1", "search_mcp_tools", { query: "echo", limit: 1 }))
  .respond(call("2", "mcp__demo__echo", { message: "hello" }))
  .respond(new AIMessage("It said hello."));

// %% 1. A whole loop
const session = createMcpSession(hub, { systemPrompt: "Be brief.", resourceTools: false });
const messages = await session.loop(model, { maxSteps: 5 }).invoke("Say hello to the server.");
console.log(messages.map(({ type }) => type).join(" "));
// → human ai tool ai tool ai
console.log(messages.at(-1)!.text);
// → It said hello.

// %% 2. Go on elsewhere
// The state is JSON: promotions, the listing as it was shown, what was attached.
const saved = JSON.stringify(session.state);
const later = createMcpSession(hub, {
  resourceTools: false,
  state: JSON.parse(saved) as McpThreadState,
});
const turn = await later.begin([...messages, new HumanMessage("And once more?")]);
const { systemMessage, tools } = await later.prepare(turn.messages);
console.log(tools.map(({ name }) => name));
// → [ 'search_mcp_tools', 'mcp__demo__echo' ]
console.log(systemMessage!.text.split("\n")[0]);
// → <AVAILABLE_MCP_TOOLS>

// %% 3. Tools made never to change
// With the strategy "execute" the request keeps its tools, and what was found is run by one of
// them.
const steady = createMcpSession(hub, { strategy: "execute", resourceTools: false });
const [result] = await steady.runTools(
  call("1", "execute_mcp_tool", { name: "mcp__demo__echo", arguments: { message: "again" } }),
);
console.log(result!.text.split("\n")[1]);
// → Echo: again
