import { McpHub, type McpHubOptions } from "../../src/index.js";
import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";

/** Tools of a server for policy tests: the hints say what each does, the calls are counted. */
export const POLICY_TOOLS = [
  { name: "get_page", description: "Reads a page", annotations: { readOnlyHint: true } },
  { name: "put_page", description: "Writes a page", annotations: { destructiveHint: false } },
  { name: "drop_page", description: "Deletes a page", annotations: { destructiveHint: true } },
  { name: "drop_wiki", description: "Deletes everything", annotations: { destructiveHint: true } },
].map((tool) => ({
  ...tool,
  inputSchema: { type: "object", properties: { page: { type: "string" } } },
}));

type PolicyServerOptions = Partial<McpHubOptions> & { readonly server?: object };

/** Rules for them: reading is free, writing is asked, the wiki is not dropped. */
export const RULES: PolicyServerOptions = {
  policy: {
    deny: ["mcp:call:wiki:drop_wiki"],
    ask: ["mcp:call:wiki:put_*", "mcp:call:wiki:drop_page"],
  },
};

/** A hub with a policy on a server that counts. */
export interface PolicyServer extends AsyncDisposable {
  readonly hub: McpHub;
  readonly http: HttpFixture;
  /** How often each tool ran, by raw name. */
  readonly ran: Record<string, number>;
}

/** Starts the server and makes the hub. */
export async function policyServer(options: PolicyServerOptions = RULES): Promise<PolicyServer> {
  const { server = {}, ...rest } = options;
  const http = await serveHttp({ name: "wiki", noBase: true, tools: POLICY_TOOLS });
  const hub = new McpHub({
    mcpServers: { wiki: { url: http.url, trustAnnotations: true, ...server } },
    warnings: "silent",
    ...rest,
    timeouts: { startupDeadlineMs: 20_000 },
    limits: { autoDeferChars: 0 },
  });
  return {
    hub,
    http,
    ran: http.stats.callsByTool,
    [Symbol.asyncDispose]: async () => {
      await hub.close();
      await http.close();
    },
  };
}
