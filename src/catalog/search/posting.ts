/**
 * An entry is one small integer, which saves memory: document id, one bit for the name, the weight
 * in 511 steps.
 */
const WEIGHT_STEPS = 511;
const ID_SHIFT = 10;
const NAME_BIT = 512;

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
