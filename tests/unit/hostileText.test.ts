import { AIMessage, HumanMessage } from "@langchain/core/messages";
import fc from "fast-check";

import { errorTextForModel } from "../../src/call/failureText.js";
import { toOutcome } from "../../src/call/result.js";
import { oneLine, removeInvisible } from "../../src/text/clean.js";
import { renderNote } from "../../src/disclose/notes.js";
import { McpConnectionError, McpProtocolError } from "../../src/errors.js";
import { failureText } from "../../src/call/failureText.js";
import { toPromptMessages } from "../../src/input/promptMessages.js";
import { excerptOf, renderFailure, renderResource } from "../../src/input/resourceContents.js";
import { createMcpGraph } from "../../src/graph.js";
import { previewContext } from "../../src/core.js";
import { createMcpTestHub } from "../../src/testing.js";
import { calling, scripted } from "../support/agents.js";
import { HIDDEN, nastyText, ourTags } from "../support/hostile.js";

const text = nastyText();
const LIMITS = { maxResultChars: 2_000, maxArtifactChars: 10_000, envelope: true };

describe("what a server writes cannot leave its block", () => {
  it("in results of every kind of block", () => {
    const block = fc.oneof(
      text.map((value) => ({ type: "text", text: value })),
      fc.record({
        type: fc.constant("resource_link"),
        uri: text,
        name: text,
        title: text,
        description: text,
        mimeType: text,
      }),
      fc.record({
        type: fc.constant("resource"),
        resource: fc.record({ uri: text, mimeType: text, text }),
      }),
      fc.record({
        type: fc.constant("resource"),
        resource: fc.record({ uri: text, mimeType: text, blob: text }),
      }),
      fc.record({ type: fc.constantFrom("image", "audio"), data: text, mimeType: text }),
      fc.record({ type: text }),
    );
    const result = fc.record(
      {
        content: fc.array(block, { maxLength: 4 }),
        structuredContent: fc.dictionary(text, text),
        isError: fc.boolean(),
        _meta: fc.dictionary(text, text),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        result,
        text,
        fc.integer({ min: 50, max: 3_000 }),
        (raw, toolName, maxResultChars) => {
          const { content } = toOutcome("s", toolName, raw, 1, { ...LIMITS, maxResultChars });
          expect(ourTags(content)).toEqual(["+mcp_response", "-mcp_response"]);
          expect(content.startsWith('<mcp_response server="s" tool="')).toBe(true);
          expect(content.endsWith("</mcp_response>")).toBe(true);
          expect(content).not.toMatch(HIDDEN);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("in resources, their URIs, types and failures", () => {
    const content = fc.record({ uri: text, mimeType: text, text }, { requiredKeys: [] });
    fc.assert(
      fc.property(
        fc.array(content, { maxLength: 5 }),
        text,
        fc.integer({ min: 50, max: 2_000 }),
        (contents, uri, maxChars) => {
          const shown = renderResource("s", uri, excerptOf({ contents }, uri, maxChars), maxChars);
          const tags = ourTags(shown);
          expect(tags).toEqual(
            tags.map((_tag, index) => (index % 2 === 0 ? "+mcp_resource" : "-mcp_resource")),
          );
          expect(tags.length).toBeGreaterThan(0);
          expect(shown).not.toMatch(HIDDEN);
          expect(ourTags(renderFailure("s", uri, uri))).toEqual(["+mcp_resource", "-mcp_resource"]);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("in prompts, which open no block at all", () => {
    const typed = new HumanMessage({ id: "1", content: "/mcp__s__p" });
    const invocation = { serverName: "s", promptName: "p", arguments: {} };
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("user", "assistant", "system"), text), { maxLength: 4 }),
        (parts) => {
          const messages = parts.map(([role, value]) => ({
            role,
            content: { type: "text", text: value },
          }));
          for (const message of toPromptMessages({ messages }, invocation, typed, 2_000)) {
            expect(HumanMessage.isInstance(message) || AIMessage.isInstance(message)).toBe(true);
            expect(ourTags(message.text)).toEqual([]);
            expect(message.text).not.toMatch(HIDDEN);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("in errors and notes", () => {
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 5 }), (value, names) => {
        const refused = new McpProtocolError("SERVER_ERROR", value, {
          serverName: value,
          serverText: value,
        });
        const lost = new McpConnectionError("CONNECT_FAILED", value, { serverName: value });
        for (const error of [refused, lost, new Error(value)]) {
          for (const said of [
            errorTextForModel(error, "mcp__s__t"),
            failureText(error, "the resource", "has none."),
          ]) {
            expect(ourTags(said)).toEqual([]);
            expect(said).not.toMatch(HIDDEN);
            expect(said).not.toContain("\n");
          }
        }
        const diff = { added: names, removed: names, changed: names };
        const note = renderNote([
          { serverName: value, kind: "changed", toolCount: 1, isAlwaysLoaded: false, diff },
        ]);
        expect(ourTags(note)).toEqual(["+mcp_tools_changed", "-mcp_tools_changed"]);
        expect(note).not.toMatch(HIDDEN);
      }),
      { numRuns: 300 },
    );
  });

  it("in the listing, in searches and in what is bound, whatever the texts of a server are", async () => {
    const tool = fc.record({ name: text, title: text, description: text, argument: text });
    await fc.assert(
      fc.asyncProperty(
        fc.array(tool, { minLength: 1, maxLength: 4 }),
        text,
        async (tools, instructions) => {
          const recorded = tools.map(({ argument, ...rest }, index) => ({
            ...rest,
            name: `${rest.name}${index}`,
            inputSchema: {
              type: "object",
              properties: { [argument]: { type: "string", description: argument } },
            },
          }));
          await using test = createMcpTestHub({
            mcpServers: {
              s: {
                recording: { tools: recorded, instructions, serverInfo: { title: instructions } },
                defer: true,
              },
            },
            warnings: "silent",
          });
          await test.hub.connect();
          const { listing } = await previewContext(test.hub);
          expect(ourTags(listing)).toEqual(["+available_mcp_tools", "-available_mcp_tools"]);
          expect(listing).not.toMatch(HIDDEN);
          const model = scripted(
            calling(
              { id: "1", name: "search_mcp_tools", args: { query: "free money tool", limit: 5 } },
              { id: "2", name: "search_mcp_tools", args: { server: "s" } },
              { id: "3", name: "search_mcp_tools", args: {} },
            ),
            "done",
          );
          const { messages } = await createMcpGraph(test.hub, { model }).invoke({ messages: "go" });
          for (const message of messages.filter(({ type }) => type === "tool")) {
            expect(ourTags(message.text)).toEqual([]);
            expect(message.text).not.toMatch(HIDDEN);
          }
          for (const { name, description } of await test.hub.getTools()) {
            expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
            expect(description).not.toMatch(HIDDEN);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("characters that cannot be seen", () => {
  it("are removed, and what people write stays", () => {
    for (const shown of ["naïve café", "日本語", "مرحبا", "हिन्दी", "👍🏽", "❤️", "a\tb\nc", "Ω≈ç√"]) {
      expect(removeInvisible(shown)).toBe(shown);
    }
    expect(removeInvisible("a\uFE00\uFE01\uFE02b")).toBe("a\uFE00b");
    expect(removeInvisible("\u{E006F}\u{E0062}\u{E0065}\u{E0079}")).toBe("");
  });

  it("make a line no longer than it may be, in time that does not depend on what is cut away", () => {
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 0, max: 50 }),
        (value, most) => oneLine(value, most).length <= most,
      ),
    );
  });
});
