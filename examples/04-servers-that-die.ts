// Connections: a server is killed and comes back, forgets its session, goes silent, and is left
// alone for a while. Run it with `npx tsx examples/04-servers-that-die.ts`; the servers run in this
// process, no network and no keys.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { McpHub, type McpConnectionError } from "langchain-mcp-middleware";

// %% 1. A small server
// It keeps sessions, as servers do. `mood` is how it behaves from now on.
let mood: "well" | "silent" = "well";
let calls = 0;
const sessions = new Map<string, StreamableHTTPServerTransport>();
async function serve(port = 0): Promise<Server> {
  const server = createServer((request, response) => {
    void (async () => {
      if (mood === "silent") return;
      const id = request.headers["mcp-session-id"];
      let transport = typeof id === "string" ? sessions.get(id) : undefined;
      if (transport === undefined && id !== undefined)
        return void response.writeHead(404).end("Session not found");
      if (transport === undefined) {
        transport = new StreamableHTTPServerTransport({
          sessionIdGenerator: randomUUID,
          onsessioninitialized: (made) => void sessions.set(made, transport!),
        });
        const clock = new McpServer({ name: "clock", version: "1.0.0" });
        clock.registerTool("tell_time", { description: "Tells the time" }, () => {
          calls += 1;
          return { content: [{ type: "text", text: "half past four" }] };
        });
        await clock.connect(transport);
      }
      await transport.handleRequest(request, response);
    })();
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}
let server = await serve();
const { port } = server.address() as AddressInfo;

const hub = new McpHub({
  mcpServers: {
    clock: {
      url: `http://127.0.0.1:${port}/mcp`,
      reconnect: { delayMs: 20 },
      toolTimeoutMs: 100,
      requestTimeoutMs: 2_000,
    },
    notes: { command: "npx", args: ["mcp-server-memory"] },
  },
  warnings: "silent",
  limits: { breakerFailures: 2 },
  timeouts: { breakerOpenMs: 60_000 },
});
const states: string[] = [];
hub.on("connection", ({ serverName, state }) => {
  if (serverName === "clock" && states.at(-1) !== state) states.push(state);
});
await hub.connect();
const [tellTime] = await hub.getTools({ servers: ["clock"] });
const ask = async (): Promise<string> =>
  String(await tellTime!.invoke({}))
    .split("\n")
    .at(-2) ?? "";
console.log(await ask());
// → half past four

// %% 2. It forgets us
// The call is answered with 404: it did not run. A new session is opened and the call is made once
// more.
sessions.clear();
calls = 0;
console.log(await ask(), calls);
// → half past four 1

// %% 3. It is killed and comes back
// The tool that was bound before works again; the other server was never disturbed.
server.close();
server.closeAllConnections();
const away = String(await tellTime!.invoke({}));
console.log(away);
// → Server "clock" did not answer the call of mcp__clock__tell_time: the connection broke. Whether it ran is not known; check before you repeat a call that changes something.
console.log((await hub.callTool("notes", "read_graph")).status);
// → success
server = await serve(port);
while (hub.status()[0]!.state !== "connected")
  await new Promise((resolve) => setTimeout(resolve, 10));
console.log(await ask());
// → half past four
console.log([...new Set(states)]);
// → [ 'connecting', 'connected', 'reconnecting' ]

// %% 4. It goes silent
// Calls time out and are never made twice. After two failures in a row the server is left alone,
// and the model is told until when, so that it does not go on trying.
mood = "silent";
for (let call = 0; call < 2; call += 1)
  await hub
    .callTool("clock", "tell_time")
    .catch((error: unknown) => console.log((error as McpConnectionError).code));
// → REQUEST_TIMEOUT
// → REQUEST_TIMEOUT
await hub
  .callTool("clock", "tell_time")
  .catch((error: unknown) => console.log((error as McpConnectionError).code));
// → BREAKER_OPEN
console.log(String(await tellTime!.invoke({})).replace(/until \S+/, "until …"));
// → Server "clock" is unavailable until … Do not call it before; use other tools.

// %% 5. By hand
// `reconnect` forgets the failures and opens it anew, at once.
mood = "well";
await hub.reconnect("clock");
console.log(
  await ask(),
  hub.status().map(({ serverName, state }) => `${serverName} ${state}`),
);
// → half past four [ 'clock connected', 'notes connected' ]

await hub.close();
server.close();
server.closeAllConnections();
