/* What is deeper is no message that anybody reads. */
const MAX_DEPTH = 500;

/**
 * A copy of plain data, or of a thrown value, in which secrets are masked wherever they stand: message, stack, data, causes.
 * Names of properties stay. An error is an instance of the same class where that can be; what is neither plain data nor an
 * error is left out.
 */
export function maskValue(value: unknown, mask: (text: string) => string): unknown {
  return new Masking(mask).of(value, 0);
}

/* What a server says of its things in words; everything else of a list names or shapes them. */
const WORDS: ReadonlySet<string> = new Set(["description", "title", "instructions"]);

/** A copy of what a server lists in which secrets are masked in texts for readers: names, URIs and schemas are used as they are. */
export function maskWords(value: unknown, mask: (text: string) => string, key = "", depth = 0): unknown {
  if (typeof value === "string") return WORDS.has(key) ? mask(value) : value;
  if (typeof value !== "object" || value === null || depth === MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((element) => maskWords(element, mask, "", depth + 1));
  const copy = {};
  for (const [name, own] of Object.entries(value)) {
    const kept = maskWords(own, mask, name, depth + 1);
    Object.defineProperty(copy, name, { value: kept, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

class Masking {
  readonly #mask: (text: string) => string;
  /** What was copied already: data may be reached in many ways. */
  readonly #copies = new Map<object, unknown>();

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  of(value: unknown, depth: number): unknown {
    if (typeof value === "string") return this.#mask(value);
    if (typeof value !== "object" || value === null) return typeof value === "function" ? undefined : value;
    if (this.#copies.has(value)) return this.#copies.get(value);
    if (depth === MAX_DEPTH) return undefined;
    const copy = Array.isArray(value) ? [] : blankOf(value);
    this.#copies.set(value, copy);
    if (copy === undefined) return undefined;
    for (const [key, own] of propertiesOf(value)) {
      const kept = this.of(own.value, depth + 1);
      if (kept === undefined && !Array.isArray(value)) continue;
      Object.defineProperty(copy, key, { value: kept, enumerable: own.enumerable, configurable: true, writable: true });
    }
    return copy;
  }
}

/** An empty object of the same kind; `undefined` for what is not copied. */
function blankOf(value: object): object | undefined {
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === null || prototype === Object.prototype) return Object.create(prototype) as object;
  if (!isError(value)) return undefined;
  // Where the message is no property of its own, the class keeps it where a copy has none.
  return Object.hasOwn(value, "message") ? (Object.create(prototype) as object) : new Error();
}

/** Own properties; of an error also what its class keeps elsewhere. */
function propertiesOf(value: object): Map<string, { readonly value: unknown; readonly enumerable: boolean }> {
  const own = new Map<string, { readonly value: unknown; readonly enumerable: boolean }>();
  if (!Array.isArray(value) && isError(value)) {
    for (const name of ["name", "message", "stack"] as const) {
      const text = readText(value, name);
      if (text !== undefined) own.set(name, { value: text, enumerable: false });
    }
  }
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
    if (key === "length" && Array.isArray(value)) continue;
    if ("value" in descriptor) own.set(key, { value: descriptor.value as unknown, enumerable: descriptor.enumerable ?? false });
  }
  return own;
}

/** Not `instanceof`: errors of `fetch` may come from another realm. */
function isError(value: object): boolean {
  return "message" in value && "stack" in value;
}

function readText(value: object, name: "name" | "message" | "stack"): string | undefined {
  try {
    const text: unknown = (value as Record<string, unknown>)[name];
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}
