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
  const tests = globs.map((glob) => picomatch(glob, { bash: true, dot: true, strictSlashes: true }));
  return (text) => tests.some((test) => test(text));
}
