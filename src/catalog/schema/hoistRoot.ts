import { isRecord } from "../../text/isRecord.js";
import { dereference, requiredOf } from "./schemaWalk.js";
import type { JsonSchema } from "../toolEntry.js";

const COMPOSITION = ["anyOf", "oneOf", "allOf"] as const;
/** At most this many branches are read; further ones count as open. */
const MAX_BRANCHES = 500;

/**
 * Turns composition in a schema into one object with the properties of all branches; references
 * point into `root`. Required is what all branches of `anyOf` or `oneOf`, or any branch of `allOf`,
 * require. A closed branch (`additionalProperties: false`) leaves the union open.
 */
export function hoistRoot(root: JsonSchema, schema: JsonSchema): JsonSchema {
  return hoist(root, schema, { left: MAX_BRANCHES });
}

function hoist(root: JsonSchema, schema: JsonSchema, budget: { left: number }): JsonSchema {
  const resolved = typeof schema["$ref"] === "string" ? dereference(root, schema) : schema;
  const whole: JsonSchema =
    resolved === schema
      ? schema
      : { ...(isRecord(resolved) ? resolved : {}), ...without(schema, ["$ref"]) };
  if (!COMPOSITION.some((keyword) => Array.isArray(whole[keyword]))) return whole;
  const properties = new Alternatives();
  properties.add(whole["properties"]);
  const required = new Set(requiredOf(whole));
  for (const keyword of COMPOSITION) {
    const branches: JsonSchema[] = [];
    for (const branch of Array.isArray(whole[keyword]) ? (whole[keyword] as unknown[]) : []) {
      budget.left -= 1;
      if (budget.left >= 0 && isRecord(branch)) branches.push(hoist(root, branch, budget));
      else if (branch !== false) branches.push({});
    }
    for (const branch of branches) properties.add(branch["properties"]);
    const sets = branches.map((branch) => new Set(requiredOf(branch)));
    for (const name of new Set(sets.flatMap((set) => [...set]))) {
      if (keyword === "allOf" || sets.every((set) => set.has(name))) required.add(name);
    }
  }
  const rest = without(whole, [
    ...COMPOSITION,
    "additionalProperties",
    "unevaluatedProperties",
    "required",
  ]);
  return {
    ...rest,
    type: "object",
    properties: properties.all(),
    ...(required.size > 0 ? { required: [...required] } : {}),
  };
}

/** Properties of several branches; one described in different ways may be any of them. */
class Alternatives {
  readonly #byName = new Map<string, Map<string, unknown>>();

  add(properties: unknown): void {
    if (!isRecord(properties)) return;
    for (const [name, schema] of Object.entries(properties)) {
      let known = this.#byName.get(name);
      if (known === undefined) this.#byName.set(name, (known = new Map<string, unknown>()));
      // Flattens the union of an inner branch, so that alternatives do not nest.
      const isJoined =
        isRecord(schema) && Object.keys(schema).length === 1 && Array.isArray(schema["anyOf"]);
      for (const one of isJoined && known.size > 0 ? (schema["anyOf"] as unknown[]) : [schema])
        known.set(JSON.stringify(one) ?? "", one);
    }
  }

  all(): Record<string, unknown> {
    const entries = [...this.#byName].map(([name, known]) => {
      const schemas = [...known.values()];
      return [name, schemas.length === 1 ? schemas[0] : { anyOf: schemas }] as const;
    });
    return Object.fromEntries(entries);
  }
}

function without(schema: JsonSchema, keywords: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)),
  );
}
