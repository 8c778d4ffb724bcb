import fc from "fast-check";

import { EMPTY_ACTIVATION, mergeActivation, type McpActivation } from "../../src/state.js";

const promotion = fc.record({
  hash: fc.constantFrom("a", "b"),
  at: fc.integer({ min: 1, max: 4 }),
  order: fc.integer({ min: 0, max: 2 }),
  used: fc.integer({ min: 1, max: 5 }),
  gone: fc.boolean(),
});
const activation: fc.Arbitrary<McpActivation> = fc
  .dictionary(fc.constantFrom("x", "y", "constructor"), promotion)
  .map((promoted) => ({ v: 1 as const, promoted }));

describe("mergeActivation", () => {
  it("gives the same result in any order and however often, so parallel writers agree", () => {
    fc.assert(
      fc.property(activation, activation, activation, (a, b, c) => {
        expect(mergeActivation(a, b)).toEqual(mergeActivation(b, a));
        expect(mergeActivation(mergeActivation(a, b), c)).toEqual(
          mergeActivation(a, mergeActivation(b, c)),
        );
        expect(mergeActivation(a, a)).toEqual(a);
        expect(mergeActivation(EMPTY_ACTIVATION, a)).toEqual(a);
      }),
      { numRuns: 2_000 },
    );
  });

  it("lets the later write win, and of two at the same time the one that is present", () => {
    const entry = { hash: "h", at: 1, order: 0, used: 1, gone: false };
    const of = (promoted: McpActivation["promoted"][string]): McpActivation => ({
      v: 1,
      promoted: { x: promoted },
    });
    expect(
      mergeActivation(of(entry), of({ ...entry, at: 2, used: 2, gone: true })).promoted["x"],
    ).toMatchObject({
      at: 2,
      gone: true,
    });
    expect(mergeActivation(of({ ...entry, gone: true }), of(entry)).promoted["x"]).toMatchObject({
      gone: false,
    });
    expect(
      mergeActivation(of({ ...entry, used: 9 }), of({ ...entry, at: 2, used: 2 })).promoted["x"],
    ).toMatchObject({
      at: 2,
      used: 9,
    });
  });
});
