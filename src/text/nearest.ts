import { distance } from "fastest-levenshtein";

/**
 * The known words nearest to `word`, nearest first; at most a third of the longer word's letters
 * differ, case aside.
 */
export function nearestOf(word: string, known: Iterable<string>, limit: number): string[] {
  const wanted = word.toLowerCase();
  const near: { readonly name: string; readonly edits: number }[] = [];
  for (const name of known) {
    const allowed = Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3));
    if (Math.abs(wanted.length - name.length) > allowed) continue;
    const edits = distance(wanted, name.toLowerCase());
    if (edits <= allowed) near.push({ name, edits });
  }
  near.sort((a, b) => a.edits - b.edits || (a.name < b.name ? -1 : 1));
  return near.slice(0, limit).map(({ name }) => name);
}

/** The known word that `word` was probably meant to be; `undefined` when none is near. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  return nearestOf(word, known, 1)[0];
}
