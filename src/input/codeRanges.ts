/** Part of a text, from `start` up to but not including `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

const FENCE = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)$/;

/**
 * Finds Markdown code in a text: fenced blocks, and code spans inside a paragraph. Pure; linear
 * time. Not a full Markdown parser: that takes a hundred times as long.
 * @returns The ranges in order, without overlaps.
 * @see https://spec.commonmark.org/0.31.2/#code-spans
 */
export function codeRanges(text: string): Range[] {
  if (!text.includes("`") && !text.includes("~~~")) return [];
  const ranges: Range[] = [];
  let paragraph = 0;
  let fence: { readonly start: number; readonly mark: string } | undefined;
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 ? text.length : newline;
    const line = text.slice(start, text[end - 1] === "\r" ? end - 1 : end);
    const [, mark, rest] = FENCE.exec(line) ?? [];
    if (fence !== undefined) {
      if (mark !== undefined && mark.startsWith(fence.mark) && rest!.trim() === "") {
        ranges.push({ start: fence.start, end });
        fence = undefined;
        paragraph = end;
      }
    } else if (mark !== undefined && !(mark.startsWith("`") && rest!.includes("`"))) {
      ranges.push(...codeSpans(text, paragraph, start));
      fence = { start, mark };
    } else if (line.trim() === "") {
      ranges.push(...codeSpans(text, paragraph, start));
      paragraph = end;
    }
    start = end + 1;
  }
  if (fence === undefined) ranges.push(...codeSpans(text, paragraph, text.length));
  else ranges.push({ start: fence.start, end: text.length });
  return ranges;
}

/** Code spans of a paragraph: from a run of backticks to the next run of the same length. */
function codeSpans(text: string, from: number, to: number): Range[] {
  const runs = [...text.slice(from, to).matchAll(/`+/g)].map(({ 0: run, index }) => ({
    start: from + index,
    end: from + index + run.length,
  }));
  // Finds the next run of the same length, from the end.
  const closers: (number | undefined)[] = [];
  const latest = new Map<number, number>();
  for (let index = runs.length - 1; index >= 0; index -= 1) {
    const length = runs[index]!.end - runs[index]!.start;
    closers[index] = latest.get(length);
    latest.set(length, index);
  }
  const spans: Range[] = [];
  for (let index = 0; index < runs.length; index += 1) {
    const closer = closers[index];
    if (closer === undefined) continue;
    spans.push({ start: runs[index]!.start, end: runs[closer]!.end });
    index = closer;
  }
  return spans;
}
