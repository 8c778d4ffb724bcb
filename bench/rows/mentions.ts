import { parseMentions } from "../../src/input/parseMentions.js";
import { limitRow, quantile, type Row } from "../report.js";

const CHARS = 1_000_000;
const SIGNS = 10_000;
const ROUNDS = 15;
const SERVERS = Array.from({ length: 100 }, (_, index) => `server-${index}`);

/** Messages of 1 MB with 10,000 `@`, made to be hard in different ways. */
const MESSAGES: Readonly<Record<string, string>> = {
  "plain mentions": "@server-7:file:///folder/a.md, ",
  "e-mail addresses": "someone@server-7:example and ",
  "open quotes": '@server-7:"file:///a ',
  "open brackets": "@server-7:((([[[{{{",
  "code ticks": "`@server-7:a `` @",
  "names of no server": "@server-x:file:///a ",
};

/** Time to find the mentions of a long message, the worst of several kinds. */
export async function mentionRows(): Promise<Row[]> {
  const medians = Object.entries(MESSAGES).map(([kind, piece]) => {
    const text = piece.repeat(SIGNS).padEnd(CHARS, "words and words ");
    const times = Array.from({ length: ROUNDS }, () => {
      const startedAt = performance.now();
      parseMentions(text, SERVERS);
      return performance.now() - startedAt;
    });
    return { kind, ms: quantile(times, 0.5) };
  });
  const worst = medians.reduce((slowest, next) => (next.ms > slowest.ms ? next : slowest));
  const note = medians.map(({ kind, ms }) => `${kind} ${ms.toFixed(1)} ms`).join(", ");
  return [
    limitRow(
      "mentions of a message of 1 MB with 10,000 @",
      worst.ms,
      "ms",
      "< 50 ms",
      worst.ms < 50,
      note,
    ),
  ];
}
