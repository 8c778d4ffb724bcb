import { isRecord } from "../../text/isRecord.js";
import type { JsonSchema } from "../toolEntry.js";

/**
 * Keywords with a schema, a list or a map of schemas; all others (`default`, `enum`, `const`,
 * `examples` …) hold data.
 */
const ONE_SCHEMA = new Set([
  "additionalItems",
  "additionalProperties",
  "contains",
  "else",
  "if",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);
const SCHEMA_LIST = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const SCHEMA_MAP = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** Deepest nesting that is followed; anything deeper counts as any value. */
export const MAX_SCHEMA_DEPTH = 64;

/**
 * Copies a schema and replaces each schema object in it by `change(copy)`, innermost first;
 * `change` may write to its copy.
 */
export function mapSchema(
  schema: unknown,
  change: (copy: Record<string, unknown>) => unknown,
  depth = 0,
): unknown {
  if (!isRecord(schema)) return schema;
  if (depth > MAX_SCHEMA_DEPTH) return {};
  const copy: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    setOwn(
      copy,
      keyword,
      mapKeyword(keyword, value, (inner) => mapSchema(inner, change, depth + 1)),
    );
  }
  return change(copy);
}

function mapKeyword(keyword: string, value: unknown, map: (inner: unknown) => unknown): unknown {
  if (ONE_SCHEMA.has(keyword)) return map(value);
  if (keyword === "items") return Array.isArray(value) ? value.map(map) : map(value);
  if (SCHEMA_LIST.has(keyword)) return Array.isArray(value) ? value.map(map) : value;
  if ((SCHEMA_MAP.has(keyword) || keyword === "dependencies") && isRecord(value)) {
    const result: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(value)) setOwn(result, name, map(inner));
    return result;
  }
  return value;
}

/** The names a schema requires, without malformed ones. */
export function requiredOf({ required }: JsonSchema): string[] {
  return Array.isArray(required)
    ? required.filter((name): name is string => typeof name === "string")
    : [];
}

/** Sets an own property, also one called `__proto__`, without touching the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  else target[key] = value;
}

/**
 * The schema at a reference inside of `root`: a JSON pointer (`#/…` with `~0`, `~1` and percent
 * escapes), an anchor (`#name`), or the `$id` of a schema in it with or without either. `undefined`
 * for any other: nothing is fetched.
 * @see https://json-schema.org/draft/2020-12/json-schema-core#section-8.2
 */
export function resolveReference(root: JsonSchema, reference: string): unknown {
  if (reference === "#") return root;
  if (reference.startsWith("#/")) return atPointer(root, reference.slice(2));
  const named = namesIn(root);
  const whole = named.get(reference) ?? named.get(absolute(reference, idOf(root)));
  if (whole !== undefined) return whole;
  const at = reference.indexOf("#/");
  const resource = at < 0 ? undefined : resolveReference(root, reference.slice(0, at));
  return isRecord(resource) ? atPointer(resource, reference.slice(at + 2)) : undefined;
}

function atPointer(root: JsonSchema, pointer: string): unknown {
  let current: unknown = root;
  for (const part of pointer.split("/")) {
    const key = decodePart(part);
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key))
      return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

const names = new WeakMap<JsonSchema, ReadonlyMap<string, unknown>>();
/** Schema objects that are searched for `$id` and `$anchor`. */
const MAX_NAMED = 5_000;

/** Schemas by `$id` and by anchor, as written and as absolute URIs. */
function namesIn(root: JsonSchema): ReadonlyMap<string, unknown> {
  const known = names.get(root);
  if (known !== undefined) return known;
  const found = new Map<string, unknown>();
  let left = MAX_NAMED;
  const add = (name: string, schema: unknown): void => {
    if (!found.has(name)) found.set(name, schema);
  };
  const visit = (schema: unknown, outer: string | undefined, depth: number): void => {
    if (!isRecord(schema) || depth > MAX_SCHEMA_DEPTH || left <= 0) return;
    left -= 1;
    const id = idOf(schema);
    const base = id === undefined || id.startsWith("#") ? outer : absolute(id, outer);
    if (id !== undefined) add(id, schema);
    if (base !== undefined && base !== outer) add(base, schema);
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = schema[keyword];
      if (typeof anchor !== "string") continue;
      add(`#${anchor}`, schema);
      if (base !== undefined) add(`${base}#${anchor}`, schema);
    }
    for (const [keyword, value] of Object.entries(schema)) {
      mapKeyword(keyword, value, (inner) => visit(inner, base, depth + 1));
    }
  };
  visit(root, undefined, 0);
  names.set(root, found);
  return found;
}

function idOf({ $id, id }: JsonSchema): string | undefined {
  const written = typeof $id === "string" ? $id : id;
  return typeof written === "string" ? written.replace(/#$/, "") || undefined : undefined;
}

function absolute(reference: string, base: string | undefined): string {
  return URL.canParse(reference, base) ? new URL(reference, base).href : reference;
}

function decodePart(part: string): string {
  let decoded = part;
  try {
    decoded = decodeURIComponent(part);
  } catch {
    // A lone "%" stays as it is.
  }
  return decoded.replaceAll("~1", "/").replaceAll("~0", "~");
}

/**
 * Follows `$ref` to a schema without one; a cycle, a dead end and a chain of more than 64 end it.
 */
export function dereference(root: JsonSchema, schema: unknown): unknown {
  if (!isRecord(schema) || schema["$ref"] === undefined) return schema;
  const seen = new Set<unknown>();
  let current: unknown = schema;
  while (
    isRecord(current) &&
    typeof current["$ref"] === "string" &&
    !seen.has(current) &&
    seen.size < MAX_SCHEMA_DEPTH
  ) {
    seen.add(current);
    current = resolveReference(root, current["$ref"]);
  }
  return current;
}
