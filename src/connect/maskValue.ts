/* Deeper data is no message that anybody reads. */
const MAX_DEPTH = 500;
/* Keys of a list whose texts are for readers; all others name or shape things. */
const WORDS: ReadonlySet<string> = new Set(["description", "title", "instructions"]);

type Mask = (text: string) => string;

/**
 * A copy of plain data, or of a thrown value, with secrets masked in every text: message, stack,
 * data, causes.
 *
 * Names of properties stay. An error stays an instance of its class; anything else that is no plain
 * data is left out.
 */
export function maskValue(value: unknown, mask: Mask): unknown {
  return copyOf(value, mask, new Map(), 0);
}

/**
 * A copy of a list with secrets masked in texts for readers: names, URIs and schemas are used as
 * they are.
 */
export function maskWords(value: unknown, mask: Mask, key = "", depth = 0): unknown {
  if (typeof value === "string") return WORDS.has(key) ? mask(value) : value;
  if (typeof value !== "object" || value === null || depth === MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((element) => maskWords(element, mask, "", depth + 1));
  const copy = {};
  for (const [name, own] of Object.entries(value))
    define(copy, name, maskWords(own, mask, name, depth + 1), true);
  return copy;
}

/** @param copies - Of objects that were copied already: data may be reached in many ways. */
function copyOf(value: unknown, mask: Mask, copies: Map<object, unknown>, depth: number): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value !== "object" || value === null)
    return typeof value === "function" ? undefined : value;
  if (copies.has(value)) return copies.get(value);
  const copy = depth === MAX_DEPTH ? undefined : blankOf(value);
  copies.set(value, copy);
  if (copy === undefined) return undefined;
  for (const [key, own] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
    if (!("value" in own) || (key === "length" && Array.isArray(value))) continue;
    const kept = copyOf(own.value, mask, copies, depth + 1);
    if (kept !== undefined || Array.isArray(value))
      define(copy, key, kept, own.enumerable ?? false);
  }
  // An error may keep these elsewhere than in properties of its own.
  if (isError(value))
    for (const key of ["name", "message", "stack"] as const)
      define(copy, key, mask(textOf(value, key)), false);
  return copy;
}

/** An empty object of the same kind; `undefined` for an object that is not copied. */
function blankOf(value: object): object | undefined {
  if (Array.isArray(value)) return [];
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === null || prototype === Object.prototype)
    return Object.create(prototype) as object;
  if (!isError(value)) return undefined;
  // Where the message is no property of its own, the class keeps it where a copy has none.
  return Object.hasOwn(value, "message") ? (Object.create(prototype) as object) : new Error();
}

/** Not `instanceof`: errors of `fetch` may come from another realm. */
function isError(value: object): boolean {
  return "message" in value && "stack" in value;
}

function textOf(value: object, key: "name" | "message" | "stack"): string {
  try {
    return String((value as Record<string, unknown>)[key] ?? "");
  } catch {
    return "";
  }
}

function define(target: object, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(target, key, { value, enumerable, configurable: true, writable: true });
}
