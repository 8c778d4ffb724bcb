const MAX_WAIT_MS = 30_000;
const JITTER_MS = 500;

/**
 * Milliseconds before the next attempt: doubles from `firstMs`, plus or minus at most 500 ms at
 * random, at most 30 s.
 * @param number - Number of the wait, from 1.
 * @example
 * [1, 2, 3].map((number) => backoffMs(number, 1_000, () => 0.5));
 * // → [1000, 2000, 4000]
 */
export function backoffMs(
  number: number,
  firstMs = 1_000,
  random: () => number = Math.random,
): number {
  const jitter = Math.min(JITTER_MS, firstMs / 2);
  const wait = firstMs * 2 ** (number - 1) + (random() * 2 - 1) * jitter;
  return Math.round(Math.min(MAX_WAIT_MS, Math.max(0, wait)));
}
