// The LangGraph server: the development server from npm with an agent of ours, driven by its own
// SDK client. Run it with `npx tsx examples/09-deployment.ts`; it needs no network and no keys.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";

import { Client } from "@langchain/langgraph-sdk";

// %% 1. Start it
// `langgraph.json` names the agent of `langgraph-server/agent.ts`; the server brings the
// checkpointer.
const probe = createServer().listen(0, "127.0.0.1");
await once(probe, "listening");
const port = String((probe.address() as AddressInfo).port);
probe.close();
const config = "examples/langgraph-server/langgraph.json";
const command = [
  "langgraphjs",
  "dev",
  "--config",
  config,
  "--host",
  "127.0.0.1",
  "--port",
  port,
  "--no-browser",
  "--no-reload",
];
const server = spawn("npx", command, {
  detached: true,
  stdio: ["ignore", "pipe", "inherit"],
  env: { ...process.env, CI: "true" },
});
for await (const line of createInterface(server.stdout))
  if (line.includes("Server running at")) break;
server.stdout.resume();

// %% 2. A run that stops to ask
interface State {
  readonly messages: { readonly content: string }[];
}
const client = new Client({ apiUrl: `http://127.0.0.1:${port}` });
const { thread_id: threadId } = await client.threads.create();
const input = { messages: [{ role: "user", content: "What is 20 and 22?" }] };
for await (const { event, data } of client.runs.stream(threadId, "agent", {
  input,
  streamMode: "custom",
})) {
  if (event === "custom") console.log((data as { type: string; matches: string[] }).matches[0]);
}
// → mcp__demo__get-sum
const { status, interrupts } = await client.threads.get(threadId);
const [{ value }] = Object.values(interrupts ?? {})[0] as [
  { value: { actionRequests: { description: string }[] } },
];
console.log(status);
// → interrupted
console.log(value.actionRequests[0]!.description.split("\n")[0]);
// → MCP server "demo": tool "get-sum" (destructive). Reason: rule "mcp:call:demo:get-sum" says ask.

// %% 3. It is answered, by whichever process of the server takes the run
await client.runs.wait(threadId, "agent", {
  command: { resume: { decisions: [{ type: "approve" }] } },
});
const { values } = await client.threads.getState<State>(threadId);
console.log(values.messages.at(-1)!.content);
// → It is 42.

// %% 4. What the thread keeps
console.log(Object.keys(values).sort().join(" "));
// → _mcpAsked _mcpDecisions _mcpSent mcpActivation messages
process.kill(-server.pid!, "SIGTERM");
await once(server, "close");
