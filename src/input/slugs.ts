import { digest } from "../text/hash.js";

const HASH_CHARS = 8;

/**
 * Maps typeable slugs to names that may hold any characters. A pure function of the set of names.
 * When slugs collide, a name that equals its slug keeps it; all others get a short hash.
 * @param slugOf - Makes a name typeable. A name that it leaves unchanged is typed as it is.
 */
export function slugTable(
  names: Iterable<string>,
  slugOf: (name: string) => string,
): Map<string, string> {
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
    for (const name of namesakes)
      table.set(name === holder ? plain : `${plain}_${digest(name, HASH_CHARS)}`, name);
  }
  return table;
}

export function promptSlug(promptName: string): string {
  return slug(promptName) || "prompt";
}

/** A server's name as it is typed: without `__`, which ends it. */
export function serverSlug(serverName: string): string {
  return slug(serverName).replace(/_{2,}/g, "_").replace(/^_|_$/g, "") || "server";
}

function slug(text: string): string {
  return text.normalize("NFC").replace(/[^\p{L}\p{M}\p{N}_.-]+/gu, "_");
}
