// Resources: a person names a file as @server:uri and the model reads it, on the real
// server-everything. Run it with `npx tsx examples/05-resources.ts`; it needs no network and no
// keys.
import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import {
  McpHub,
  mcpMiddleware,
  previewContext,
  type McpThreadState,
} from "langchain-mcp-middleware";

await using hub = new McpHub({
  mcpServers: {
    demo: { command: "npx", args: ["mcp-server-everything"] },
    files: { command: "npx", args: ["mcp-server-filesystem", "examples"] },
  },
  policy: { deny: ["mcp:read:demo:*architecture*"] },
});
await hub.connect();

const call = (id: string, name: string, args: Record<string, unknown>) => ({
  type: "tool_call" as const,
  id,
  name,
  args,
});
const model = fakeModel()
  .respond(new AIMessage("The server has tools, prompts and resources."))
  .respond(
    new AIMessage({
      content: "",
      tool_calls: [
        call("list", "mcp_resources_list", { server: "demo" }),
        call("read", "mcp_resources_read", {
          server: "demo",
          uri: "demo://resource/dynamic/text/7",
        }),
      ],
    }),
  )
  .respond(new AIMessage("I made one."))
  .respond(new AIMessage("I cannot read those."));
const agent = createAgent({
  model,
  middleware: [mcpMiddleware(hub)],
  checkpointer: new MemorySaver(),
});
const thread = { configurable: { thread_id: "1" } };
const say = async (text: string) => (await agent.invoke({ messages: text }, thread)).messages;
const state = async () => (await agent.graph.getState(thread)).values as McpThreadState;

// %% 1. Mention a resource
// It is read once, before the run begins, and stands at the end of the system prompt in every model
// call.
await say("Summarise @demo:demo://resource/static/document/features.md, please.");
const [features = ""] = (await previewContext(hub, await state())).resources;
console.log(features.split("\n").slice(0, 2).join("\n"));
// → <MCP_RESOURCE server="demo" uri="demo://resource/static/document/features.md" mimeType="text/markdown">
// → # Everything Server - Features

// %% 2. The model looks for itself
// Two tools appear because a server has resources. Templates are listed too; a URI made from one
// can be read.
const messages = await say("Is there one about the number 7?");
const textOf = (id: string) =>
  messages.find((message) => "tool_call_id" in message && message.tool_call_id === id)!.text;
console.log(textOf("list").split("\n").at(-2));
// → - @demo:demo://resource/dynamic/text/{resourceId} (Dynamic Text Resource; text/plain; Plaintext dynamic resource fabricated from the {resourceId} variable, which must be an integer.) [template: fill in the braces]
console.log(textOf("read").includes("Resource 7: This is a plaintext resource"));
// → true

// %% 3. What cannot be read says why, and the rest goes on
// A server without resources, a denied one: nothing was sent for the second.
await say("Compare @files:file:///a.md with @demo:demo://resource/static/document/architecture.md");
const { resources } = await previewContext(hub, await state());
for (const block of resources.slice(1)) console.log(block.split("\n")[1]);
// → <error>Server "files" has no resources that can be read. Use its tools instead.</error>
// → <error>The policy does not allow this resource.</error>

// %% 4. What is attached, for a user interface
for (const { serverName, uri, isError } of (await state()).cachedMcpResources!)
  console.log(serverName, uri, isError ? "✗" : "✓");
// → demo demo://resource/static/document/features.md ✓
// → files file:///a.md ✗
// → demo demo://resource/static/document/architecture.md ✗
