import { McpHub, type McpHubOptions } from "../../src/core.js";
import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";

/** Servers and hubs of a test, all closed by one call. */
export function serving() {
  const open: { close: () => Promise<unknown> }[] = [];
  return {
    /** Starts a fixture server with one tool. */
    serve: async (options: Record<string, unknown> = {}): Promise<HttpFixture> => {
      const http = await serveHttp({
        noBase: true,
        tools: [{ name: "look", inputSchema: { type: "object" } }],
        ...options,
      });
      open.unshift(http);
      return http;
    },
    hubOf: (servers: McpHubOptions["mcpServers"], more: Partial<McpHubOptions> = {}): McpHub => {
      const hub = new McpHub({
        mcpServers: servers,
        warnings: "silent",
        ...more,
        timeouts: { startupDeadlineMs: 20_000, ...more.timeouts },
      });
      open.push(hub);
      return hub;
    },
    /** Closes this, too. */
    also: (other: { close: () => Promise<unknown> }): void => void open.push(other),
    closeAll: () => Promise.all(open.splice(0).map((one) => one.close())),
  };
}
