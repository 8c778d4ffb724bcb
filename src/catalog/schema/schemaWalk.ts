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
 * The schema at a local reference (`#/…`, JSON pointer with `~0`, `~1` and percent escapes);
 * `undefined` for any other.
 */
export function resolvePointer(root: JsonSchema, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let current: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const key = decodePart(part);
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key))
      return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
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
    current = resolvePointer(root, current["$ref"]);
  }
  return current;
}
