// Real model clients against a loopback server that records what they send.
import { partsOf } from "../../src/hub/hubParts.js";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";

import { loadRecordings, serveRecordings } from "../../bench/recorded.js";
import { modelClientOf } from "../../src/disclose/modelClient.js";
import { McpHub, mcpMiddleware, previewContext } from "../../src/index.js";
import { serveModel, WIRES, type ModelServer } from "../support/modelServer.js";
import { messageViolations, toolsOf, toolViolations } from "../support/providerRules.js";
import { stdioFixture } from "../support/servers.js";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const text = (value: string, more: object = {}) => ({ type: "text", text: value, ...more });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const AUDIO = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/** Every kind of result, what must reach the model and how many images. */
const RESULTS: Record<string, { result: object; shows: RegExp; images?: number; hides?: RegExp }> =
  {
    one_text: { result: { content: [text("just text")] }, shows: /just text/ },
    two_texts: { result: { content: [text("first"), text("second")] }, shows: /first\\nsecond/ },
    empty: { result: { content: [] }, shows: /returned nothing/ },
    image: { result: { content: [image] }, shows: /mcp_response|image/, images: 1 },
    text_and_images: {
      result: { content: [text("two pictures"), image, image] },
      shows: /two pictures/,
      images: 2,
    },
    audio: {
      result: { content: [{ type: "audio", data: AUDIO, mimeType: "audio/wav" }] },
      shows: /audio\/wav data, about \d+ bytes, not shown/,
    },
    embedded_text: {
      result: {
        content: [
          {
            type: "resource",
            resource: { uri: "mem://a.txt", mimeType: "text/plain", text: "embedded words" },
          },
        ],
      },
      shows: /@s:mem:\/\/a\.txt.*embedded words/s,
    },
    embedded_blob: {
      result: {
        content: [
          {
            type: "resource",
            resource: { uri: "mem://a.bin", mimeType: "application/pdf", blob: AUDIO },
          },
        ],
      },
      shows: /application\/pdf data.*@s:mem:\/\/a\.bin/,
    },
    embedded_image: {
      result: {
        content: [
          { type: "resource", resource: { uri: "mem://a.png", mimeType: "image/png", blob: PNG } },
        ],
      },
      shows: /@s:mem:\/\/a\.png/,
      images: 1,
    },
    link: {
      result: {
        content: [
          { type: "resource_link", uri: "mem://b.txt", name: "b.txt", description: "about b" },
        ],
      },
      shows: /@s:mem:\/\/b\.txt \(b\.txt; about b\)/,
    },
    audience: {
      result: {
        content: [
          text("for the person", { annotations: { audience: ["user"] } }),
          text("for the model", { annotations: { audience: ["assistant"] } }),
        ],
      },
      shows: /for the model/,
      hides: /for the person/,
    },
    structured_alone: { result: { structuredContent: { answer: 42 } }, shows: /answer.*42/ },
    structured_beside: {
      result: { content: [text("forty-two")], structuredContent: { answer: 42 } },
      shows: /forty-two/,
      hides: /answer/,
    },
    meta: {
      result: { content: [text("with meta")], _meta: { trace: "abc-trace" } },
      shows: /with meta/,
      hides: /abc-trace/,
    },
    is_error: {
      result: { isError: true, content: [text("it broke"), image], structuredContent: { code: 7 } },
      shows: /it broke/,
      images: 1,
      hides: /"code"/,
    },
  };

describe.each(WIRES)("%s", (wire) => {
  let models: ModelServer;
  beforeAll(async () => {
    models = await serveModel();
  });
  afterAll(() => models.close());

  it("accepts every kind of result: nothing throws, nothing is sent twice, no base64 is in text", async () => {
    const tools = Object.keys(RESULTS).map((name) => ({ name, inputSchema: { type: "object" } }));
    const results = Object.fromEntries(
      Object.entries(RESULTS).map(([name, { result }]) => [name, result]),
    );
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture({ tools, results, noBase: true }) },
      timeouts: { startupDeadlineMs: 20_000 },
    });
    const agent = createAgent({ model: models.client(wire), middleware: [mcpMiddleware(hub)] });
    for (const [name, { shows, images = 0, hides }] of Object.entries(RESULTS)) {
      models.requests.length = 0;
      models.answers.push([{ id: "call_1", name: `mcp__s__${name}`, args: {} }], "done");
      const { messages } = await agent.invoke({ messages: "go" });
      expect(messages.at(-1)!.text).toBe("done");
      const sent = models.requests[1]!;
      const {
        messages: sentMessages,
        input,
        contents,
      } = sent as { messages?: unknown; input?: unknown; contents?: unknown };
      const history = JSON.stringify(sentMessages ?? input ?? contents);
      expect(history).toMatch(shows);
      if (hides !== undefined) expect(history).not.toMatch(hides);
      expect(history.split(PNG).length - 1).toBe(images);
      expect(history).not.toContain(AUDIO);
      for (const [value] of history.matchAll(
        /"(?:text|output|result|content)":"((?:[^"\\]|\\.)*)"/g,
      ))
        expect(value).not.toContain(PNG);
      expect(messageViolations(wire, sent)).toEqual([]);
    }
  });

  it("refuses none of the recorded tools", async () => {
    const recordings = loadRecordings("all");
    const { urls, close } = await serveRecordings(recordings);
    await using hub = new McpHub({
      mcpServers: Object.fromEntries(urls.map((url, index) => [`s${index}`, { url }])),
      warnings: "silent",
    });
    await hub.connect(undefined, { onFailure: "throw" });
    const model = models.client(wire);
    const entries = partsOf(hub)
      .views({})
      .of({})
      .servers()
      .flatMap(({ tools }) => tools);
    const bound = entries.map((entry) =>
      partsOf(hub).tools.of(entry, modelClientOf(model).profile),
    );
    const violations: string[] = [];
    let count = 0;
    for (let from = 0; from < bound.length; from += 120) {
      models.requests.length = 0;
      await model.bindTools!(bound.slice(from, from + 120)).invoke("hi");
      violations.push(...toolViolations(wire, models.requests[0]!));
      count += toolsOf(wire, models.requests[0]!).length;
    }
    expect(violations).toEqual([]);
    expect(count).toBe(entries.length);
    await hub.close();
    await close();
  });
});

describe("recorded servers, all at once", () => {
  it("every server connects, every tool is reachable, all names are legal, the listing names every server", async () => {
    const recordings = loadRecordings();
    const { urls, close } = await serveRecordings(recordings);
    const keys = recordings.map((_, index) => `srv${index}`);
    await using hub = new McpHub({
      mcpServers: Object.fromEntries(keys.map((key, index) => [key, { url: urls[index]! }])),
      warnings: "silent",
      limits: { autoDeferChars: 0 },
    });
    expect((await hub.connect()).failed).toEqual([]);
    const entries = partsOf(hub)
      .views({})
      .of({})
      .servers()
      .flatMap(({ tools }) => tools);
    expect(entries).toHaveLength(
      recordings.reduce((sum, { tools }) => sum + new Set(tools.map(({ name }) => name)).size, 0),
    );
    const names = entries.map(({ boundName }) => boundName);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    for (const { boundName } of entries)
      expect((await hub.search(boundName, { limit: 1 })).map(({ name }) => name)).toContain(
        boundName,
      );
    const { listing } = await previewContext(hub);
    expect(listing.length).toBeLessThanOrEqual(2_000);
    for (const [index, key] of keys.entries()) {
      if (recordings[index]!.tools.length > 0)
        expect(listing).toMatch(new RegExp(`\\b${key}\\b|mcp__${key}__`));
    }
    // The server whose listing the SDK refuses whole.
    const refused = recordings.findIndex(({ file }) =>
      file.includes("modelcontextprotocol__server-gitlab"),
    );
    expect(hub.status()[refused]).toMatchObject({ state: "connected", tools: 9 });
    const plain = new MultiServerMCPClient({
      mcpServers: { gitlab: { url: urls[refused]! } },
      onConnectionError: "ignore",
    });
    expect(await plain.getTools()).toEqual([]);
    await plain.close();
    await hub.close();
    await close();
  });

  it("fills in defaults of required parameters before the check", async () => {
    const withDefaults = loadRecordings()
      .flatMap(({ tools }) => tools)
      .filter(({ inputSchema }) => {
        const { properties = {}, required = [] } = inputSchema as {
          properties?: Record<string, { default?: unknown }>;
          required?: string[];
        };
        return (
          required.length > 0 &&
          required.every((name) => properties[name] !== undefined && "default" in properties[name])
        );
      });
    expect(withDefaults.length).toBeGreaterThan(0);
    await using hub = new McpHub({
      mcpServers: { s: stdioFixture({ tools: withDefaults, noBase: true }) },
    });
    for (const { name } of withDefaults)
      expect((await hub.callTool("s", name, {})).status).toBe("success");
  });
});
