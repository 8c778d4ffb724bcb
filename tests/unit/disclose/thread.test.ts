import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

import { DEFAULTS } from "../../../src/config/defaults.js";
import { noteAnchor, renderNote, withNotes } from "../../../src/disclose/notes.js";
import { SEARCH_TOOL_NAME, showThread, type ThreadSettings } from "../../../src/disclose/thread.js";
import { toolsToBind } from "../../../src/disclose/promotion.js";
import { EMPTY_ACTIVATION, mergeActivation, type McpThreadState } from "../../../src/state.js";
import { catalogOf, type CatalogFixture, type ToolInShort } from "../../support/catalogs.js";

const settings = (budgets = {}): ThreadSettings => ({
  budgets: { ...DEFAULTS, ...budgets },
  names: "mcp",
  listing: true,
  strategy: "promote",
  search: true,
  resourceTools: true,
  sizeOf: ({ definitionChars }) => definitionChars,
});
const human = new HumanMessage({ content: "hi", id: "h1" });
const big = (name: string): ToolInShort => ({ name, description: "x".repeat(6_000) });

function thread(fixture: CatalogFixture, budgets = {}) {
  let state: McpThreadState = {};
  return {
    show: (at: "turn" | "step" = "step", messages = [human]) => {
      const { sent, update } = showThread(fixture.view, state, messages, settings(budgets), at);
      state = { ...state, ...update };
      return { sent, update };
    },
  };
}

describe("showThread", () => {
  it("defers by size, not by count: four huge tools are deferred, many small ones always loaded", () => {
    expect(thread(catalogOf({ a: ["1", "2", "3", "4"].map(big) })).show().sent).toMatchObject({
      servers: { a: { alwaysLoaded: false } },
      synthetic: { [SEARCH_TOOL_NAME]: 0 },
    });
    const small = thread(
      catalogOf({ a: Array.from({ length: 40 }, (_, index) => `t${index}`) }),
    ).show().sent;
    expect(small).toMatchObject({
      servers: { a: { alwaysLoaded: true } },
      synthetic: {},
      listing: "",
    });
  });

  it("obeys defer of a server, and always loads a late server only under the limit", () => {
    const fixture = catalogOf(
      { a: [big("1")], b: ["x"], late: undefined, lateBig: undefined },
      { mcpServers: { a: { defer: false }, b: { defer: true } } },
    );
    const { show } = thread(fixture);
    expect(show().sent.servers).toMatchObject({
      a: { alwaysLoaded: true },
      b: { alwaysLoaded: false },
    });
    fixture.put("late", ["y"]);
    expect(show().sent.servers["late"]).toMatchObject({ alwaysLoaded: true, at: 1 });
    fixture.put("lateBig", [big("z")]);
    expect(show().sent.servers["lateBig"]).toMatchObject({ alwaysLoaded: false });
  });

  it("writes nothing when nothing changed", () => {
    const { show } = thread(catalogOf({ a: [big("1"), big("2")] }));
    const first = show().sent;
    const again = show();
    expect(again.update).toBeUndefined();
    expect(again.sent).toBe(first);
  });

  it("renders the listing again after more than four notes, and keeps the order of the bound tools", () => {
    const fixture = catalogOf({ a: [big("1"), big("2")] });
    const { show } = thread(fixture);
    const first = show().sent;
    for (let change = 0; change < 4; change += 1) {
      fixture.put("a", [big("1"), `new_${change}`]);
      expect(show().sent).toMatchObject({ listing: first.listing, notes: { length: change + 1 } });
    }
    fixture.put("a", [big("1"), "newest"]);
    const renewed = show().sent;
    expect(renewed.notes).toEqual([]);
    expect(renewed.listing).toContain("mcp__a__newest");
    expect(renewed.servers["a"]!.at).toBe(first.servers["a"]!.at);
  });

  it("renders the listing again when the message before a note is gone", () => {
    const fixture = catalogOf({ a: [big("1"), big("2")] });
    const { show } = thread(fixture);
    show();
    fixture.put("a", [big("1"), "other"]);
    expect(show().sent.notes).toHaveLength(1);
    const renewed = show("step", [new HumanMessage({ content: "summary", id: "s" })]).sent;
    expect(renewed.notes).toEqual([]);
    expect(renewed.listing).toContain("mcp__a__other");
  });

  it("renders the listing again at the next human message when it named servers that were connecting", () => {
    const fixture = catalogOf({ a: [big("1"), big("2")], slow: undefined });
    const { show } = thread(fixture);
    expect(show("turn").sent.listing).toContain("Still connecting: slow");
    expect(show("turn").update).toBeUndefined();
    fixture.put("slow", ["x"]);
    expect(show("step").sent.notes).toHaveLength(1);
    const { sent } = show("turn");
    expect(sent.notes).toEqual([]);
    expect(sent.listing).toContain("mcp__slow__x");
    expect(sent.listing).not.toContain("Still connecting");
  });

  it("keeps the order of always loaded tools when new ones are added, whatever their names, and binds a limited number of them", () => {
    const fixture = catalogOf({ a: ["b", "c"] }, { mcpServers: { a: { defer: false } } });
    let state: McpThreadState = {};
    const next = () => {
      const { sent, update } = showThread(fixture.view, state, [human], settings(), "step");
      const mcpActivation = mergeActivation(
        state.mcpActivation ?? EMPTY_ACTIVATION,
        update?.mcpActivation ?? EMPTY_ACTIVATION,
      );
      state = { ...state, ...update, mcpActivation };
      return toolsToBind(fixture.view, sent, mcpActivation, DEFAULTS).flatMap((tool) =>
        tool.kind === "mcp" ? [tool.entry.toolName] : [],
      );
    };
    expect(next()).toEqual(["b", "c"]);
    fixture.put("a", ["a", "b", "c"]);
    expect(next()).toEqual(["b", "c", "a"]);
    fixture.put("a", [
      "a",
      "b",
      "c",
      ...Array.from({ length: 500 }, (_, index) => `grown_${index}`),
    ]);
    expect(next()).toHaveLength(3 + DEFAULTS.maxPromoted);
    expect(Object.keys(state.mcpActivation!.promoted)).toHaveLength(1 + DEFAULTS.maxPromoted);
    // Another process, which never saw the old listing.
    const other = catalogOf({ a: ["0", "a", "b", "c"] }, { mcpServers: { a: { defer: false } } });
    const { sent, update } = showThread(
      other.view,
      { ...state, mcpActivation: EMPTY_ACTIVATION },
      [human],
      settings(),
      "step",
    );
    const order = toolsToBind(other.view, sent, update!.mcpActivation!, DEFAULTS).map((tool) =>
      tool.kind === "mcp" ? tool.entry.toolName : "",
    );
    expect(order.filter((name) => name !== "")).toEqual(["b", "c", "0", "a"]);
  });

  it("does not mention tools that the agent may not see", () => {
    const fixture = catalogOf({ a: [big("see_1"), "hide_1"] }, { view: { tools: ["see_*"] } });
    const { show } = thread(fixture, { autoDeferChars: 0 });
    expect(show().sent.listing).not.toContain("hide");
    fixture.put("a", [big("see_1"), "hide_2"]);
    const { sent } = show();
    expect(sent.notes.map(({ text }) => text).join()).not.toContain("hide_");
  });
});

describe("notes", () => {
  it("have at most 500 characters, whatever changed", () => {
    const diff = {
      added: Array.from({ length: 300 }, (_, index) => `mcp__server__added_tool_${index}`),
      removed: ["mcp__s__r"],
      changed: ["mcp__s__c"],
    };
    const change = {
      serverName: "s".repeat(80),
      kind: "changed" as const,
      toolCount: 5,
      isAlwaysLoaded: false,
      diff,
    };
    for (const count of [1, 3, 40])
      expect(renderNote(Array.from({ length: count }, () => change)).length).toBeLessThanOrEqual(
        500,
      );
    expect(renderNote([change])).toMatch(
      /and \d+ more; removed: mcp__s__r; changed, search again before calling: mcp__s__c/,
    );
  });

  it("stand behind the last message that is no open tool call", () => {
    const calls = new AIMessage({
      content: "",
      id: "a1",
      tool_calls: [{ name: "x", args: {}, id: "1" }],
    });
    const result = (id: string | undefined) =>
      new ToolMessage({ content: "", tool_call_id: "1", ...(id === undefined ? {} : { id }) });
    expect(noteAnchor([human, calls, result("t1")])).toBe("t1");
    expect(noteAnchor([human, calls, result("t1"), result("t2")])).toBe("t2");
    expect(noteAnchor([human, calls, result(undefined)])).toBe("h1");
    expect(noteAnchor([human, new HumanMessage("no id")])).toBe("h1");
    expect(noteAnchor([new HumanMessage("no id")])).toBe("");
    const placed = withNotes(
      [human, calls, result("t1")],
      [
        { after: "t1", text: "one" },
        { after: "", text: "zero" },
        { after: "t1", text: "two" },
      ],
    );
    expect(placed.map(({ text }) => text)).toEqual(["zero", "hi", "", "", "one", "two"]);
  });
});
