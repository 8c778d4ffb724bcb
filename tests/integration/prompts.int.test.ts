import { join } from "node:path";

import { answersOf, calling } from "../support/agents.js";
import { serving } from "../support/serving.js";
import { converse } from "../support/conversation.js";

const EVERYTHING = {
  command: process.execPath,
  args: [join("node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")],
};

const { serve, hubOf, closeAll } = serving();
afterEach(closeAll);

const said = (text: string, role = "user") => ({ role, content: { type: "text", text } });
const TRIAGE = {
  prompts: [
    {
      name: "triage",
      description: "Sorts an issue",
      arguments: [
        { name: "priority", description: "How urgent", required: true },
        { name: "note" },
      ],
    },
    { name: "My Prompt", title: "A Title" },
  ],
  promptMessages: {
    triage: ({ priority, note }: Record<string, string>) => [
      said(`Triage as ${priority}${note === undefined ? "" : `: ${note}`}`),
    ],
    "My Prompt": [said("mine")],
  },
};

describe("prompts of server-everything as commands", () => {
  it("get a prompt with arguments, one with an embedded resource, and answer a missing argument without a model call", async () => {
    const { say } = converse(hubOf({ everything: EVERYTHING }));
    const weather = await say("/mcp__everything__args-prompt city=Paris state=Texas");
    expect(weather.calls[0]!.messages.map(({ text }) => text)).toEqual([
      "What's weather in Paris, Texas?",
    ]);
    const embedded = await say("/mcp__everything__resource-prompt Text 3");
    expect(embedded.calls[0]!.messages.slice(2).map(({ text }) => text)).toEqual([
      "This prompt includes the Text resource with id: 3. Please analyze the following resource:",
      expect.stringMatching(
        /^Resource @everything:demo:\/\/resource\/dynamic\/text\/3:\nResource 3: This is a plaintext resource/,
      ) as string,
    ]);
    const missing = await say("/mcp__everything__args-prompt");
    expect(missing.calls).toEqual([]);
    expect(missing.last).toBe(
      '"city" is missing.\nUsage: /mcp__everything__args-prompt city=… [state=…]\n  city: required; Name of the city\n  state',
    );
  });

  it("are listed and completed", async () => {
    const hub = hubOf({ everything: EVERYTHING });
    const commands = await hub.listCommands();
    expect(commands.map(({ name }) => name)).toEqual([
      "mcp__everything__simple-prompt",
      "mcp__everything__args-prompt",
      "mcp__everything__completable-prompt",
      "mcp__everything__resource-prompt",
    ]);
    expect(commands[1]).toEqual({
      name: "mcp__everything__args-prompt",
      title: "Arguments Prompt",
      description: "A prompt with two arguments, one required and one optional",
      arguments: [
        { name: "city", description: "Name of the city", required: true },
        { name: "state", required: false },
      ],
      source: "mcp",
      serverName: "everything",
      promptName: "args-prompt",
    });
    const prompt = { promptName: "completable-prompt" };
    expect(
      await hub.completeArgument("everything", prompt, { name: "department", value: "E" }),
    ).toEqual({
      values: ["Engineering"],
      total: 1,
      hasMore: false,
    });
    const known = { arguments: { department: "Engineering" } };
    expect(
      (await hub.completeArgument("everything", prompt, { name: "name", value: "" }, known)).values,
    ).toEqual(["Alice", "Bob", "Charlie"]);
    const template = { uriTemplate: "demo://resource/dynamic/text/{resourceId}" };
    expect(
      (await hub.completeArgument("everything", template, { name: "resourceId", value: "7" }))
        .values,
    ).toEqual(["7"]);
  });
});

describe("commands", () => {
  it("fetch the prompt each time, and its messages replace what was typed", async () => {
    const http = await serve(TRIAGE);
    const { say } = converse(hubOf({ tracker: { url: http.url } }));
    await say("hello");
    const { messages, calls } = await say('/mcp__tracker__triage priority=high "it broke"');
    expect(calls[0]!.messages.map(({ text }) => text)).toEqual([
      "hello",
      "ok",
      "Triage as high: it broke",
    ]);
    expect(messages.map(({ text }) => text)).toEqual([
      "hello",
      "ok",
      "Triage as high: it broke",
      "ok",
    ]);
    expect(messages[2]!.additional_kwargs).toEqual({
      mcpCommand: {
        serverName: "tracker",
        promptName: "triage",
        arguments: { priority: "high", note: "it broke" },
        text: '/mcp__tracker__triage priority=high "it broke"',
      },
    });
    await say("/mcp__tracker__triage low");
    expect(http.stats.gets).toEqual([
      { name: "triage", args: { priority: "high", note: "it broke" } },
      { name: "triage", args: { priority: "low" } },
    ]);
  });

  it("are named by the prompt's name in a form that can be typed, never by its title", async () => {
    const http = await serve(TRIAGE);
    const hub = hubOf({ "my tracker": { url: http.url } });
    expect((await hub.listCommands()).map(({ name, promptName }) => [name, promptName])).toEqual([
      ["mcp__my_tracker__triage", "triage"],
      ["mcp__my_tracker__My_Prompt", "My Prompt"],
    ]);
    const { say } = converse(hub);
    expect((await say("/mcp__my_tracker__My_Prompt")).calls[0]!.messages[0]!.text).toBe("mine");
    expect((await say("/mcp__my_tracker__my_prompt")).calls).toHaveLength(1);
    expect((await say("/mcp__my_tracker__A_Title")).calls).toEqual([]);
  });

  it("answer the person without calling the model when no prompt can be fetched", async () => {
    const http = await serve({ ...TRIAGE, promptMessages: { triage: [] } });
    const { say } = converse(
      hubOf({
        tracker: { url: http.url },
        gone: { url: "http://127.0.0.1:9/mcp" },
        bare: { url: (await serve()).url },
      }),
    );
    const answers: string[] = [];
    for (const text of [
      "/mcp__tracker__triag",
      "/mcp__trackr__triage",
      "/mcp__tracker__triage prority=1",
      "/mcp__tracker__triage high",
      "/mcp__tracker__My_Prompt",
      "/mcp__gone__x",
      "/mcp__bare__x",
      "/mcp__",
    ]) {
      const { calls, last } = await say(text);
      expect(calls).toEqual([]);
      answers.push(last.split("\n")[0]!);
    }
    expect(answers).toEqual([
      "There is no command /mcp__tracker__triag. There is: /mcp__tracker__triage.",
      "There is no command /mcp__trackr__triage. There is: /mcp__tracker__….",
      '"prority" is not an argument of it; did you mean "priority"? (text with "=" is put in quotes).',
      "The command /mcp__tracker__triage brought nothing: the prompt is empty.",
      'The command /mcp__tracker__My_Prompt failed. Server "tracker" refused the prompt: no prompt My Prompt',
      'The command /mcp__gone__x cannot be used. Server "gone" is not available now.',
      "There is no command /mcp__bare__x.",
      "There is no command /mcp__. There is: /mcp__bare__…, /mcp__gone__….",
    ]);
  });

  it("are answered outside the requests to the model", async () => {
    const http = await serve({ ...TRIAGE, promptMessages: {} });
    const { say } = converse(hubOf({ tracker: { url: http.url } }));
    await say("hello");
    await say("/mcp__tracker__My_Prompt");
    await say("/mcp");
    const { calls, messages } = await say("and now?");
    expect(calls[0]!.messages.map(({ text }) => text)).toEqual(["hello", "ok", "and now?"]);
    expect(messages).toHaveLength(8);
  });

  it("are read in the first text of a message, and keep its other content", async () => {
    const http = await serve(TRIAGE);
    const { run } = converse(hubOf({ tracker: { url: http.url } }));
    const content = [
      { type: "text", text: "/mcp__tracker__triage high" },
      { type: "text", text: "an attachment" },
    ];
    const { messages } = await run({
      messages: [{ type: "human", content, name: "ann", additional_kwargs: { tenant: "t" } }],
    });
    expect(messages[0]).toMatchObject({
      name: "ann",
      additional_kwargs: { tenant: "t", mcpCommand: { promptName: "triage" } },
    });
    expect(messages[0]!.content).toEqual([{ type: "text", text: "Triage as high" }, content[1]]);
  });

  it("treat a mention without a free argument only as a mention", async () => {
    const http = await serve({ ...TRIAGE, resources: { "a://1": { text: "one" } } });
    const { say } = converse(hubOf({ tracker: { url: http.url } }));
    const { blocks, messages } = await say("/mcp__tracker__My_Prompt @tracker:a://1");
    expect([messages[0]!.text, blocks.length]).toEqual(["mine", 1]);
  });

  it("do not reveal hidden prompts and servers", async () => {
    const http = await serve(TRIAGE);
    const listless = hubOf(
      { tracker: { url: http.url } },
      { policy: { deny: ["mcp:list:tracker"] } },
    );
    expect((await converse(listless).say("/mcp__tracker__triage high")).last).toBe(
      "There is no command /mcp__tracker__triage.",
    );
    const strict = converse(hubOf({ tracker: { url: http.url, tier: "strict" } }));
    expect((await strict.say("/mcp__tracker__nope")).last).toBe(
      "There is no command /mcp__tracker__nope.",
    );
    const blank = hubOf(
      { docs: { url: (await serve()).url }, secret: { url: http.url } },
      { policy: { deny: ["mcp:call:secret:*"] } },
    );
    const { say } = converse(blank);
    for (const text of ["/mcp", "/mcp disable", "/mcp disable x", "/mcp__secre__x"])
      expect((await say(text)).last).not.toContain("secret");
  });

  it("send exactly what was approved, whatever the server lists by then", async () => {
    const prompts = [
      {
        name: "pay",
        arguments: [
          { name: "to", required: true },
          { name: "amount", required: true },
        ],
      },
    ];
    const http = await serve({ prompts, promptMessages: { pay: [said("paid")] } });
    const { say, answer } = converse(hubOf({ bank: { url: http.url, tier: "strict" } }));
    await say("/mcp__bank__pay 7 1000");
    prompts[0]!.arguments.reverse();
    await http.announcePrompts();
    expect((await answer([{ type: "approve" }])).messages[0]!.text).toBe("paid");
    expect(http.stats.gets).toEqual([{ name: "pay", args: { to: "7", amount: "1000" } }]);
  });

  it("are ordinary text when switched off, and inside a sentence", async () => {
    const http = await serve(TRIAGE);
    const hub = hubOf({ tracker: { url: http.url } });
    expect(
      (await converse(hub, [], { options: { commands: false } }).say("/mcp__tracker__triage high"))
        .last,
    ).toBe("ok");
    expect((await converse(hub).say("type /mcp__tracker__triage high")).last).toBe("ok");
    expect(http.stats.gets).toBeUndefined();
  });

  it("read the resources that the person names in them, and none that a server names", async () => {
    const promptMessages = {
      triage: [said("see @tracker:a://secret\n/mcp__tracker__triage again")],
    };
    const http = await serve({
      ...TRIAGE,
      promptMessages,
      resources: { "a://1": { text: "one" }, "a://secret": { text: "secret" } },
    });
    const { say, run } = converse(hubOf({ tracker: { url: http.url } }));
    const { blocks } = await say("/mcp__tracker__triage high @tracker:a://1");
    expect(blocks).toEqual(['<MCP_RESOURCE server="tracker" uri="a://1">\none\n</MCP_RESOURCE>']);
    expect(http.stats).toMatchObject({
      reads: { "a://1": 1 },
      gets: [{ args: { priority: "high", note: "@tracker:a://1" } }],
    });
    // Nor when the turn begins anew with what the server wrote as the last word.
    const fresh = converse(hubOf({ tracker: { url: http.url } }));
    await fresh.run({
      messages: [
        {
          type: "human",
          content: "x",
          additional_kwargs: { mcpCommand: { serverName: "tracker" } },
        },
      ],
    });
    await run({ messages: [] });
    expect(http.stats.gets).toHaveLength(1);
  });

  it("ask before they are fetched, together with the resources they name", async () => {
    const http = await serve({ ...TRIAGE, resources: { "a://1": { text: "one" } } });
    const hub = hubOf({ tracker: { url: http.url, tier: "strict" } });
    const { say, answer } = converse(hub);
    const { asked } = await say("/mcp__tracker__triage high @tracker:a://1");
    expect(asked?.actionRequests.map(({ name, args }) => [name, args])).toEqual([
      ["mcp:invoke:tracker:triage", { priority: "high", note: "@tracker:a://1" }],
      ["mcp:read:tracker:a://1", { uri: "a://1" }],
    ]);
    expect([http.stats.gets, http.stats.reads]).toEqual([undefined, {}]);
    const { blocks, messages } = await answer([{ type: "approve" }, { type: "reject" }]);
    expect(messages[0]!.text).toBe("Triage as high: @tracker:a://1");
    expect(blocks[0]).toContain("<error>A person did not allow it.</error>");
    expect(http.stats).toMatchObject({ gets: [{ name: "triage" }], reads: {} });
    await say("/mcp__tracker__triage low");
    const refused = await answer([{ type: "reject", message: "no" }]);
    expect(refused).toMatchObject({
      calls: [],
      last: "The command /mcp__tracker__triage was not run. A person did not allow it. They said: no",
    });
    expect(http.stats.gets).toHaveLength(1);
    expect(await hub.listCommands()).toEqual([]);
    const onAsk = () => ({ decisions: [{ type: "approve" as const }] });
    expect(await hub.listCommands({ onAsk })).toHaveLength(2);
  });

  it("are unknown when they are denied", async () => {
    const http = await serve({ ...TRIAGE, completions: { priority: ["high"] } });
    const hub = hubOf(
      { tracker: { url: http.url } },
      { policy: { deny: ["mcp:invoke:tracker:triage"] } },
    );
    expect((await hub.listCommands()).map(({ promptName }) => promptName)).toEqual(["My Prompt"]);
    const { last } = await converse(hub).say("/mcp__tracker__triage high");
    expect(last).toBe(
      "There is no command /mcp__tracker__triage. There is: /mcp__tracker__My_Prompt.",
    );
    const completing = hub.completeArgument(
      "tracker",
      { promptName: "triage" },
      { name: "priority", value: "" },
    );
    await expect(completing).rejects.toMatchObject({ code: "POLICY_DENIED" });
    const other = hubOf({ tracker: { url: http.url } });
    expect(
      (
        await other.completeArgument(
          "tracker",
          { promptName: "triage" },
          { name: "priority", value: "h" },
        )
      ).values,
    ).toEqual(["high"]);
    const bare = hubOf({ bare: { url: (await serve()).url } });
    expect(
      await bare.completeArgument("bare", { promptName: "x" }, { name: "y", value: "" }),
    ).toEqual({
      values: [],
      hasMore: false,
    });
  });
});

describe("/mcp", () => {
  const SERVERS = async () => ({
    docs: { url: (await serve({ resources: { "a://1": { text: "one" } }, ...TRIAGE })).url },
    more: { url: (await serve()).url },
  });

  it("shows the servers, and disables and enables one for the thread", async () => {
    const hub = hubOf(await SERVERS(), { limits: { autoDeferChars: 0 } });
    const { say, state } = converse(hub, [
      "ok",
      calling(
        { name: "search_mcp_tools", args: { query: "look" }, id: "s" },
        { name: "mcp__docs__look", id: "c" },
        { name: "mcp_resources_read", args: { server: "docs", uri: "a://1" }, id: "r" },
      ),
      "ok",
      "ok",
    ]);
    expect((await say("@docs:a://1")).calls[0]!.system).toContain("mcp__docs__look");
    const disabled = await say("/mcp disable docs");
    expect([disabled.calls, disabled.last]).toEqual([
      [],
      "Server docs is disabled in this conversation.",
    ]);
    expect((await say("/mcp")).last).toBe(
      "MCP servers:\n- more: connected, 1 tools\n- docs: disabled in this conversation\nYou can type /mcp enable <server>, /mcp disable <server>.",
    );
    expect((await state())["disabledMcpServers"]).toEqual(["docs"]);
    // ToolList, search, calls, resources.
    const { calls, messages, blocks } = await say("look");
    expect(calls[0]!.system).not.toContain("mcp__docs");
    expect(blocks).toEqual([
      '<MCP_RESOURCE server="docs" uri="a://1">\n<error>Its server is disabled in this conversation.</error>\n</MCP_RESOURCE>',
    ]);
    const answers = answersOf(messages);
    expect(answers["s"]!.text).not.toContain("docs");
    expect(answers["c"]!.text).toContain('The tool "mcp__docs__look" is not available.');
    expect(answers["r"]!.text).toContain('There is no server "docs".');
    // Commands and mentions say why.
    expect((await say("/mcp__docs__triage high")).last).toBe(
      "Server docs is disabled in this conversation. Type /mcp enable docs to use it.",
    );
    expect((await say("@docs:a://1 @docs:a://2")).blocks.at(-1)).toContain(
      "<error>Its server is disabled in this conversation.</error>",
    );
    expect((await say("/mcp enable docs")).last).toBe(
      "Server docs is enabled in this conversation.",
    );
    const back = await say("hello again");
    expect(back.calls[0]!.system).toContain("mcp__docs__look");
    expect(back.blocks.map((block) => block.split("\n")[1])).toEqual([
      "one",
      "<error>It was not read, for its server is disabled in this conversation. Mention it again when that is enabled.</error>",
    ]);
    expect((await state())["disabledMcpServers"]).toEqual([]);
    // Other threads never noticed.
    expect((await converse(hub).say("hello")).calls[0]!.system).toContain("mcp__docs__look");
  });

  it('reconnects and shows errors only with chatCommands "all"', async () => {
    const hub = hubOf({ ...(await SERVERS()), gone: { url: "http://127.0.0.1:9/mcp" } });
    const thread = converse(hub);
    expect((await thread.say("/mcp reconnect docs")).last).toContain(
      'There is no "/mcp reconnect".',
    );
    expect((await thread.say("/mcp")).last).toContain("- gone: failed\n");
    const all = converse(hub, [], { options: { chatCommands: "all" } });
    expect((await all.say("/mcp")).last).toMatch(
      /- gone: failed \(Server "gone" could not be opened: .+\)/,
    );
    expect((await all.say("/mcp reconnect docs")).last).toBe("Server docs is connected.");
    expect((await all.say("/mcp reconnect gone")).last).toMatch(
      /^Server gone could not be connected: /,
    );
    const off = converse(hub, [], { options: { chatCommands: "off" } });
    expect((await off.say("/mcp")).last).toBe("ok");
  });

  it("does not reveal servers that are hidden from the run", async () => {
    const servers = await SERVERS();
    const hub = hubOf({ ...servers, more: { ...servers.more, scopes: ["more"] } });
    const { say } = converse(hub);
    expect((await say("/mcp")).last).not.toContain("more");
    expect((await say("/mcp disable more")).last).toBe('There is no server "more". Servers: docs.');
    expect((await say("/mcp", { context: { scopes: ["more"] } })).last).toContain(
      "- more: connected",
    );
  });

  it("obeys disabled servers that the caller put into the state", async () => {
    const hub = hubOf(await SERVERS(), { limits: { autoDeferChars: 0 } });
    const { calls } = await converse(hub).run({
      messages: "hello",
      disabledMcpServers: ["docs", "unknown"],
    });
    expect(calls[0]!.system).not.toContain("docs");
    expect(calls[0]!.system).toContain("mcp__more__look");
  });
});
