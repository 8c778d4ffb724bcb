import { AIMessage, HumanMessage, SystemMessage, type BaseMessage } from "@langchain/core/messages";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { tool } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import * as z from "zod";

import { createMcpSession, McpHub, type McpSession } from "../../src/chain.js";
import { createMcpTestHub } from "../../src/testing.js";
import { calling, scripted } from "../support/agents.js";
import { stdioFixture } from "../support/servers.js";

let hub: McpHub;
beforeAll(() => {
  hub = new McpHub({
    mcpServers: { s: stdioFixture({ tools: 3 }) },
    warnings: "silent",
    timeouts: { startupDeadlineMs: 20_000 },
    limits: { autoDeferChars: 0 },
  });
});
afterAll(() => hub.close());

const echo = calling({ id: "1", name: "mcp__s__echo", args: { text: "hi" } });

describe("typed input in a pipe", () => {
  it("is handled by the model's Runnable, and answered there without the model", async () => {
    await using test = createMcpTestHub({
      mcpServers: {
        s: {
          recording: { tools: [], prompts: [{ name: "greet" }] },
          prompts: { greet: "Say hello" },
          resources: { "memo://a": "the memo" },
        },
      },
      policy: { ask: ["mcp:read:s:*"] },
    });
    const model = scripted("one", "two", "ok");
    const session = createMcpSession(test.hub, {
      onAsk: () => ({ decisions: [{ type: "approve" }] }),
    });
    const pipe = ChatPromptTemplate.fromMessages([["human", "{q}"]]).pipe(session.model(model));
    expect((await pipe.invoke({ q: "/mcp__s__greet" })).text).toBe("one");
    expect(model.calls[0]!.messages.at(-1)!.text).toBe("Say hello");
    expect((await pipe.invoke({ q: "see @s:memo://a" })).text).toBe("two");
    expect(JSON.stringify(model.calls[1]!.messages)).toContain("the memo");
    expect(session.state._mcpTyped ?? undefined).toBeUndefined();
    expect((await pipe.invoke({ q: "/nope and /mcp__s__nope" })).text).toBe("ok");
    expect((await pipe.invoke({ q: "/mcp disable s" })).text).toContain(
      "is disabled in this conversation",
    );
    expect(model.calls).toHaveLength(3);
  });

  it.each([[undefined], [5], [{ messages: "hi" }]])(
    "a session says which input it accepts: %j",
    async (input) => {
      await expect(
        createMcpSession(hub)
          .loop(scripted("x"))
          .invoke(input as never),
      ).rejects.toThrow(
        "A session takes text, a list of messages, or what a prompt template makes.",
      );
    },
  );

  it("a session refuses a wrong state", () => {
    for (const state of [null, "x", 5])
      expect(() => createMcpSession(hub, { state: state as never })).toThrow('"state" has to be');
  });
});

describe("a session", () => {
  it("pipes into a prompt and a model", async () => {
    const session = createMcpSession(hub);
    const model = scripted(echo, "done");
    const prompt = ChatPromptTemplate.fromMessages([
      ["system", "You are {what}."],
      ["human", "{question}"],
    ]);
    const results = await prompt
      .pipe(session.model(model))
      .pipe(session.tools())
      .invoke({ what: "kind", question: "say hi" });
    expect(results.map(({ text, tool_call_id }) => [tool_call_id, text.includes("hi")])).toEqual([
      ["1", true],
    ]);
    const [system] = model.calls[0]!.messages;
    expect(system!.text.startsWith("You are kind.")).toBe(true);
    expect(system!.text).toContain("<AVAILABLE_MCP_TOOLS>");
    const sent = await prompt.pipe(session.context()).invoke({ what: "kind", question: "again" });
    expect(sent.map(({ type }) => type)).toEqual(["system", "human"]);
  });

  it("returns what to send, and keeps promotions as JSON", async () => {
    const session = createMcpSession(hub, { systemPrompt: new SystemMessage("Be brief.") });
    const typed = new HumanMessage("find");
    const { messages, answer } = await session.begin([typed]);
    expect([answer, typed.id, messages[0]!.id === undefined]).toEqual([
      undefined,
      undefined,
      false,
    ]);
    const { tools } = await session.prepare(messages);
    expect(tools.map(({ name }) => name)).toEqual(["search_mcp_tools"]);
    await session.runTools(calling({ id: "1", name: "search_mcp_tools", args: { query: "echo" } }));
    const later = createMcpSession(hub, {
      state: JSON.parse(JSON.stringify(session.state)) as McpSession["state"],
    });
    expect((await later.prepare(messages)).tools.map(({ name }) => name)).toContain("mcp__s__echo");
  });

  it("ends the loop at its limit, with all messages so far", async () => {
    const session = createMcpSession(hub);
    const error = await session
      .loop(scripted(echo, echo, echo), { maxSteps: 2 })
      .invoke("go")
      .catch((thrown: unknown) => thrown as { code: string; messages: BaseMessage[] });
    expect(error).toMatchObject({ code: "STEP_LIMIT" });
    expect((error as { messages: BaseMessage[] }).messages.map(({ type }) => type)).toEqual([
      "human",
      "ai",
      "tool",
      "ai",
      "tool",
    ]);
    expect(() => session.loop(scripted(), { maxSteps: 0 })).toThrow(
      '"maxSteps" has to be a whole number of at least 1',
    );
  });

  it("runs own tools as well, and says why one cannot run", async () => {
    const own = tool(({ x }) => `own ${x}`, { name: "own", schema: z.object({ x: z.string() }) });
    const broken = tool(() => Promise.reject(new Error("boom")), {
      name: "broken",
      schema: z.object({}),
    });
    const commanding = tool(() => new Command({ goto: "x" }), {
      name: "commanding",
      schema: z.object({}),
    });
    const session = createMcpSession(hub, { ownTools: [own, broken, commanding] });
    const calls = calling(
      { id: "1", name: "own", args: { x: "a" } },
      { id: "2", name: "broken" },
      { id: "3", name: "commanding" },
      { id: "4", name: "nobody" },
      { id: "5", name: "mcp__s__echo", args: { text: "hi" } },
    );
    const results = await session.runTools(calls);
    expect(results.map(({ status, text }) => [status, text.slice(0, 40)])).toEqual([
      ["success", "own a"],
      ["error", "The tool failed: boom"],
      ["error", "commanding answered with a Command, whic"],
      ["error", 'There is no tool "nobody". Tools: own, b'],
      ["success", expect.stringContaining("<mcp_response") as string],
    ]);
    expect(() => createMcpSession(hub, { ownTools: [own, own] })).toThrow(
      '"ownTools" has two tools of the name "own"',
    );
    expect(() => createMcpSession({} as never)).toThrow("needs a McpHub or a MultiServerMCPClient");
    expect(() => createMcpSession(hub, { serves: ["s"] } as never)).toThrow("serves");
  });

  it("answers a command without a model call", async () => {
    const model = scripted(new AIMessage("never"));
    const messages = await createMcpSession(hub).loop(model).invoke("/mcp");
    expect(messages.at(-1)!.text).toContain("- s: connected");
    expect(model.callCount).toBe(0);
  });
});
