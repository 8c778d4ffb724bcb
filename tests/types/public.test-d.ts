// Compiled, not run: what must compile, and what must not.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";
import {
  McpConnectionError,
  McpHub,
  mcpMiddleware,
  type McpActivation,
  type McpHubOptions,
  type ServerStatus,
} from "langchain-mcp-middleware";
import { McpHub as CoreHub } from "langchain-mcp-middleware/core";

declare function use(value: unknown): void;

const client = new MultiServerMCPClient({ mcpServers: { a: { command: "node", args: [] } } });
const hub = new McpHub({ a: { command: "node" } });
const same: CoreHub = hub;
use(same);

const agent = createAgent({ model: "openai:x", middleware: [mcpMiddleware(client), mcpMiddleware(hub, { servers: ["a"] })] });

async function state(): Promise<McpActivation> {
  const result = await agent.invoke({ messages: "hi" });
  // @ts-expect-error private keys are not in the result
  use(result._mcpSent);
  return result.mcpActivation;
}
use(state);

// @ts-expect-error a misspelt option
mcpMiddleware(hub, { server: ["a"] });
// @ts-expect-error a wrong kind
const wrong: McpHubOptions = { mcpServers: { a: { command: 5 } } };
use(wrong);
// @ts-expect-error not a client
mcpMiddleware({ hello: 1 });

const states: ServerStatus["state"][] = ["idle", "connecting", "connected", "needs-auth", "failed", "disabled", "closed"];
use(states);

const end: () => void = hub.on("call", ({ serverName, latencyMs, threadId }) => {
  const names: string = serverName;
  const time: number = latencyMs;
  const thread: string | undefined = threadId;
  use([names, time, thread]);
});
use(end);
// @ts-expect-error no such event
hub.on("nope", () => undefined);

declare const error: unknown;
if (McpConnectionError.isInstance(error)) {
  const code: "CONNECT_FAILED" | "CONNECT_TIMEOUT" | "REQUEST_TIMEOUT" | "SESSION_LOST" | "BREAKER_OPEN" | "CLOSED" = error.code;
  use(code);
}
