import fc from "fast-check";

import { readCommandLine, usageOf } from "../../../src/input/commandLine.js";

const TRIAGE = [
  { name: "priority", required: true },
  { name: "note", required: false },
];
const read = (text: string, declared = TRIAGE): unknown => {
  const line = readCommandLine(text, declared);
  return line.kind === "arguments" ? line.arguments : line.problem;
};

describe("readCommandLine", () => {
  it.each([
    ["priority=high", { priority: "high" }],
    ["  priority=high  ", { priority: "high" }],
    ["priority=\"very high\" note='it broke'", { priority: "very high", note: "it broke" }],
    ["high", { priority: "high" }],
    ["high it broke today", { priority: "high", note: "it broke today" }],
    ["high it  broke\n today", { priority: "high", note: "it  broke\n today" }],
    ['high "it broke"', { priority: "high", note: "it broke" }],
    ['high "it broke" today', { priority: "high", note: '"it broke" today' }],
    ["note=x high", { priority: "high", note: "x" }],
    ["it broke priority=high", { priority: "high", note: "it broke" }],
    ["it priority=high broke", { priority: "high", note: "it broke" }],
    ["priority=high set x=5 there", { priority: "high", note: "set x=5 there" }],
    ['"a=b"', { priority: "a=b" }],
    ["https://x.example/?a=b", { priority: "https://x.example/?a=b" }],
    ["it's", { priority: "it's" }],
    ['"C:\\dir"', { priority: "C:\\dir" }],
    ['"say \\"hi\\" \\\\"', { priority: 'say "hi" \\' }],
    ['""', { priority: "" }],
    ["priority=", { priority: "" }],
    ['"open', { priority: '"open' }],
    ['"glued"on', { priority: '"glued"on' }],
    ["日本", { priority: "日本" }],
  ])("reads %j", (text, expected) => {
    expect(read(text)).toEqual(expected);
  });

  it.each([
    ["", '"priority" is missing'],
    ["note=x", '"priority" is missing'],
    [
      "priorty=high",
      '"priorty" is not an argument of it; did you mean "priority"? (text with "=" is put in quotes)',
    ],
    ["priority=1 priority=2", '"priority" is given twice'],
    ["priority=1 note=2 more", "there are too many values"],
  ])("says what is wrong with %j", (text, problem) => {
    expect(read(text)).toBe(problem);
  });

  it("gives all to an only argument, and nothing to a prompt without any", () => {
    expect(read("a b  c", [{ name: "question", required: true }])).toEqual({ question: "a b  c" });
    expect(read("", [])).toEqual({});
    expect(read("x", [])).toBe("it takes no arguments");
    expect(
      read("", [
        { name: "a", required: true },
        { name: "b", required: true },
      ]),
    ).toBe('"a", "b" are missing');
  });

  it("keeps an argument named __proto__", () => {
    const line = readCommandLine("__proto__=x", [{ name: "__proto__", required: true }]);
    expect(line.kind === "arguments" && Object.entries(line.arguments)).toEqual([
      ["__proto__", "x"],
    ]);
  });

  it("never throws, and loses no value that was named", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string(), (before, value) => {
        const quoted = value.replace(/["\\]/g, "");
        const line = readCommandLine(`${before} note="${quoted}"`, TRIAGE);
        if (line.kind === "arguments" && !/["'=]/.test(before))
          expect(line.arguments["note"]).toBe(quoted);
      }),
    );
  });

  it("shows how a command is typed", () => {
    expect(usageOf(TRIAGE)).toBe("priority=… [note=…]");
  });
});
