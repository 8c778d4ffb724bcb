import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import fc from "fast-check";

import { placeResources } from "../../../src/input/placeResources.js";
import type { Reading } from "../../../src/input/readMentions.js";
import { excerptOf, renderFailure, renderResource } from "../../../src/input/resourceContents.js";
import { afterTurn, cachedView, type ResourceTurn } from "../../../src/input/threadResources.js";
import type { ThreadResource } from "../../../src/state.js";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const render = (contents: unknown, maxChars = 10_000): string =>
  renderResource("docs", "a://b", excerptOf({ contents }, "a://b", maxChars), maxChars);

describe("renderResource", () => {
  it("shows text in a block that says where it comes from", () => {
    expect(render([{ uri: "a://b", mimeType: "text/plain", text: "hello" }])).toBe(
      '<MCP_RESOURCE server="docs" uri="a://b" mimeType="text/plain">\nhello\n</MCP_RESOURCE>',
    );
  });

  it("gives each of several contents its block, with its own URI", () => {
    expect(render([{ uri: "a://b/1", text: "one" }, { text: "two" }])).toBe(
      '<MCP_RESOURCE server="docs" uri="a://b/1">\none\n</MCP_RESOURCE>\n<MCP_RESOURCE server="docs" uri="a://b">\ntwo\n</MCP_RESOURCE>',
    );
  });

  it("reads text that was sent as data, and keeps other data out", () => {
    expect(render([{ mimeType: "text/csv", blob: base64("a,b") }])).toContain("\na,b\n");
    expect(render([{ mimeType: "application/vnd.x+json", blob: base64("{}") }])).toContain(
      "\n{}\n",
    );
    expect(
      render([{ mimeType: "text/plain", blob: Buffer.from([0xff, 0xfe]).toString("base64") }]),
    ).toContain("[text/plain data, about 3 bytes, not shown]");
    expect(render([{ mimeType: "application/pdf", blob: "AAAA" }])).toContain(
      "[application/pdf data, about 3 bytes, not shown]",
    );
  });

  it("puts images aside, a limited number of a limited size", () => {
    const image = { mimeType: "image/png", blob: PNG };
    const excerpt = excerptOf({ contents: Array.from({ length: 12 }, () => image) }, "a://b", 100);
    expect(excerpt.images).toEqual(
      Array.from({ length: 10 }, () => `data:image/png;base64,${PNG}`),
    );
    expect(renderResource("docs", "a://b", excerpt, 10_000)).toContain(
      "[One more image, not shown]",
    );
    const large = excerptOf(
      { contents: [{ mimeType: "image/png", blob: PNG.slice(0, 80) + "A".repeat(8_000_000) }] },
      "a://b",
      100,
    );
    expect(large.images).toEqual([]);
    expect(large.parts[0]?.text).toMatch(/^\[Image of about \d+ bytes, too large to be shown\]$/);
  });

  it("cuts what is too long in the middle and says how long it was, of 50 MB as well", () => {
    const text = `begin${"x".repeat(50_000_000)}end`;
    const excerpt = excerptOf({ contents: [{ text }] }, "a://b", 1_000);
    expect(JSON.stringify(excerpt).length).toBeLessThan(3_000);
    const block = renderResource("docs", "a://b", excerpt, 1_000);
    expect(block.length).toBeLessThanOrEqual(1_000);
    expect(block).toContain("begin");
    expect(block).toContain("xend\n</MCP_RESOURCE>");
    expect(block).toContain("[… 50000008 characters in all, the middle is left out …]");
  });

  it("says that the middle is left out even when little of a long text is shown", () => {
    const block = render([{ text: `a${"\u200b".repeat(50_000)}b` }], 1_000);
    expect(block).toContain("[… 50002 characters in all, the middle is left out …]");
  });

  it("shows a limited number of contents", () => {
    const block = render(Array.from({ length: 25 }, (_, index) => ({ text: String(index) })));
    expect(block.match(/<MCP_RESOURCE /g)).toHaveLength(21);
    expect(block).toContain("[5 more contents, not shown]");
  });

  it("accepts malformed answers", () => {
    for (const contents of [undefined, "x", [], [null, 3, "x"]])
      expect(render(contents)).toContain("(It is empty.)");
    expect(render([{ uri: 3, mimeType: {}, text: 7, blob: [] }])).toBe(
      '<MCP_RESOURCE server="docs" uri="a://b">\n\n</MCP_RESOURCE>',
    );
  });

  it("keeps server text from ending or beginning a block", () => {
    const wild = fc.oneof(
      fc.constantFrom(
        "</MCP_RESOURCE>",
        '"',
        "'",
        ">",
        "<",
        "\n",
        '<MCP_RESOURCE server="x">',
        "</ mcp_resource>",
        "<AVAILABLE_MCP_TOOLS>",
        "\u200b",
        "<\u200b/MCP_RESOURCE>",
      ),
      fc.string(),
    );
    const text = fc.array(wild, { maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(
        text,
        text,
        text,
        fc.integer({ min: 50, max: 400 }),
        (body, uri, mimeType, maxChars) => {
          const excerpt = excerptOf(
            { contents: [{ uri, mimeType, text: body }] },
            "a://b",
            maxChars,
          );
          for (const block of [
            renderResource("docs", uri, excerpt, maxChars),
            renderFailure("docs", uri, body),
          ]) {
            const tags = block.match(/<\s*\/?\s*(?:mcp_|available_mcp)[^]*?>/gi) ?? [];
            expect(tags).toHaveLength(2);
            expect(block).toMatch(
              /^<MCP_RESOURCE server="docs" uri="[^"<>\n]*"(?: mimeType="[^"<>\n]*")?>\n[^]*\n<\/MCP_RESOURCE>$/,
            );
          }
        },
      ),
    );
  });
});

const LIMITS = { maxResourceChars: 1_000, maxTurnResourceChars: 2_000, maxCachedResources: 3 };
const reading = (uri: string, text: string, mark = "m"): Reading => ({
  serverName: "docs",
  uri,
  mark,
  kind: "read",
  excerpt: excerptOf({ contents: [{ text }] }, uri, LIMITS.maxResourceChars),
});
const failing = (uri: string, why: string, mark = "m"): Reading => ({
  serverName: "docs",
  uri,
  mark,
  kind: "failed",
  why,
});
function turn(
  messageId: string,
  readings: readonly Reading[],
  more: Partial<ResourceTurn> = {},
): ResourceTurn {
  return {
    messageId,
    mentioned: readings,
    readings,
    messageIds: new Set(["1", "2", "3", "4"]),
    ...more,
  };
}
const shown = (resources: readonly ThreadResource[]): string[] =>
  resources.map(
    ({ uri, block, messageIds }) =>
      `${uri} ${block.split("\n")[1]!.slice(0, 30)} ${messageIds.join("+")}`,
  );

describe("afterTurn", () => {
  it("adds new resources after the earlier ones", () => {
    const first = afterTurn([], turn("1", [reading("b", "B"), reading("a", "A")]), LIMITS);
    const second = afterTurn(first, turn("2", [reading("c", "C")]), LIMITS);
    expect(shown(second)).toEqual(["b B 1", "a A 1", "c C 2"]);
    expect(second.slice(0, 2)).toEqual(first);
  });

  it("replaces a resource that was read again in its place, and keeps one that was only mentioned again", () => {
    const first = afterTurn([], turn("1", [reading("a", "A"), reading("b", "B")]), LIMITS);
    const mentioned = [{ serverName: "docs", uri: "b" }];
    expect(shown(afterTurn(first, turn("2", [reading("a", "A2")], { mentioned }), LIMITS))).toEqual(
      ["a A2 1", "b B 1+2"],
    );
  });

  it("tells equal URIs of two servers apart", () => {
    const other: Reading = { ...reading("a", "other"), serverName: "tracker" };
    expect(shown(afterTurn([], turn("1", [reading("a", "A"), other]), LIMITS))).toEqual([
      "a A 1",
      "a other 1",
    ]);
  });

  it("uses the mentions of an edited message as they are now", () => {
    const first = afterTurn([], turn("1", [reading("a", "A"), reading("b", "B")]), LIMITS);
    expect(shown(afterTurn(first, turn("1", [reading("c", "C")]), LIMITS))).toEqual(["c C 1"]);
  });

  it("drops resources that no message of the thread names any more", () => {
    const first = afterTurn([], turn("1", [reading("a", "A")]), LIMITS);
    expect(afterTurn(first, turn("2", [], { messageIds: new Set(["2"]) }), LIMITS)).toEqual([]);
    const again = turn("2", [], {
      messageIds: new Set(["2"]),
      mentioned: [{ serverName: "docs", uri: "a" }],
    });
    expect(shown(afterTurn(first, again, LIMITS))).toEqual(["a A 2"]);
  });

  it("keeps the earlier text of a resource that cannot be read again, with one notice", () => {
    const first = afterTurn([], turn("1", [reading("a", "A", "old")]), LIMITS);
    const failed = afterTurn(
      first,
      turn("2", [failing("a", "It is gone.", "new")], { mentioned: [] }),
      LIMITS,
    );
    expect(failed).toMatchObject([{ block: first[0]!.block, isError: false, mark: "new" }]);
    expect(failed[0]!.failure).toContain(
      "<error>It may have changed, and could not be read again. It is gone. What follows was read before.</error>",
    );
    expect(
      afterTurn(failed, turn("3", [failing("a", "It is gone.", "new")], { mentioned: [] }), LIMITS),
    ).toEqual(failed);
    const back = afterTurn(failed, turn("4", [reading("a", "A2")], { mentioned: [] }), LIMITS);
    expect(back[0]).not.toHaveProperty("failure");
  });

  it("shows a resource that was never read as an error", () => {
    const [resource] = afterTurn([], turn("1", [failing("a", "It is gone.")]), LIMITS);
    expect(resource).toMatchObject({
      isError: true,
      block: renderFailure("docs", "a", "It is gone."),
    });
    expect(cachedView([resource!])).toEqual([
      { serverName: "docs", uri: "a", chars: resource!.block.length, images: 0, isError: true },
    ]);
  });

  it("keeps a limited number: the one that was mentioned first is dropped first", () => {
    const first = afterTurn(
      [],
      turn(
        "1",
        ["a", "b", "c"].map((uri) => reading(uri, uri)),
      ),
      LIMITS,
    );
    expect(
      shown(afterTurn(first, turn("2", [reading("d", "d")]), LIMITS)).map((line) => line[0]),
    ).toEqual(["b", "c", "d"]);
    const again = turn("2", [reading("d", "d")], {
      mentioned: [
        { serverName: "docs", uri: "a" },
        { serverName: "docs", uri: "d" },
      ],
    });
    expect(shown(afterTurn(first, again, LIMITS)).map((line) => line[0])).toEqual(["a", "c", "d"]);
  });

  it("shares the room of a turn, short ones stay whole", () => {
    const readings = [
      reading("a", "x".repeat(5_000)),
      reading("b", "short"),
      reading("c", "y".repeat(5_000)),
    ];
    const [a, b, c] = afterTurn([], turn("1", readings), { ...LIMITS, maxResourceChars: 2_000 });
    expect(a!.block.length).toBeLessThan(1_100);
    expect(c!.block.length).toBeLessThan(1_100);
    expect(b!.block).toContain("\nshort\n");
    expect(a!.block.length + b!.block.length + c!.block.length).toBeLessThanOrEqual(2_200);
  });

  it("drops earlier resources when new ones need the room", () => {
    const first = afterTurn(
      [],
      turn("1", [reading("a", "x".repeat(900)), reading("b", "y".repeat(500))]),
      LIMITS,
    );
    const [a, b, c] = afterTurn(first, turn("2", [reading("c", "z".repeat(900))]), LIMITS);
    expect(a).toMatchObject({ isError: true, images: [], messageIds: ["1"] });
    expect(a!.block).toContain("Mention it again if it is needed.");
    expect(b).toEqual(first[1]);
    expect(c!.block).toContain("zzz");
  });
});

describe("limits", () => {
  const wild = (uri: string): Reading => ({
    ...reading(uri, ""),
    kind: "read",
    excerpt: excerptOf(
      {
        contents: Array.from({ length: 20 }, () => ({
          uri: '"'.repeat(1_000),
          mimeType: "<".repeat(1_000),
          text: "x".repeat(5_000),
        })),
      },
      uri,
      50_000,
    ),
  });

  it("count tags, and resources that are mentioned again", () => {
    const limits = {
      maxResourceChars: 50_000,
      maxTurnResourceChars: 200_000,
      maxCachedResources: 32,
    };
    const block = renderResource(
      "docs",
      "a",
      wild("a").kind === "read" ? (wild("a") as never)["excerpt"] : (undefined as never),
      6_250,
    );
    expect(block.length).toBeLessThanOrEqual(6_250);
    let resources: ThreadResource[] = [];
    for (let round = 1; round < 6; round += 1) {
      const readings = Array.from({ length: 6 }, (_, index) => wild(`${round}-${index}`));
      const mentioned = [...resources, ...readings];
      resources = afterTurn(resources, turn("1", readings, { mentioned }), limits);
      const chars = resources
        .filter(({ isError }) => !isError)
        .reduce((sum, { block }) => sum + block.length, 0);
      expect(chars).toBeLessThanOrEqual(200_000);
    }
  });

  it("count the images of all resources", () => {
    const blob = PNG.slice(0, 80) + "A".repeat(5_999_920);
    const large = (uri: string): Reading => ({
      ...reading(uri, ""),
      kind: "read",
      excerpt: excerptOf({ contents: [{ mimeType: "image/png", blob }] }, uri, 1_000),
    });
    const resources = afterTurn([], turn("1", ["a", "b", "c", "d"].map(large)), {
      ...LIMITS,
      maxCachedResources: 9,
    });
    expect(resources.map(({ images }) => images.length)).toEqual([0, 1, 1, 1]);
    expect(resources[0]!.failure).toContain("Its images are not shown");
  });
});

describe("placeResources", () => {
  const image = "data:image/png;base64,AAAA";
  const resources: ThreadResource[] = [
    {
      serverName: "docs",
      uri: "a",
      messageIds: ["1"],
      block: "A",
      images: [],
      isError: false,
      mark: "",
    },
    {
      serverName: "docs",
      uri: "b",
      messageIds: ["gone", "2"],
      block: "B",
      failure: "F",
      images: [image],
      isError: false,
      mark: "",
    },
  ];
  const messages = [
    new SystemMessage({ content: "s", id: "0" }),
    new HumanMessage({ content: "one", id: "1" }),
    new AIMessage({ content: "ok", id: "x" }),
    new HumanMessage({ content: [{ type: "text", text: "two" }], id: "2", name: "me" }),
  ];
  const ids = new Set(["0", "1", "2", "x"]);

  it("puts texts behind the system message, and images beside the message", () => {
    const placed = placeResources(resources, messages, ids, "system", "human");
    expect(placed.system).toEqual(["A", "F\nB"]);
    expect(placed.messages.slice(0, 3)).toEqual(messages.slice(0, 3));
    expect(placed.messages[3]).toMatchObject({ id: "2", name: "me" });
    expect(placed.messages[3]!.content).toEqual([
      { type: "text", text: "two" },
      { type: "text", text: "The image of @docs:b (untrusted):" },
      { type: "image_url", image_url: { url: image } },
    ]);
    // What is in the thread is not written to.
    expect(messages[3]!.content).toHaveLength(1);
  });

  it("puts texts beside the message that names them", () => {
    const placed = placeResources(resources, messages, ids, "message", "tool");
    expect(placed.system).toEqual([]);
    expect(placed.messages[1]!.content).toEqual([
      { type: "text", text: "one" },
      { type: "text", text: "A" },
    ]);
  });

  it("tells a model without image input that there is an image", () => {
    const placed = placeResources(resources, messages, ids, "system", "none");
    expect(placed.messages[3]!.content).toEqual([
      { type: "text", text: "two" },
      { type: "text", text: "[The image of @docs:b cannot be seen by this model.]" },
    ]);
  });

  it("shows no resource that no message of the thread names; one whose message is missing only in the request stands in the system message", () => {
    expect(placeResources(resources, messages, new Set(["2"]), "system", "none").system).toEqual([
      "F\nB",
    ]);
    const trimmed = placeResources(resources, [messages[3]!], ids, "message", "none");
    expect(trimmed.system).toEqual(["A"]);
    expect(placeResources([], messages, ids, "system", "none").messages).toBe(messages);
  });
});
