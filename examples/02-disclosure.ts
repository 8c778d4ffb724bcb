// McpAgent: an agent starts with a short listing and one search tool, finds what it needs, and
// keeps it. Run it with `npx tsx examples/02-agent.ts`; the model is scripted, the servers are
// real.
import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import {
  McpHub,
  mcpMiddleware,
  previewContext,
  type McpActivation,
} from "langchain-mcp-middleware";

await using hub = new McpHub({
  mcpServers: {
    everything: { command: "npx", args: ["mcp-server-everything"] },
    files: { command: "npx", args: ["mcp-server-filesystem", "examples"] },
    memory: { command: "npx", args: ["mcp-server-memory"] },
  },
});
await hub.connect();

// %% 1. What the model would see
// Three servers with 36 tools. The model gets their names in its system prompt, and one tool (the
// two for resources are left out here).
const options = { resourceTools: false };
const before = await previewContext(hub, {}, options);
console.log(before.tools.map(({ name }) => name));
// → [ 'search_mcp_tools' ]
console.log(
  before.listing.length <= 2_000,
  before.listing.split("\n").filter((line) => line.startsWith("- ")).length,
);
// → true 36

// %% 2. A run
// The scripted model searches in plain words; what is found is bound from its next call on.
const call = (id: string, name: string, args: Record<string, unknown>) =>
  new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id, name, args }] });
const model = fakeModel()
  .respond(call("1", "search_mcp_tools", { query: "list files in a directory", limit: 1 }))
  .respond(call("2", "mcp__files__list_directory", { path: "." }))
  .respond(new AIMessage("There are some examples."))
  .respond(new AIMessage("I still know how to list files."));
const agent = createAgent({
  model,
  middleware: [mcpMiddleware(hub, options)],
  checkpointer: new MemorySaver(),
});
const thread = { configurable: { thread_id: "1" } };
const { messages } = await agent.invoke({ messages: "Which examples are there?" }, thread);
console.log(messages[2]!.text.split(":")[0]);
// → Found 1 tool, callable now by its name
console.log(messages[4]!.text.split("\n").slice(0, 2).join("\n"));
// → <mcp_response server="files" tool="list_directory" trust="untrusted">
// → [FILE] 01-connect.ts

// %% 3. The thread remembers
// The promotion is in graph state: later turns, and other processes with the same checkpointer,
// have the tool at once.
await agent.invoke({ messages: "And now?" }, thread);
const { values } = (await agent.graph.getState(thread)) as {
  values: { mcpActivation: McpActivation };
};
console.log(Object.keys(values.mcpActivation.promoted));
// → [ 'mcp__files__list_directory' ]
const after = await previewContext(hub, values, options);
console.log(after.tools.map(({ name }) => name));
// → [ 'search_mcp_tools', 'mcp__files__list_directory' ]
console.log(after.listing === before.listing);
// → true

// %% 4. Small servers need no search
// Pinned tools are bound in every call. Without `defer`, servers are always loaded as long as all
// definitions stay small.
const small = await previewContext(
  hub,
  {},
  { ...options, servers: ["memory"], tools: ["read_graph", "search_nodes"] },
);
console.log(
  small.tools.map(({ name }) => name),
  small.listing === "",
);
// → [ 'mcp__memory__read_graph', 'mcp__memory__search_nodes' ] true
