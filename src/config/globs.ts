import picomatch from "picomatch";

/**
 * Makes one test of a list of globs. `*` stands for any characters, `?` for one, `{a,b}` for either.
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

/**
 * Makes the test of one glob: `*` stands for any characters, `/`, line ends and a leading dot included, so that no odd
 * name slips through; `**` is the same; `!` at the beginning is a character like others.
 */
export function matchGlob(glob: string): (text: string) => boolean {
  if (/^\*+$/.test(glob)) return () => true;
  const options = { bash: true, dot: true, strictSlashes: true, nonegate: true, windows: false, flags: "s" };
  const test = picomatch(withoutPaths(glob), options);
  return (text) => test(withoutPaths(text));
}

/** picomatch keeps `.` and `..` between slashes from wildcards. Names and URIs are no paths: no slash, no such rule. */
function withoutPaths(text: string): string {
  return text.replace(/[/\uFFFF]/g, (char) => (char === "/" ? "\uFFFF" : "\uFFFE"));
}
