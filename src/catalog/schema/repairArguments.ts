import { isRecord } from "../../text/isRecord.js";
import { hoistRoot } from "./hoistRoot.js";
import { dereference, MAX_SCHEMA_DEPTH, requiredOf, setOwn } from "./schemaWalk.js";
import type { JsonSchema } from "../toolEntry.js";

/**
 * Repairs arguments of a model by the server's original schema, without guessing. Never changes the
 * given value. Missing, `null` or empty arguments become `{}`. JSON text is parsed in place of all
 * arguments, or of a parameter that takes an array, object, number or boolean but no string. `null`
 * for an optional parameter that does not take it is left out. A missing required parameter gets
 * its `default`.
 */
export function repairArguments(schema: JsonSchema, value: unknown): unknown {
  if (value === undefined || value === null || value === "")
    return repairValue(schema, schema, {}, 0);
  const parsed = typeof value === "string" ? parseContainer(value, ["object"]) : undefined;
  return repairValue(schema, schema, parsed ?? value, 0);
}

function repairValue(
  root: JsonSchema,
  unresolved: unknown,
  value: unknown,
  depth: number,
): unknown {
  const schema = dereference(root, unresolved);
  if (!isRecord(schema) || depth > MAX_SCHEMA_DEPTH) return value;
  if (typeof value === "string") {
    const wanted = acceptedTypes(root, schema, 0);
    if (wanted.has("string") || wanted.has("any")) return value;
    const scalar = parseScalar(value, wanted);
    if (scalar !== undefined) return scalar;
    const parsed = parseContainer(value, [...wanted]);
    return parsed === undefined ? value : repairValue(root, schema, parsed, depth + 1);
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    if (!isRecord(items)) return value;
    return mapIfChanged(value, (element) => repairValue(root, items, element, depth + 1));
  }
  return isRecord(value) ? repairObject(root, schema, value, depth) : value;
}

function repairObject(
  root: JsonSchema,
  schema: JsonSchema,
  value: Record<string, unknown>,
  depth: number,
): unknown {
  const { properties } = hoistRoot(root, schema);
  if (!isRecord(properties)) return value;
  let result = value;
  const set = (key: string, repaired: unknown): void => {
    if (result === value) result = { ...value };
    setOwn(result, key, repaired);
  };
  // JSON has no undefined: such a member would not be sent.
  if (Object.values(value).includes(undefined)) {
    result = Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
  }
  const required = new Set(requiredOf(schema));
  for (const [key, propertySchema] of Object.entries(properties)) {
    if (value[key] === undefined || !Object.hasOwn(value, key)) continue;
    if (value[key] === null && !required.has(key) && !takesNull(root, propertySchema)) {
      result = without(result, key);
      continue;
    }
    const repaired = repairValue(root, propertySchema, value[key], depth + 1);
    if (repaired !== value[key]) set(key, repaired);
  }
  for (const key of required) {
    if (Object.hasOwn(result, key) || !Object.hasOwn(properties, key)) continue;
    const property = dereference(root, properties[key]);
    if (isRecord(property) && Object.hasOwn(property, "default")) set(key, property["default"]);
  }
  return result;
}

function mapIfChanged(
  values: readonly unknown[],
  change: (value: unknown) => unknown,
): readonly unknown[] {
  let isChanged = false;
  const mapped = values.map((value) => {
    const next = change(value);
    if (next !== value) isChanged = true;
    return next;
  });
  return isChanged ? mapped : values;
}

/** JSON types a schema takes; `"any"` when it names none. */
function acceptedTypes(
  root: JsonSchema,
  schema: Record<string, unknown>,
  depth: number,
): Set<string> {
  const types = new Set<string>();
  const { type } = schema;
  for (const name of Array.isArray(type) ? type : [type])
    if (typeof name === "string") types.add(name);
  const values = Array.isArray(schema["enum"]) ? (schema["enum"] as unknown[]) : [];
  const all = schema["const"] === undefined ? values : [...values, schema["const"]];
  // Without a type the given values say which ones are taken.
  if (types.size === 0) for (const value of all) types.add(typeOf(value));
  if (schema["nullable"] === true && types.size > 0) types.add("null");
  if (types.size > 0) return types;
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = schema[keyword];
    if (!Array.isArray(branches) || depth > 8) continue;
    for (const branch of branches) {
      const resolved = dereference(root, branch);
      if (!isRecord(resolved)) types.add("any");
      else for (const name of acceptedTypes(root, resolved, depth + 1)) types.add(name);
    }
  }
  if (types.size === 0) types.add("any");
  return types;
}

function takesNull(root: JsonSchema, unresolved: unknown): boolean {
  const schema = dereference(root, unresolved);
  if (!isRecord(schema)) return schema !== false;
  const types = acceptedTypes(root, schema, 0);
  return types.has("null") || types.has("any");
}

function without(value: Record<string, unknown>, key: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/* More digits than that do not all fit into a number. */
const MAX_DIGITS = 15;

/** A text that is exactly a number or a boolean, where that is taken; no digit is lost. */
function parseScalar(text: string, wanted: ReadonlySet<string>): number | boolean | undefined {
  if (wanted.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if (!wanted.has("number") && !wanted.has("integer")) return undefined;
  if (!NUMBER.test(text) || text.replace(/\D/g, "").length > MAX_DIGITS) return undefined;
  const value = Number(text);
  return Number.isFinite(value) && (wanted.has("number") || Number.isInteger(value))
    ? value
    : undefined;
}

function parseContainer(text: string, wanted: readonly string[]): unknown {
  const trimmed = text.trim();
  if (
    !(trimmed.startsWith("[") && wanted.includes("array")) &&
    !(trimmed.startsWith("{") && wanted.includes("object"))
  ) {
    return undefined;
  }
  try {
    return JSON.parse(trimmed) as unknown;
  } catch {
    return undefined;
  }
}
