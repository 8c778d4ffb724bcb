import { dereference, isSchemaObject, setOwn } from "./schemaWalk.js";
import type { JsonSchema } from "./toolEntry.js";

const COMPOSITION = ["anyOf", "oneOf", "allOf"] as const;

/**
 * The model's view of a tool's input schema: same meaning, in a shape that providers take.
 *
 * Composition at the root (`anyOf`, `oneOf`, `allOf`), which providers refuse there, becomes one object: properties of
 * all branches; required is what every branch requires (of `allOf`: what any requires). Nested parts pass unchanged.
 */
export function toModelSchema(schema: JsonSchema): JsonSchema {
  const hoisted = COMPOSITION.some((keyword) => Array.isArray(schema[keyword])) ? hoistRoot(schema) : schema;
  return isSchemaObject(hoisted["properties"]) ? hoisted : { ...hoisted, properties: {} };
}

function hoistRoot(schema: JsonSchema): JsonSchema {
  const properties: Record<string, unknown> = {};
  addProperties(properties, schema["properties"]);
  const required = new Set(requiredOf(schema));
  const rest = Object.fromEntries(Object.entries(schema).filter(([key]) => !(COMPOSITION as readonly string[]).includes(key)));
  for (const keyword of COMPOSITION) {
    const branches = (Array.isArray(schema[keyword]) ? schema[keyword] : [])
      .map((branch: unknown) => dereference(schema, branch))
      .filter(isSchemaObject)
      .map((branch: Record<string, unknown>) =>
        COMPOSITION.some((inner) => Array.isArray(branch[inner]))
          ? hoistRoot({ ...branch, $defs: schema["$defs"], definitions: schema["definitions"] })
          : branch,
      );
    if (branches.length === 0) continue;
    for (const branch of branches) addProperties(properties, branch["properties"]);
    const [first, ...others] = branches.map((branch) => new Set(requiredOf(branch)));
    for (const name of first ?? []) if (keyword !== "allOf" && others.every((other) => other.has(name))) required.add(name);
    if (keyword === "allOf") for (const branch of branches) for (const name of requiredOf(branch)) required.add(name);
    // Each branch may be closed; their union is not.
    delete rest["additionalProperties"];
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
  const known =
    isSchemaObject(present) && Object.keys(present).length === 1 && Array.isArray(present["anyOf"])
      ? (present["anyOf"] as unknown[])
      : [present];
  return known.some((one) => JSON.stringify(one) === JSON.stringify(schema)) ? present : { anyOf: [...known, schema] };
}

function requiredOf(schema: JsonSchema): string[] {
  return Array.isArray(schema["required"]) ? schema["required"].filter((name): name is string => typeof name === "string") : [];
}
