import { digest } from "../text/hash.js";

const HASH_CHARS = 8;

/**
 * Names that can be typed, for names that may hold anything. A pure function of the set of names.
 *
 * A name of letters, digits, `_`, `-` and `.` stays as it is; in others each run of other characters becomes `_`. Where
 * two names would become the same, the one that stays as it is has it, and all others get a short hash of their own.
 *
 * @param slugOf - Makes a name typeable; what it leaves unchanged stays.
 * @returns The names by slug.
 */
export function slugTable(names: Iterable<string>, slugOf: (name: string) => string): Map<string, string> {
  const byPlain = new Map<string, string[]>();
  for (const name of new Set(names)) {
    const plain = slugOf(name);
    const namesakes = byPlain.get(plain);
    if (namesakes === undefined) byPlain.set(plain, [name]);
    else namesakes.push(name);
  }
  const table = new Map<string, string>();
  for (const [plain, namesakes] of byPlain) {
    const holder = namesakes.length === 1 ? namesakes[0] : namesakes.find((name) => name === plain);
    for (const name of namesakes) table.set(name === holder ? plain : `${plain}_${digest(name, HASH_CHARS)}`, name);
  }
  return table;
}

/** A prompt's name, to be typed. */
export function promptSlug(promptName: string): string {
  return slug(promptName) || "prompt";
}

/** A server's name, to be typed: without `__`, which ends it. */
export function serverSlug(serverName: string): string {
  return slug(serverName).replace(/_{2,}/g, "_").replace(/^_|_$/g, "") || "server";
}

function slug(text: string): string {
  return text.normalize("NFC").replace(/[^\p{L}\p{M}\p{N}_.-]+/gu, "_");
}
