import * as z from "zod";

import { McpConfigError } from "../errors.js";

/**
 * A list of globs in an option. A glob that looks negated is refused, since it would match nothing.
 */
export const globsSchema = z.array(
  z
    .string()
    .min(1)
    .refine(
      (glob) => !glob.startsWith("!"),
      'globs cannot be negated; name what is meant, or put the rest into "toolDeny"',
    ),
);

/** Characters of a part of a glob between two `*`; `undefined` stands for any one character. */
type Part = readonly (string | undefined)[];

const MAX_ALTERNATIVES = 256;

/**
 * Makes one test of a list of globs; case counts, an empty or missing list matches nothing.
 *
 * @example
 * matchGlobs(["read_*", "list"])("read_file");
 * // → true
 */
export function matchGlobs(globs: readonly string[] | undefined): (text: string) => boolean {
  const tests = (globs ?? []).map(matchGlob);
  return (text) => tests.some((test) => test(text));
}

/**
 * Makes the test of one glob: `*` stands for any characters, `/`, line ends and a leading dot
 * included, so that no odd name slips through; `?` for one; `{a,b}` for either; `\` takes the next
 * character as it is. Nothing else is special.
 *
 * Our own, because matchers of paths treat `/` and `.` apart and match by backtracking: this takes
 * time linear in the text.
 *
 * @throws {McpConfigError} for more than 256 alternatives.
 */
export function matchGlob(glob: string): (text: string) => boolean {
  const alternatives = expandBraces(glob).map(partsOf);
  return (text) => alternatives.some((parts) => matchesParts(parts, text));
}

function matchesParts(parts: readonly Part[], text: string): boolean {
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.length === 1) return text.length === first.length && matchesAt(first, text, 0);
  const end = text.length - last.length;
  if (end < first.length || !matchesAt(first, text, 0) || !matchesAt(last, text, end)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    while (at + part.length <= end && !matchesAt(part, text, at)) at += 1;
    at += part.length;
    if (at > end) return false;
  }
  return true;
}

function matchesAt(part: Part, text: string, at: number): boolean {
  return part.every((char, index) => char === undefined || char === text[at + index]);
}

/** The parts between the `*` of a glob without braces. */
function partsOf(glob: string): Part[] {
  const parts: (string | undefined)[][] = [[]];
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob[at]!;
    if (char === "*") parts.push([]);
    else if (char === "?") parts.at(-1)!.push(undefined);
    else if (char === "\\" && at + 1 < glob.length) parts.at(-1)!.push(glob[(at += 1)]);
    else parts.at(-1)!.push(char);
  }
  return parts;
}

/**
 * The globs that a glob with `{a,b}` stands for. Braces that are not balanced, or hold no comma,
 * are ordinary characters.
 */
function expandBraces(glob: string): string[] {
  const open = indexOfChar(glob, "{", 0);
  const ends = open < 0 ? undefined : closeOf(glob, open);
  if (ends === undefined) return [glob];
  const [head, tails] = [glob.slice(0, open), expandBraces(glob.slice(ends.at(-1)! + 1))];
  const choices =
    ends.length === 1
      ? []
      : ends.map((end, index) => glob.slice((ends[index - 1] ?? open) + 1, end));
  const middles =
    choices.length === 0
      ? [`\\{${glob.slice(open + 1, ends[0])}\\}`]
      : choices.flatMap(expandBraces);
  const all = middles.flatMap((middle) => tails.map((tail) => head + middle + tail));
  if (all.length <= MAX_ALTERNATIVES) return all;
  throw new McpConfigError(
    `The glob "${glob.slice(0, 80)}" has more than ${MAX_ALTERNATIVES} alternatives. Write several globs.`,
  );
}

/** Places of the commas and of the closing brace of a group; `undefined` when it is not closed. */
function closeOf(glob: string, open: number): number[] | undefined {
  const places: number[] = [];
  let depth = 0;
  for (let at = open + 1; at < glob.length; at += 1) {
    const char = glob[at];
    if (char === "\\") at += 1;
    else if (char === "{") depth += 1;
    else if (char === "," && depth === 0) places.push(at);
    else if (char === "}" && --depth < 0) return [...places, at];
  }
  return undefined;
}

/** The first place of a character that is not escaped. */
function indexOfChar(glob: string, wanted: string, from: number): number {
  for (let at = from; at < glob.length; at += 1) {
    if (glob[at] === "\\") at += 1;
    else if (glob[at] === wanted) return at;
  }
  return -1;
}
