import { dereference, isSchemaObject, setOwn } from "./schemaWalk.js";
import type { JsonSchema } from "./toolEntry.js";

const COMPOSITION = ["anyOf", "oneOf", "allOf"] as const;
const MAX_DEPTH = 8;

/**
 * A root schema without composition: one object with the properties of all branches.
 *
 * Required is what every branch of `anyOf` or `oneOf` requires, and what any branch of `allOf` requires. A property
 * that branches describe differently may be any of them. A closed branch (`additionalProperties: false`) leaves the
 * union open.
 *
 * @param root - Where references point into.
 */
export function hoistRoot(root: JsonSchema, schema: JsonSchema, depth = 0): JsonSchema {
  const resolved = typeof schema["$ref"] === "string" ? dereference(root, schema) : schema;
  const whole: JsonSchema =
    resolved === schema ? schema : { ...(isSchemaObject(resolved) ? resolved : {}), ...without(schema, ["$ref"]) };
  if (depth > MAX_DEPTH || !COMPOSITION.some((keyword) => Array.isArray(whole[keyword]))) return whole;
  const properties: Record<string, unknown> = {};
  addProperties(properties, whole["properties"]);
  const required = new Set(requiredOf(whole));
  const rest = without(whole, [...COMPOSITION, "additionalProperties", "unevaluatedProperties"]);
  for (const keyword of COMPOSITION) {
    const branches = (Array.isArray(whole[keyword]) ? (whole[keyword] as unknown[]) : [])
      .filter(isSchemaObject)
      .map((branch) => hoistRoot(root, branch, depth + 1));
    for (const branch of branches) addProperties(properties, branch["properties"]);
    const sets = branches.map((branch) => new Set(requiredOf(branch)));
    for (const name of sets.flatMap((set) => [...set])) {
      if (keyword === "allOf" || sets.every((set) => set.has(name))) required.add(name);
    }
  }
  return { ...rest, type: "object", properties, ...(required.size > 0 ? { required: [...required] } : {}) };
}

/** Adds the properties of a branch; one that differs from what is there becomes one of several. */
function addProperties(into: Record<string, unknown>, properties: unknown): void {
  if (!isSchemaObject(properties)) return;
  for (const [name, schema] of Object.entries(properties)) {
    const present = Object.hasOwn(into, name) ? into[name] : undefined;
    if (present === undefined) setOwn(into, name, schema);
    else if (JSON.stringify(present) !== JSON.stringify(schema)) setOwn(into, name, joinAlternatives(present, schema));
  }
}

function joinAlternatives(present: unknown, schema: unknown): unknown {
  const isJoined = isSchemaObject(present) && Object.keys(present).length === 1 && Array.isArray(present["anyOf"]);
  const known = isJoined ? (present["anyOf"] as unknown[]) : [present];
  return known.some((one) => JSON.stringify(one) === JSON.stringify(schema)) ? present : { anyOf: [...known, schema] };
}

function requiredOf(schema: JsonSchema): string[] {
  return Array.isArray(schema["required"]) ? schema["required"].filter((name): name is string => typeof name === "string") : [];
}

function without(schema: JsonSchema, keywords: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)));
}
