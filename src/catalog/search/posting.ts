/** An entry is one small integer, which saves memory: document id, one bit for the name, the weight in 511 steps. */
const WEIGHT_STEPS = 511;
const ID_SHIFT = 10;
const NAME_BIT = 512;

/** Highest document id that fits. */
export const MAX_DOCUMENT_ID = 2 ** (31 - ID_SHIFT) - 1;

/** Packs an entry; `weight` is 0 to 1. */
export function packEntry(document: number, weight: number, isInName: boolean): number {
  return (document << ID_SHIFT) | (isInName ? NAME_BIT : 0) | Math.round(weight * WEIGHT_STEPS);
}

/** Document id of an entry. */
export const documentOf = (entry: number): number => entry >> ID_SHIFT;
/** Weight of an entry, 0 to 1. */
export const weightOf = (entry: number): number => (entry & WEIGHT_STEPS) / WEIGHT_STEPS;
/** True when the word of an entry stands in the name. */
export const isInName = (entry: number): boolean => (entry & NAME_BIT) !== 0;

/** Removes a document's entry from a list with ascending ids. */
export function removeEntry(entries: number[], document: number): void {
  let low = 0;
  let high = entries.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const found = documentOf(entries[middle]!);
    if (found === document) {
      entries.splice(middle, 1);
      return;
    }
    if (found < document) low = middle + 1;
    else high = middle - 1;
  }
}
