import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import { randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

/** What a real server answered, recorded. */
export interface Recording {
  readonly file: string;
  readonly serverInfo?: {
    readonly name?: string;
    readonly title?: string;
    readonly version?: string;
  };
  readonly instructions?: string;
  readonly capabilities?: { readonly resources?: unknown };
  readonly tools: readonly {
    readonly name: string;
    readonly description?: string;
    readonly inputSchema: unknown;
  }[];
}

const folders = ["../../shared/data/real-servers", "../tests/fixtures/recordings"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

/**
 * Where the recordings of real servers lie: the full set where it is there, else the few that come
 * with the tests.
 */
export const RECORDINGS =
  process.env["MCP_RECORDINGS"] ?? folders.find((folder) => existsSync(folder))!;

/** The recorded real servers; by default one configuration of each. */
export function loadRecordings(which: "each" | "all" = "each"): Recording[] {
  return readdirSync(RECORDINGS)
    .filter((file) => file.endsWith(".json") && (which === "all" || !file.includes("--")))
    .sort()
    .map((file) => ({
      ...(JSON.parse(readFileSync(`${RECORDINGS}/${file}`, "utf8")) as Omit<Recording, "file">),
      file,
    }));
}

/**
 * Serves recordings as live MCP servers over streamable HTTP on loopback. Lists are sent as
 * recorded, faults included.
 */
export async function serveRecordings(
  recordings: readonly Recording[],
): Promise<{ urls: string[]; close: () => Promise<void> }> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const http: HttpServer = createServer((request, response) => {
    void (async () => {
      let text = "";
      for await (const chunk of request.setEncoding("utf8")) text += chunk as string;
      const body = text === "" ? undefined : (JSON.parse(text) as { method?: string });
      let transport = sessions.get(String(request.headers["mcp-session-id"]));
      if (transport === undefined && body?.method === "initialize") {
        const made = new StreamableHTTPServerTransport({
          sessionIdGenerator: () => randomUUID(),
          onsessioninitialized: (id) => void sessions.set(id, made),
        });
        transport = made;
        await recordedServer(recordings[Number(request.url!.split("/")[1])]!).connect(made);
      }
      if (transport === undefined) response.writeHead(404).end();
      else await transport.handleRequest(request, response, body);
    })();
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address() as AddressInfo;
  return {
    urls: recordings.map((_, index) => `http://127.0.0.1:${port}/${index}/mcp`),
    close: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

// The low-level server sends lists as they were recorded, also where they break the specification.
/* eslint-disable @typescript-eslint/no-deprecated */
function recordedServer({
  file,
  serverInfo,
  instructions,
  tools,
  capabilities,
}: Recording): Server {
  const info = {
    name: serverInfo?.name ?? file,
    version: serverInfo?.version ?? "1",
    ...(serverInfo?.title === undefined ? {} : { title: serverInfo.title }),
  };
  // Resources are announced as recorded, for that binds tools of ours.
  const offered = {
    tools: {},
    ...(capabilities?.resources === undefined ? {} : { resources: {} }),
  };
  const server = new Server(info, {
    capabilities: offered,
    ...(instructions ? { instructions } : {}),
  });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools as never }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: "text", text: JSON.stringify(params) }],
  }));
  return server;
}
