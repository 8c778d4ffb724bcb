// Prompts as commands: a person types /mcp__server__prompt, on the real server-everything.
// Run it with `npx tsx examples/06-prompts.ts`; it needs no network and no keys.
import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { commandOriginOf, McpHub, mcpMiddleware } from "langchain-mcp-middleware";

await using hub = new McpHub({
  mcpServers: { demo: { command: "npx", args: ["mcp-server-everything"] } },
});
await hub.connect();

// %% 1. What can be typed
// For the menu of a user interface. Names are made from the server's own names, so that they can be
// typed.
const commands = await hub.listCommands();
for (const { name, arguments: args } of commands)
  console.log(`/${name}`, ...args.map((arg) => arg.name));
// → /mcp__demo__simple-prompt
// → /mcp__demo__args-prompt city state
// → /mcp__demo__completable-prompt department name
// → /mcp__demo__resource-prompt resourceType resourceId

// %% 2. Complete what is being typed
// The server knows who is in a department that was chosen before.
const argument = { name: "name", value: "" };
const known = { arguments: { department: "Engineering" } };
console.log(
  (await hub.completeArgument("demo", { promptName: "completable-prompt" }, argument, known))
    .values,
);
// → [ 'Alice', 'Bob', 'Charlie' ]

// %% 3. Type it
// The prompt is got when it is typed; its messages take the command's place, and say where they are
// from.
const model = fakeModel()
  .respond(new AIMessage("Sunny."))
  .respond(new AIMessage("It is about the number 3."));
const agent = createAgent({
  model,
  middleware: [mcpMiddleware(hub)],
  checkpointer: new MemorySaver(),
});
const thread = { configurable: { thread_id: "1" } };
const say = async (text: string) => (await agent.invoke({ messages: text }, thread)).messages;
const [question, answer] = await say("/mcp__demo__args-prompt city=Paris");
console.log(question!.text, answer!.text);
// → What's weather in Paris? Sunny.
console.log(commandOriginOf(question!)?.text);
// → /mcp__demo__args-prompt city=Paris

// %% 4. Values in order, an embedded resource
const embedded = await say("/mcp__demo__resource-prompt Text 3");
console.log(embedded.at(-2)!.text.split("\n")[0]);
// → Resource @demo:demo://resource/dynamic/text/3:

// %% 5. Something is missing
// The person is told how it is typed; the model is not called.
console.log((await say("/mcp__demo__args-prompt")).at(-1)!.text);
// → "city" is missing.
// → Usage: /mcp__demo__args-prompt city=… [state=…]
// →   city: required; Name of the city
// →   state
console.log(model.callCount);
// → 2

// %% 6. Servers of this conversation
console.log((await say("/mcp disable demo")).at(-1)!.text);
// → Server demo is disabled in this conversation.
