import { DEFAULTS } from "../../../src/config/defaults.js";
import { toolsToBind, demote, nextAt, promote } from "../../../src/disclose/promotion.js";
import {
  EMPTY_ACTIVATION,
  mergeActivation,
  type McpActivation,
  type McpSent,
} from "../../../src/state.js";
import { catalogOf } from "../../support/catalogs.js";

const names = Array.from({ length: 60 }, (_, index) => `t${String(index).padStart(2, "0")}`);
const { view, catalog, put } = catalogOf({ a: names, alwaysLoaded: ["p1", "p2"] });
const sent: McpSent = {
  v: 1,
  view: view.key,
  listing: "",
  loadsUnset: false,
  pending: [],
  servers: {
    a: { digest: "", alwaysLoaded: false, at: 0 },
    alwaysLoaded: { digest: "", alwaysLoaded: true, at: 0 },
  },
  synthetic: { search_mcp_tools: 0 },
  notes: [],
};
const entry = (name: string) => catalog.tool(`mcp__a__${name}`)!;
const bound = (activation: McpActivation, budgets = {}) =>
  toolsToBind(view, sent, activation, { ...DEFAULTS, ...budgets }).map((tool) =>
    tool.kind === "mcp" ? tool.entry.toolName : tool.name,
  );
const find = (activation: McpActivation, ...found: string[]): McpActivation => {
  const update = promote(
    found.map(entry),
    toolsToBind(view, sent, activation, DEFAULTS),
    activation,
    sent,
  );
  return update === undefined ? activation : mergeActivation(activation, update);
};

describe("boundTools", () => {
  it("stands the search tool first, then always loaded tools, then promoted ones in the order they came", () => {
    const one = find(EMPTY_ACTIVATION, "t05", "t01");
    expect(bound(one)).toEqual(["search_mcp_tools", "p1", "p2", "t05", "t01"]);
    expect(bound(find(one, "t00"))).toEqual(["search_mcp_tools", "p1", "p2", "t05", "t01", "t00"]);
  });

  it("does not move a tool that is found or called again", () => {
    const two = find(find(EMPTY_ACTIVATION, "t05"), "t01");
    expect(bound(find(two, "t05"))).toEqual(bound(two));
  });

  it("drops the least recently used beyond the limits, but never what was found last", () => {
    let activation = EMPTY_ACTIVATION;
    for (const name of names.slice(0, 5)) activation = find(activation, name);
    activation = find(activation, "t00");
    expect(bound(activation, { maxPromoted: 3 })).toEqual([
      "search_mcp_tools",
      "p1",
      "p2",
      "t00",
      "t03",
      "t04",
    ]);
    expect(bound(activation, { maxPromotedChars: 1 })).toEqual([
      "search_mcp_tools",
      "p1",
      "p2",
      "t00",
    ]);
    const all = find(EMPTY_ACTIVATION, ...names.slice(0, 50));
    expect(bound(all)).toHaveLength(53);
  });

  it("gives an evicted tool that is found again a new place at the end", () => {
    let activation = EMPTY_ACTIVATION;
    for (const name of names.slice(0, 45)) activation = find(activation, name);
    expect(bound(activation)).not.toContain("t00");
    expect(bound(find(activation, "t00")).at(-1)).toBe("t00");
  });

  it("does not bind a tool whose text changed, nor one that was un-promoted, until it is found again", () => {
    const activation = find(EMPTY_ACTIVATION, "t10", "t11");
    put(
      "a",
      names.map((name) => (name === "t10" ? { name, description: "changed" } : name)),
    );
    expect(bound(activation)).toEqual(["search_mcp_tools", "p1", "p2", "t11"]);
    const gone = mergeActivation(
      activation,
      demote(["mcp__a__t11", "mcp__a__unknown"], activation, sent)!,
    );
    expect(bound(gone)).toEqual(["search_mcp_tools", "p1", "p2"]);
    expect(bound(find(gone, "t11", "t10"))).toEqual(["search_mcp_tools", "p1", "p2", "t11", "t10"]);
  });
});

describe("promote", () => {
  it("writes nothing for always loaded tools and agrees in parallel", () => {
    const pinnedEntry = catalog.tool("mcp__alwaysLoaded__p1")!;
    expect(
      promote(
        [pinnedEntry],
        toolsToBind(view, sent, EMPTY_ACTIVATION, DEFAULTS),
        EMPTY_ACTIVATION,
        sent,
      ),
    ).toBeUndefined();
    const one = promote([entry("t20")], [], EMPTY_ACTIVATION, sent)!;
    const two = promote([entry("t21"), entry("t20")], [], EMPTY_ACTIVATION, sent)!;
    expect(mergeActivation(one, two)).toEqual(mergeActivation(two, one));
    expect(nextAt(mergeActivation(one, two), sent)).toBe(2);
  });
});
