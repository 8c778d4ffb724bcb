import fc from "fast-check";

import { promptSlug, serverSlug, slugTable } from "../../../src/input/slugs.js";

const prompts = (...names: string[]): Record<string, string> =>
  Object.fromEntries(slugTable(names, promptSlug));

describe("slugTable", () => {
  it("keeps names that can be typed, and makes others so", () => {
    expect(prompts("triage", "My Prompt", "a/b:c", "v1.2-x", "まとめ", "!!")).toEqual({
      triage: "triage",
      My_Prompt: "My Prompt",
      a_b_c: "a/b:c",
      "v1.2-x": "v1.2-x",
      まとめ: "まとめ",
      _: "!!",
    });
  });

  it("gives a contested name to the prompt that has it, and hashes to the others, in any order", () => {
    const expected = { My_Prompt: "My_Prompt", My_Prompt_05c3ee6c: "My Prompt" };
    const table = prompts("My Prompt", "My_Prompt");
    expect(Object.values(table).sort()).toEqual(Object.values(expected).sort());
    expect(table["My_Prompt"]).toBe("My_Prompt");
    expect(prompts("My_Prompt", "My Prompt")).toEqual(table);
  });

  it("gives a contested name that no prompt has to none of them", () => {
    const names = Object.keys(prompts("My Prompt", "My/Prompt"));
    expect(names).toHaveLength(2);
    for (const name of names) expect(name).toMatch(/^My_Prompt_[0-9a-f]{8}$/);
  });

  it("makes a server's slug without underscores that would end it", () => {
    expect(["a__b", "_x_", "my server", "__"].map(serverSlug)).toEqual([
      "a_b",
      "x",
      "my_server",
      "server",
    ]);
  });

  it("makes every name reachable by one that can be typed", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: "grapheme", minLength: 1 })), (names) => {
        const table = slugTable(names, promptSlug);
        expect([...table.values()].sort()).toEqual([...names].sort());
        for (const slug of table.keys()) expect(slug).not.toMatch(/\s/);
      }),
    );
  });
});
