// What the strategies send, by real model clients to a loopback server that records it.
import { createAgent } from "langchain";

import { McpHub, mcpMiddleware, type McpAgentOptions } from "../../src/index.js";
import { serveModel, type ModelServer } from "../support/modelServer.js";
import { stdioFixture } from "../support/servers.js";

let models: ModelServer;
beforeAll(async () => {
  models = await serveModel();
});
afterAll(() => models.close());

type Sent = { readonly tools?: readonly Record<string, unknown>[] };

async function run(
  wire: Parameters<ModelServer["client"]>[0],
  options: McpAgentOptions,
  answers: unknown[],
): Promise<Sent[]> {
  await using hub = new McpHub({
    mcpServers: { s: stdioFixture({ tools: 6, noBase: true }) },
    policy: { deny: ["mcp:call:s:tool_0005"] },
    timeouts: { startupDeadlineMs: 20_000 },
    limits: { autoDeferChars: 0 },
  });
  const agent = createAgent({
    model: models.client(wire),
    middleware: [mcpMiddleware(hub, options)],
  });
  models.requests.length = 0;
  models.answers.push(...(answers as typeof models.answers));
  await agent.invoke({ messages: "go" });
  return models.requests.map((body) => body as Sent);
}

const CALL = [{ id: "call_1", name: "mcp__s__tool_0001", args: { query: "x" } }];
const nameOf = (tool: Record<string, unknown>): string =>
  String(tool["name"] ?? (tool["function"] as { name?: string } | undefined)?.name ?? tool["type"]);

describe("strategy provider", () => {
  it.each(["anthropic", "openai-responses"] as const)(
    "sends unbound tools with defer_loading and the provider's search: %s",
    async (wire) => {
      const [first, second] = await run(wire, { strategy: "provider" }, [CALL, "done"]);
      const deferred = (sent: Sent | undefined) =>
        (sent?.tools ?? []).filter((tool) => tool["defer_loading"] === true).map(nameOf);
      expect(deferred(first)).toEqual(
        ["0000", "0001", "0002", "0003", "0004"].map((number) => `mcp__s__tool_${number}`),
      );
      const names = first!.tools!.map(nameOf);
      expect(names.some((name) => name.startsWith("tool_search"))).toBe(true);
      expect(names).not.toContain("search_mcp_tools");
      expect(JSON.stringify(first)).not.toContain("tool_0005");
      // A call changes no byte of what stands before the history.
      expect(JSON.stringify(second!.tools)).toBe(JSON.stringify(first!.tools));
    },
  );

  it("keeps search_mcp_tools for tools over the limit", async () => {
    const [first] = await run("anthropic", { strategy: "provider", maxProviderTools: 2 }, ["done"]);
    expect(first!.tools!.map(nameOf)).toEqual([
      "search_mcp_tools",
      "mcp__s__tool_0000",
      "mcp__s__tool_0001",
      "tool_search_tool_bm25",
    ]);
  });

  it("sends tools that search_mcp_tools found without defer_loading", async () => {
    const search = [
      {
        id: "call_1",
        name: "search_mcp_tools",
        args: { query: "mcp__s__tool_0001 mcp__s__tool_0004", limit: 1 },
      },
    ];
    const [, second] = await run("anthropic", { strategy: "provider", maxProviderTools: 2 }, [
      search,
      "done",
    ]);
    const sent = second!.tools!.map((tool) => [nameOf(tool), tool["defer_loading"] === true]);
    expect(sent).toContainEqual(["mcp__s__tool_0001", false]);
    expect(sent).toContainEqual(["mcp__s__tool_0004", false]);
  });

  it("falls back to promote for other models", async () => {
    const [first, second] = await run("openai-chat", { strategy: "provider" }, [CALL, "done"]);
    expect(first!.tools!.map(nameOf)).toEqual(["search_mcp_tools"]);
    expect(second!.tools!.map(nameOf)).toEqual(["search_mcp_tools", "mcp__s__tool_0001"]);
  });
});

describe("strategy execute", () => {
  it("sends the same tools in every request, byte by byte", async () => {
    const search = [
      { id: "call_1", name: "search_mcp_tools", args: { query: "warehouse records" } },
    ];
    const execute = [
      {
        id: "call_2",
        name: "execute_mcp_tool",
        args: { name: "mcp__s__tool_0001", arguments: { query: "x" } },
      },
    ];
    const requests = await run("openai-chat", { strategy: "execute" }, [
      search,
      execute,
      CALL,
      "done",
    ]);
    expect(requests).toHaveLength(4);
    expect(new Set(requests.map(({ tools }) => JSON.stringify(tools))).size).toBe(1);
    expect(requests[0]!.tools!.map(nameOf)).toEqual(["execute_mcp_tool", "search_mcp_tools"]);
  });
});
