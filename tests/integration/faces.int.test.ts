import { MultiServerMCPClient } from "@langchain/mcp-adapters";

import { McpHub, type McpWrapOptions } from "../../src/index.js";
import { serveHttp } from "../fixtures/servers/http.mjs";
import { calling } from "../support/agents.js";
import { converse, FACES } from "../support/conversation.js";

const TOOLS = [
  {
    name: "get_page",
    description: "Reads a page of the wiki",
    annotations: { readOnlyHint: true },
  },
  { name: "put_page", description: "Writes a page of the wiki" },
  { name: "drop_wiki", description: "Deletes everything" },
].map((tool) => ({
  ...tool,
  inputSchema: { type: "object", properties: { page: { type: "string" } }, required: ["page"] },
}));
const SERVER = {
  name: "wiki",
  noBase: true,
  tools: TOOLS,
  resources: {
    "wiki://home": { text: "welcome" },
    "wiki://secret": { text: "secret" },
    "wiki://asked": { text: "asked" },
  },
  prompts: [{ name: "review", arguments: [{ name: "page", required: true }] }],
  promptMessages: {
    review: ({ page }: { page: string }) => [
      { role: "user", content: { type: "text", text: `Review ${page}` } },
    ],
  },
};
const POLICY = {
  deny: ["mcp:call:wiki:drop_wiki", "mcp:read:wiki:*secret"],
  ask: ["mcp:call:wiki:put_page", "mcp:read:wiki:*asked"],
};
const SETTINGS: McpWrapOptions = {
  policy: POLICY,
  warnings: "silent",
  limits: { autoDeferChars: 0 },
  timeouts: { startupDeadlineMs: 20_000 },
};

async function use(
  kind: string,
  run: (hub: McpHub, stats: Awaited<ReturnType<typeof serveHttp>>["stats"]) => Promise<void>,
): Promise<void> {
  const http = await serveHttp({ ...SERVER });
  const client =
    kind === "wrapped"
      ? new MultiServerMCPClient({ mcpServers: { wiki: { transport: "http", url: http.url } } })
      : undefined;
  const hub =
    client === undefined
      ? new McpHub({ ...SETTINGS, mcpServers: { wiki: { url: http.url } } })
      : McpHub.wrap(client, SETTINGS);
  try {
    await run(hub, http.stats);
  } finally {
    await hub.close();
    await client?.close();
    await http.close();
  }
}

const call = (id: string, name: string, args: object = { page: "home" }) =>
  calling({ id, name, args: args as Record<string, unknown> });

describe.each(["managed", "wrapped"])("%s servers", (kind) => {
  describe.each(FACES)("in %s", (face) => {
    it("never run an abandoned call later", () =>
      use(kind, async (hub, stats) => {
        const both = calling(
          { id: "put", name: "mcp__wiki__put_page", args: { page: "a" } },
          { id: "get", name: "mcp__wiki__get_page", args: { page: "a" } },
        );
        const { say } = converse(hub, [both, "done"], { face });
        const given = await say("write it", { decide: () => [] });
        const before = { ...stats.callsByTool };
        expect(before["put_page"]).toBeUndefined();
        expect(given.asked?.actionRequests).toHaveLength(1);
        // The person speaks on; what is asked about is another thing.
        const { asked } = await say("never mind. What is in @wiki:wiki://asked ?", {
          decide: () => [{ type: "approve" }],
        });
        expect(asked?.actionRequests.map(({ operation }) => operation)).toEqual(["read"]);
        expect(stats.callsByTool).toEqual(before);
      }));

    it("disclose, find, promote and call", () =>
      use(kind, async (hub, stats) => {
        const { say, seen } = converse(
          hub,
          [
            call("1", "search_mcp_tools", { query: "read a page" }),
            call("2", "mcp__wiki__get_page"),
            "done",
          ],
          { face },
        );
        const { answers, last } = await say("read it");
        expect(seen[0]!.system).toContain("<AVAILABLE_MCP_TOOLS>");
        expect(seen[0]!.system).not.toContain("drop_wiki");
        expect(new Set(seen.map(({ system }) => system)).size).toBe(1);
        expect(answers["1"]!.text).toContain("mcp__wiki__get_page");
        expect(answers["2"]!.text).toContain('"called":"get_page"');
        expect([last, stats.callsByTool]).toEqual(["done", { get_page: 1 }]);
      }));

    it("call unbound tools, correct names and refuse unknown ones", () =>
      use(kind, async (hub, stats) => {
        const calls = [
          call("1", "mcp__wiki__get_page"),
          call("2", "get_page"),
          call("3", "mcp__wiki__drop_wiki"),
          call("4", "mcp__wiki__get_page", {}),
        ];
        const { answers } = await converse(hub, calls, { face }).say("go");
        expect(Object.values(answers).map(({ status }) => status)).toEqual([
          "success",
          "success",
          "error",
          "error",
        ]);
        expect(answers["3"]!.text).toContain("is not available");
        expect(answers["4"]!.text).toContain("page");
        expect(stats.callsByTool).toEqual({ get_page: 2 });
      }));

    it("ask once before anything of a step runs, and act on the answers", () =>
      use(kind, async (hub, stats) => {
        const step = calling(
          { id: "1", name: "mcp__wiki__put_page", args: { page: "a" } },
          { id: "2", name: "mcp__wiki__put_page", args: { page: "b" } },
          { id: "3", name: "mcp__wiki__get_page", args: { page: "c" } },
        );
        const { answers, asked } = await converse(hub, [step, "done"], { face }).say("go", {
          decide: ({ actionRequests }) =>
            actionRequests.map((_request, index) => ({ type: index === 0 ? "approve" : "reject" })),
        });
        expect(asked?.actionRequests.map(({ callId, args }) => [callId, args])).toEqual([
          ["1", { page: "a" }],
          ["2", { page: "b" }],
        ]);
        expect(answers["1"]!.text).toContain('"page":"a"');
        expect(answers["2"]!.text).toContain("A person rejected this call");
        expect(stats.callsByTool).toEqual({ put_page: 1, get_page: 1 });
      }));

    it("attach resources and run commands", () =>
      use(kind, async (hub, stats) => {
        const { say, seen } = converse(hub, [], { face });
        await say("read @wiki:wiki://home and @wiki:wiki://secret");
        expect(seen[0]!.system).toContain(
          '<MCP_RESOURCE server="wiki" uri="wiki://home">\nwelcome\n</MCP_RESOURCE>',
        );
        expect(seen[0]!.system).toContain("The policy does not allow this resource.");
        expect(stats.reads).toEqual({ "wiki://home": 1 });
        const { messages } = await say("/mcp__wiki__review page=home");
        expect(messages.at(-2)!.text).toBe("Review home");
        expect(seen).toHaveLength(2);
        const usage = await say("/mcp__wiki__review");
        expect(usage.last).toContain('"page" is missing.');
        await say("/mcp disable wiki");
        expect(seen).toHaveLength(2);
        await say("hello");
        expect(seen[2]!.system).not.toContain("mcp__wiki");
        expect(seen[2]!.messages.at(-1)!.text).toBe("hello");
      }));

    it("run tools by execute_mcp_tool, with the policy of the tool it names", () =>
      use(kind, async (hub, stats) => {
        const execute = (id: string, name: string, args: unknown) =>
          call(id, "execute_mcp_tool", { name, arguments: args });
        const { say, seen } = converse(
          hub,
          [
            call("1", "search_mcp_tools", { query: "read a page" }),
            execute("2", "mcp__wiki__get_page", { page: "home" }),
            execute("3", "mcp__wiki__get_page", '{"page":"text"}'),
            execute("4", "mcp__wiki__get_page", {}),
            execute("5", "mcp__wiki__drop_wiki", { page: "x" }),
            execute("6", "get_page", { page: "x" }),
            call("7", "execute_mcp_tool", {}),
            "done",
          ],
          { face, options: { strategy: "execute" } },
        );
        const { answers } = await say("go");
        expect(answers["1"]!.text).toContain(
          'arguments: {"type":"object","properties":{"page":{"type":"string"}},"required":["page"]}',
        );
        expect(answers["2"]!.text).toContain('"called":"get_page"');
        expect(answers["3"]!.text).toContain('"page":"text"');
        expect(answers["4"]!.text).toContain('Its arguments: {"type":"object"');
        expect(answers["5"]!.text).toContain('The tool "mcp__wiki__drop_wiki" is not available.');
        expect(answers["6"]!.text).toBe(
          'There is no tool "get_page". Use one of: mcp__wiki__get_page.',
        );
        expect(answers["7"]!.text).toContain('Give the "name" of a tool');
        expect(stats.callsByTool).toEqual({ get_page: 2 });
        expect(new Set(seen.map(({ system }) => system)).size).toBe(1);
      }));

    it("ask about the tool that execute_mcp_tool names, and run the edited arguments", () =>
      use(kind, async (hub, stats) => {
        const step = calling(
          {
            id: "1",
            name: "execute_mcp_tool",
            args: { name: "mcp__wiki__put_page", arguments: { page: "a" } },
          },
          {
            id: "2",
            name: "execute_mcp_tool",
            args: { name: "mcp__wiki__put_page", arguments: { page: "b" } },
          },
        );
        const { answers, asked } = await converse(hub, [step, "done"], {
          face,
          options: { strategy: "execute" },
        }).say("go", {
          decide: () => [
            { type: "edit", editedAction: { args: { page: "edited" } } },
            { type: "reject" },
          ],
        });
        expect(
          asked?.actionRequests.map(({ name, toolName, args, callId }) => [
            name,
            toolName,
            args,
            callId,
          ]),
        ).toEqual([
          ["mcp__wiki__put_page", "put_page", { page: "a" }, "1"],
          ["mcp__wiki__put_page", "put_page", { page: "b" }, "2"],
        ]);
        expect(answers["1"]!.text).toContain('"page":"edited"');
        expect(answers["2"]!.text).toContain("A person rejected this call");
        expect(stats.callsByTool).toEqual({ put_page: 1 });
      }));
  });
});
