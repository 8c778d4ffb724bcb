import { isRecord } from "../../text/isRecord.js";
import { hoistRoot } from "./hoistRoot.js";
import { toOpenApi } from "./openApiSchema.js";
import { isKeywordValue, JSON_TYPES } from "./keywordValues.js";
import { withLegalKeys } from "./legalKeys.js";
import { PROFILES, type SchemaProfile } from "./profiles.js";
import { MAX_SCHEMA_DEPTH, resolveReference, setOwn } from "./schemaWalk.js";
import type { JsonSchema } from "../toolEntry.js";

/**
 * Standard keywords that describe a value; others (`$schema`, `$id`, vendor keywords) say nothing
 * to a model.
 */
const KEPT = new Set(
  (
    "type enum const description title default examples format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf " +
    "minLength maxLength minItems maxItems uniqueItems contains minContains maxContains minProperties maxProperties required properties " +
    "patternProperties additionalProperties propertyNames items anyOf oneOf allOf not if then else dependentRequired dependentSchemas " +
    "unevaluatedProperties unevaluatedItems deprecated readOnly writeOnly"
  ).split(" "),
);
/**
 * At most this many schemas are converted; further ones keep only their type, so that a hostile
 * schema costs little.
 */
const MAX_NODES = 20_000;
const MAX_INLINED_NODES = 3_000;

/**
 * Converts a tool's input schema into the form a provider takes, without changing its meaning.
 * Never throws. Composition at the root (`anyOf`, `oneOf`, `allOf`), which providers refuse,
 * becomes one object. Local references point into `$defs`, or are inlined for a provider that
 * refuses `$ref`, where recursion is cut. Older drafts become JSON Schema 2020-12.
 */
export function toModelSchema(
  schema: JsonSchema,
  profile: SchemaProfile = PROFILES.generic,
): JsonSchema {
  const view = new SchemaView(schema, profile);
  return view.root();
}

class SchemaView {
  readonly #source: JsonSchema;
  readonly #profile: SchemaProfile;
  /** Names in `$defs` by reference. */
  readonly #names = new Map<string, string>();
  readonly #taken = new Set<string>();
  readonly #counts = new Map<string, number>();
  readonly #pending: string[] = [];
  #nodes = 0;

  constructor(source: JsonSchema, profile: SchemaProfile) {
    this.#source = source;
    this.#profile = profile;
  }

  root(): JsonSchema {
    const hoisted = hoistRoot(this.#source, this.#source);
    const converted = this.#object(hoisted, [], 0);
    // Refused or meaningless at the root of an input schema.
    for (const keyword of ["enum", "const", "not", "if", "then", "else", "$ref"])
      delete converted[keyword];
    converted["type"] = "object";
    converted["properties"] ??= {};
    const definitions: Record<string, unknown> = {};
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
      const target = next === "#" ? hoisted : resolveReference(this.#source, next);
      setOwn(definitions, this.#names.get(next)!, this.#convert(target, [], 1));
    }
    const whole =
      Object.keys(definitions).length === 0 ? converted : { ...converted, $defs: definitions };
    return withLegalKeys(this.#profile.dialect === "openapi" ? toOpenApi(whole) : whole);
  }

  #convert(schema: unknown, path: readonly string[], depth: number): unknown {
    if (!isRecord(schema)) return schema === false ? { not: {} } : {};
    if (depth > MAX_SCHEMA_DEPTH || this.#nodes > MAX_NODES) return typeOnly(schema);
    this.#nodes += 1;
    const reference = schema["$ref"];
    const view =
      typeof reference === "string"
        ? this.#reference(schema, reference, path, depth)
        : this.#object(schema, path, depth);
    const isOpen = isRecord(view) && view["type"] === undefined && Object.keys(view).length > 0;
    return schema["nullable"] === true && isOpen ? { anyOf: [view, { type: "null" }] } : view;
  }

  #reference(
    schema: Record<string, unknown>,
    reference: string,
    path: readonly string[],
    depth: number,
  ): unknown {
    const beside = Object.fromEntries(
      Object.entries(schema).filter(([keyword]) => keyword !== "$ref"),
    );
    const target = resolveReference(this.#source, reference);
    if (!isRecord(target)) return this.#object(beside, path, depth);
    if (this.#profile.references === "inline") {
      if (path.includes(reference) || this.#nodes > MAX_INLINED_NODES)
        return { ...typeOnly(target), ...this.#object(beside, path, depth) };
      return this.#convert({ ...target, ...beside }, [...path, reference], depth + 1);
    }
    return { $ref: `#/$defs/${this.#nameOf(reference)}`, ...this.#object(beside, path, depth) };
  }

  #nameOf(reference: string): string {
    const known = this.#names.get(reference);
    if (known !== undefined) return known;
    const wanted =
      reference === "#"
        ? "root"
        : reference
            .split("/")
            .at(-1)!
            .replace(/[^A-Za-z0-9_-]+/g, "_");
    let name = wanted === "__proto__" || wanted === "" ? "schema" : wanted;
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    if (count > 1 || this.#taken.has(name)) name = `${name}_${count}_${this.#names.size}`;
    this.#taken.add(name);
    this.#names.set(reference, name);
    this.#pending.push(reference);
    return name;
  }

  #object(schema: JsonSchema, path: readonly string[], depth: number): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (!KEPT.has(keyword) || !isKeywordValue(keyword, value)) continue;
      // A widened schema under `not` would refuse more than the original.
      if (keyword === "not" && /"\$ref"|"dependencies"/.test(JSON.stringify(value))) continue;
      const converted = this.#keyword(keyword, value, path, depth + 1);
      if (converted !== undefined) result[keyword] = converted;
    }
    modernise(result, schema, (inner) => this.#convert(inner, path, depth + 1));
    return result;
  }

  #keyword(keyword: string, value: unknown, path: readonly string[], depth: number): unknown {
    switch (keyword) {
      case "properties":
      case "patternProperties":
      case "dependentSchemas": {
        if (!isRecord(value)) return undefined;
        const properties: Record<string, unknown> = {};
        for (const [name, inner] of Object.entries(value))
          if (inner !== false) setOwn(properties, name, this.#convert(inner, path, depth));
        return properties;
      }
      case "anyOf":
      case "oneOf":
      case "allOf":
        return Array.isArray(value) && value.length > 0
          ? value.map((inner) => this.#convert(inner, path, depth))
          : undefined;
      case "items":
        return Array.isArray(value) ? undefined : this.#convert(value, path, depth);
      case "additionalProperties":
      case "unevaluatedProperties":
      case "unevaluatedItems":
        return typeof value === "boolean" ? value : this.#convert(value, path, depth);
      case "contains":
      case "propertyNames":
      case "not":
      case "if":
      case "then":
      case "else":
        return this.#convert(value, path, depth);
      case "required":
        return Array.isArray(value)
          ? [...new Set(value.filter((name) => typeof name === "string"))]
          : undefined;
      case "type":
        return validTypes(value);
      default:
        return value;
    }
  }
}

/** Rewrites older drafts and OpenAPI as 2020-12. */
function modernise(
  result: Record<string, unknown>,
  source: JsonSchema,
  convert: (inner: unknown) => unknown,
): void {
  for (const [exclusive, limit] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (source[exclusive] === true && typeof source[limit] === "number") {
      result[exclusive] = source[limit];
      delete result[limit];
    }
  }
  if (source["nullable"] === true && result["type"] !== undefined) {
    const types = [result["type"]].flat();
    if (!types.includes("null")) result["type"] = [...types, "null"];
    if (Array.isArray(result["enum"]) && !result["enum"].includes(null))
      result["enum"] = [...(result["enum"] as unknown[]), null];
  }
  const tuple = Array.isArray(source["items"])
    ? (source["items"] as unknown[])
    : Array.isArray(source["prefixItems"])
      ? (source["prefixItems"] as unknown[])
      : undefined;
  if (tuple !== undefined) {
    const rest = Array.isArray(source["items"]) ? source["additionalItems"] : source["items"];
    const members = [...tuple, ...(isRecord(rest) ? [rest] : [])].map(convert);
    const isOpen = rest === undefined || rest === true;
    result["items"] =
      isOpen || members.length === 0
        ? members.length === 1 && !isOpen
          ? members[0]
          : anyOf(members)
        : anyOf(members);
  }
  if ([result["type"]].flat().includes("array") && result["items"] === undefined)
    result["items"] = {};
}

function anyOf(members: readonly unknown[]): unknown {
  const distinct = [...new Map(members.map((member) => [JSON.stringify(member), member])).values()];
  return distinct.length === 0 ? {} : distinct.length === 1 ? distinct[0] : { anyOf: distinct };
}

function validTypes(value: unknown): unknown {
  const types = [...new Set([value].flat().filter((type) => JSON_TYPES.has(type)))];
  return types.length === 0 ? undefined : types.length === 1 ? types[0] : types;
}

function typeOnly(schema: Record<string, unknown>): Record<string, unknown> {
  const type =
    validTypes(schema["type"]) ?? (isRecord(schema["properties"]) ? "object" : undefined);
  return {
    ...(type === undefined ? {} : { type }),
    ...(type === "array" ? { items: {} } : {}),
    ...(typeof schema["description"] === "string" ? { description: schema["description"] } : {}),
  };
}
