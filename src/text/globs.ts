import picomatch from "picomatch";
import * as z from "zod";

/** A list of globs in an option. What looks like a negated one would match nothing. */
export const globsSchema = z.array(
  z
    .string()
    .min(1)
    .refine((glob) => !glob.startsWith("!"), 'globs cannot be negated; name what is meant, or put the rest into "toolDeny"'),
);

/**
 * Makes one test of a list of globs. `*` stands for any characters, `?` for one, `{a,b}` for either; `\` takes the next
 * character as it is.
 *
 * An empty or missing list matches nothing. Case counts.
 *
 * @example
 * matchGlobs(["read_*", "list"])("read_file");
 * // → true
 */
export function matchGlobs(globs: readonly string[] | undefined): (text: string) => boolean {
  if (globs === undefined || globs.length === 0) return () => false;
  const tests = globs.map(matchGlob);
  return (text) => tests.some((test) => test(text));
}

const OPTIONS = {
  bash: true,
  dot: true,
  strictSlashes: true,
  nonegate: true,
  noextglob: true,
  windows: false,
  flags: "s",
};

/**
 * Makes the test of one glob: `*` stands for any characters, `/`, line ends and a leading dot included, so that no odd
 * name slips through; `**` is the same. Nothing else is special: names may have brackets and signs.
 */
export function matchGlob(glob: string): (text: string) => boolean {
  if (/^\*+$/.test(glob)) return () => true;
  if (glob === "") return (text) => text === "";
  const test = picomatch(withoutPaths(plain(glob)), OPTIONS);
  return (text) => test(withoutPaths(text));
}

/** Takes from what picomatch knows all but `*`, `?`, `{a,b}` and `\`. */
function plain(glob: string): string {
  const escaped = glob.replace(/\\[^]|[()[\]+@!|"'$^\\]/g, (part) => (part.length > 1 ? part : `\\${part}`));
  return isBalanced(escaped) ? escaped : escaped.replace(/\\[^]|[{}]/g, (part) => (part.length > 1 ? part : `\\${part}`));
}

function isBalanced(glob: string): boolean {
  let depth = 0;
  for (const [part] of glob.matchAll(/\\[^]|[{}]/g)) {
    if (part === "{") depth += 1;
    else if (part === "}" && --depth < 0) return false;
  }
  return depth === 0;
}

/** picomatch keeps `.` and `..` between slashes from wildcards. Names and URIs are no paths: no slash, no such rule. */
function withoutPaths(text: string): string {
  return text.replace(/[/\uFFFF]/g, (char) => (char === "/" ? "\uFFFF" : "\uFFFE"));
}
