import { InMemoryStore } from "@langchain/core/stores";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";

import { McpHub, mcpMiddleware } from "../../src/index.js";
import { answersOf, calling, scripted } from "../support/agents.js";
import { stdioFixture } from "../support/servers.js";

describe("large results", () => {
  it("are cut for the model, kept whole in the result store, and do not enlarge the state", async () => {
    const resultStore = new InMemoryStore<unknown>();
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture() },
      resultStore,
      timeouts: { startupDeadlineMs: 20_000 },
      limits: { maxResultChars: 5_000 },
    });
    const checkpointer = new MemorySaver();
    const agent = createAgent({
      model: scripted(calling({ name: "mcp__s__big", args: { n: 2_000_000 }, id: "1" }), "done"),
      checkpointer,
      middleware: [mcpMiddleware(hub)],
    });
    const thread = { configurable: { thread_id: "1" } };
    const { text, artifact } = answersOf((await agent.invoke({ messages: "go" }, thread)).messages)[
      "1"
    ]! as {
      text: string;
      artifact: { truncated: { totalChars: number; storeKey: string } };
    };
    expect(text.length).toBeLessThan(5_300);
    expect(text).toContain("is kept outside of this conversation");
    expect(artifact.truncated.totalChars).toBeGreaterThan(2_000_000);
    const [whole] = await resultStore.mget([artifact.truncated.storeKey]);
    expect(JSON.stringify(whole).length).toBeGreaterThan(2_000_000);
    expect(JSON.stringify(whole)).toContain('"toolName":"big"');
    expect(JSON.stringify((await agent.graph.getState(thread)).values).length).toBeLessThan(30_000);
  });

  it("say that they were lost when there is no store, and when the store fails", async () => {
    const warnings: string[] = [];
    const resultStore = { mset: () => Promise.reject(new Error("disk full")) };
    for (const store of [undefined, resultStore]) {
      await using hub = new McpHub({ mcpServers: { s: stdioFixture() }, resultStore: store });
      hub.on("warning", ({ code }) => warnings.push(code));
      const { content, artifact } = await hub.callTool("s", "big", { n: 2_000_000 });
      expect(content).toContain("could not be kept");
      expect(artifact.truncated).toEqual({ totalChars: expect.any(Number) });
    }
    expect(warnings).toEqual(["RESULT_NOT_STORED"]);
  });

  it("have a limit per server, and the whole text stays in the artifact if it fits", async () => {
    await using hub = new McpHub({
      mcpServers: {
        small: stdioFixture({}, { maxResultChars: 1_000 }),
        large: stdioFixture({}, { maxResultChars: 400_000 }),
      },
    });
    const small = await hub.callTool("small", "big", { n: 300_000 });
    expect(small.content.length).toBeLessThan(1_200);
    expect(JSON.stringify(small.artifact.blocks).length).toBeGreaterThan(300_000);
    expect((await hub.callTool("large", "big", { n: 300_000 })).content.length).toBeGreaterThan(
      300_000,
    );
  });

  it("keep the output schema in the tool's metadata", async () => {
    const outputSchema = { type: "object", properties: { n: { type: "number" } } };
    await using hub = new McpHub({
      mcpServers: {
        s: stdioFixture({
          tools: [{ name: "typed", inputSchema: { type: "object" }, outputSchema }],
          noBase: true,
        }),
      },
    });
    expect((await hub.getTools())[0]!.metadata).toMatchObject({ outputSchema });
  });
});
