// Connect: give a hub your servers, see what is there, call a tool, close.
// Run it with `npx tsx examples/01-connect.ts`; it needs no network and no keys.
import { McpHub } from "langchain-mcp-middleware";

// %% 1. Name your servers
// The configuration is the one you know from MultiServerMCPClient and from mcp.json. Nothing is
// opened yet.
await using hub = new McpHub({
  mcpServers: {
    everything: { command: "npx", args: ["mcp-server-everything"] },
    memory: {
      command: "npx",
      args: ["mcp-server-memory"],
      description: "Remembers facts as a graph",
    },
    tracker: {
      url: "http://127.0.0.1:9/mcp",
      headers: { Authorization: "Bearer ${TRACKER_TOKEN:-none}" },
    },
  },
});
console.log(hub.status().map(({ serverName, state }) => `${serverName} ${state}`));
// → [ 'everything idle', 'memory idle', 'tracker idle' ]

// %% 2. Connect
// Servers are opened side by side. One that cannot be reached never takes the others away; it is
// reported by name.
hub.on("warning", () => undefined);
const { connected, failed } = await hub.connect();
console.log(connected);
// → [ 'everything', 'memory' ]
console.log(failed.map(({ serverName, error }) => `${serverName}: ${error.code}`));
// → [ 'tracker: CONNECT_FAILED' ]

// %% 3. Look for a tool
// This is the search the model uses.
console.log((await hub.search("add two numbers", { limit: 1 })).map(({ name }) => name));
// → [ 'mcp__everything__get-sum' ]

// %% 4. Call it
// Arguments are repaired and checked, the result says where it came from. What is not for the model
// is in the artifact.
const { content, artifact } = await hub.callTool("everything", "get-sum", { a: 2, b: 3 });
console.log(content);
// → <mcp_response server="everything" tool="get-sum" trust="untrusted">
// → The sum of 2 and 3 is 5.
// → </mcp_response>
console.log(artifact.isError);
// → false

// %% 5. Errors name the server, the tool and the fix
console.log(
  await hub
    .callTool("everything", "get-sum", { a: 2 })
    .catch((error: unknown) => (error as Error).message.split("Expected")[1]),
);
// → : a: number (required), b: number (required).

// %% 6. Close
// `await using` closes the hub at the end of the block: sessions, processes and all they started.
