import fc from "fast-check";

import { MessageBudget } from "../../../src/connect/messageBudget.js";
import { LineSplitter } from "../../../src/connect/stdio/lineSplitter.js";

describe("the budget of a message", () => {
  it("counts bytes, over all parts of a message", () => {
    const budget = new MessageBudget(10);
    budget.take(Buffer.from("12345"));
    budget.take(Buffer.from("67890"));
    expect(() => budget.take(Buffer.from("1"))).toThrow(
      /larger than .* MB \(limits.maxMessageBytes\)/,
    );
    budget.reset();
    budget.take(Buffer.from("1234567890"));
  });

  it("counts values, but not what stands in texts", () => {
    const budget = new MessageBudget(100_000_000);
    budget.take(Buffer.from(`"${"[,{".repeat(1_000_000)}\\"${"[,{".repeat(1_000_000)}"`));
    budget.reset();
    expect(() => budget.take(Buffer.from("[".repeat(1_000_001)))).toThrow(/1000000 JSON values/);
  });

  it("sees a text that is cut between two parts, also behind a backslash", () => {
    const budget = new MessageBudget(100_000_000);
    budget.take(Buffer.from('"a\\'));
    budget.take(Buffer.from('"'));
    budget.take(Buffer.from("[".repeat(1_000_001)));
  });
});

describe("the lines of a stream", () => {
  it("are those of the whole text, however it is cut", () => {
    const texts = fc.array(
      fc.string({ unit: "binary" }).map((text) => text.replace(/[\r\n]/g, "")),
    );
    fc.assert(
      fc.property(
        texts,
        fc.array(fc.nat(40)),
        fc.constantFrom("\n", "\r\n"),
        (lines, cuts, end) => {
          const splitter = new LineSplitter(1_000_000);
          const bytes = Buffer.from(lines.map((line) => line + end).join(""));
          const found: string[] = [];
          let from = 0;
          for (const length of [...cuts, bytes.length]) {
            found.push(...splitter.push(bytes.subarray(from, from + length)));
            from += length;
          }
          expect(found).toEqual(lines.map((line) => Buffer.from(line).toString()));
        },
      ),
      { seed: 3, numRuns: 300 },
    );
  });

  it("are each bounded, and together are not", () => {
    const splitter = new LineSplitter(100);
    for (let line = 0; line < 50; line += 1) splitter.push(Buffer.from(`${"x".repeat(90)}\n`));
    expect(() => splitter.push(Buffer.from("x".repeat(101)))).toThrow(/limits.maxMessageBytes/);
  });
});
