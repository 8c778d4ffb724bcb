/* Results may be nested; what is deeper is no result that anybody reads. */
const MAX_DEPTH = 500;

/**
 * A copy of plain data, or of a thrown value, in which secrets are masked wherever they stand: in keys, message, stack,
 * data, causes. An error is an instance of the same class; what is neither plain data nor an error is left out.
 */
export function maskValue(value: unknown, mask: (text: string) => string): unknown {
  return masked(value, mask, 0);
}

function masked(value: unknown, mask: (text: string) => string, depth: number): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value !== "object" || value === null) return typeof value === "function" ? undefined : value;
  if (depth === MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((element) => masked(element, mask, depth + 1));
  const prototype = Object.getPrototypeOf(value) as object | null;
  const isPlain = prototype === null || prototype === Object.prototype;
  // Not `instanceof`: errors of `fetch` may come from another realm.
  if (!isPlain && !("message" in value && "stack" in value)) return undefined;
  const copy = Object.create(prototype) as Record<string, unknown>;
  for (const [key, { value: own, enumerable = false }] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
    const kept = masked(own, mask, depth + 1);
    if (kept !== undefined)
      Object.defineProperty(copy, mask(key), { value: kept, enumerable, configurable: true, writable: true });
  }
  return copy;
}
