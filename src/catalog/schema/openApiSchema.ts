import { isRecord } from "../../text/isRecord.js";
import { requiredOf, setOwn } from "./schemaWalk.js";
import type { JsonSchema } from "../toolEntry.js";

/** Keywords of Gemini's `Schema`. */
const TAKEN = new Set(
  (
    "type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength " +
    "pattern anyOf default items minimum maximum"
  ).split(" "),
);
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ["date-time", "enum"],
  integer: ["int32", "int64"],
  number: ["float", "double"],
};
/** Any value; Gemini requires a type everywhere. */
const ANY = [{ type: "string" }, { type: "number" }, { type: "boolean" }];

/**
 * Converts a schema without `$ref` into Gemini's subset of OpenAPI 3.0.
 * @see https://ai.google.dev/api/caching#Schema
 */
export function toOpenApi(schema: JsonSchema): JsonSchema {
  const converted = convert(schema);
  return { ...converted, type: "object", properties: converted["properties"] ?? {} };
}

function convert(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) return { anyOf: ANY };
  const schema = withoutMerges(value);
  const notes: string[] = [];
  const types = [schema["type"]].flat().filter((type): type is string => typeof type === "string");
  const branches = [schema["anyOf"], schema["oneOf"]].flatMap((list) =>
    Array.isArray(list) ? (list as unknown[]) : [],
  );
  const isNullable =
    types.includes("null") ||
    branches.some(isNull) ||
    (Array.isArray(schema["enum"]) && schema["enum"].includes(null));
  const named = types.filter((type) => type !== "null");
  const choices = choicesOf(schema, notes);
  const single = branches.filter((branch) => !isNull(branch));
  if (single.length > 1 || (single.length === 0 && named.length > 1)) {
    const alternatives =
      single.length > 1
        ? single
        : named.map((type) => ({
            ...schema,
            type,
            ...(type === "array" ? {} : { items: undefined }),
          }));
    return alone(alternatives.map(convert), schema, isNullable);
  }
  const [only] = single;
  const inner = only === undefined ? {} : convert(only);
  if (Array.isArray(inner["anyOf"]))
    return alone(inner["anyOf"] as Record<string, unknown>[], schema, isNullable);
  const type = named[0] ?? (inner["type"] as string | undefined) ?? guessType(schema, choices);
  if (type === undefined) return alone(ANY, schema, isNullable);
  const result: Record<string, unknown> = {
    ...inner,
    ...pick(schema),
    type,
    ...(choices === undefined ? {} : { enum: choices }),
  };
  if (choices === undefined && inner["enum"] === undefined) delete result["enum"];
  if (isNullable) result["nullable"] = true;
  shape(result, schema, type);
  return withNotes(result, schema, notes);
}

/** Merges `allOf`, and moves keywords beside alternatives into each of them. */
function withoutMerges(value: Record<string, unknown>): Record<string, unknown> {
  const { allOf, ...rest } = value;
  const whole = (Array.isArray(allOf) ? allOf.filter(isRecord) : []).reduce<
    Record<string, unknown>
  >(merge, rest);
  const isTyped = whole["type"] !== undefined || whole["properties"] !== undefined;
  const keyword = Array.isArray(whole["anyOf"])
    ? "anyOf"
    : Array.isArray(whole["oneOf"])
      ? "oneOf"
      : undefined;
  if (!isTyped || keyword === undefined) return whole;
  const base = Object.fromEntries(
    Object.entries(whole).filter(([name]) => name !== "anyOf" && name !== "oneOf"),
  );
  const branches = (whole[keyword] as unknown[]).filter(isRecord);
  // These alternatives limit the value without describing it.
  if (
    !branches.some((branch) =>
      ["type", "properties", "enum", "const", "anyOf", "oneOf", "allOf", "items"].some(
        (name) => name in branch,
      ),
    )
  )
    return base;
  return {
    anyOf: branches.map((branch) => merge(base, branch)),
    ...(base["description"] === undefined ? {} : { description: base["description"] }),
  };
}

function merge(a: Record<string, unknown>, b: Record<string, unknown>): Record<string, unknown> {
  const inner = Array.isArray(b["allOf"]) ? withoutMerges(b) : b;
  const properties = {
    ...(isRecord(a["properties"]) ? a["properties"] : {}),
    ...(isRecord(inner["properties"]) ? inner["properties"] : {}),
  };
  const required = [a, inner].flatMap(requiredOf);
  const types = [inner["type"], a["type"]].filter((type) => type !== undefined);
  return {
    ...inner,
    ...a,
    ...(types.length === 0 ? {} : { type: commonTypes(types) }),
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
  };
}

/** The types both name; the first's own if they share none. */
function commonTypes([first, second]: readonly unknown[]): unknown {
  if (second === undefined) return first;
  const others = new Set<unknown>(Array.isArray(second) ? second : [second]);
  const common = (Array.isArray(first) ? (first as unknown[]) : [first]).filter((type) =>
    others.has(type),
  );
  return common.length === 0 ? first : common.length === 1 ? common[0] : common;
}

/** Moves keywords beside `anyOf` into each branch, since Gemini takes `anyOf` only on its own. */
function alone(
  branches: readonly Record<string, unknown>[],
  schema: Record<string, unknown>,
  isNullable: boolean,
): Record<string, unknown> {
  const { description } = schema;
  return {
    anyOf: branches.map((branch) => ({
      ...branch,
      ...(typeof description === "string" && branch["description"] === undefined
        ? { description }
        : {}),
      ...(isNullable ? { nullable: true } : {}),
    })),
  };
}

function pick(schema: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).filter(
      ([keyword, value]) => TAKEN.has(keyword) && keyword !== "anyOf" && value !== undefined,
    ),
  );
}

/** String choices; others go into the notes. Gemini refuses an empty string as a choice. */
function choicesOf(schema: Record<string, unknown>, notes: string[]): string[] | undefined {
  const all =
    "const" in schema
      ? [schema["const"]]
      : Array.isArray(schema["enum"])
        ? (schema["enum"] as unknown[])
        : undefined;
  if (all === undefined) return undefined;
  const texts = all.filter(
    (choice): choice is string => typeof choice === "string" && choice !== "",
  );
  const others = all.filter((choice) => choice !== null && typeof choice !== "string");
  if (others.length > 0) {
    notes.push(`One of: ${all.map((choice) => JSON.stringify(choice)).join(", ")}.`);
    return undefined;
  }
  if (all.includes("")) notes.push("May be an empty text.");
  return texts.length === 0 ? undefined : texts;
}

function guessType(
  schema: Record<string, unknown>,
  choices: readonly string[] | undefined,
): string | undefined {
  if (choices !== undefined) return "string";
  if (isRecord(schema["properties"])) return "object";
  if (schema["items"] !== undefined) return "array";
  const { const: constant, enum: all } = schema;
  const example: unknown =
    constant ?? (Array.isArray(all) ? all.find((choice) => choice !== null) : undefined);
  return ["number", "boolean", "string"].find((type) => typeof example === type);
}

/** Keeps the keywords of the type and converts inner schemas. */
function shape(
  result: Record<string, unknown>,
  schema: Record<string, unknown>,
  type: string,
): void {
  if (type !== "string") delete result["enum"];
  if (typeof result["format"] === "string" && !(FORMATS[type] ?? []).includes(result["format"]))
    delete result["format"];
  if (type === "array") result["items"] = convert(schema["items"] ?? result["items"]);
  else delete result["items"];
  const properties =
    type === "object" && isRecord(schema["properties"]) ? schema["properties"] : {};
  const isOwn = isRecord(schema["properties"]) || type !== "object";
  if (!isOwn) return;
  delete result["properties"];
  delete result["required"];
  const converted: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(properties)) setOwn(converted, name, convert(inner));
  const required = requiredOf(schema).filter((name) => Object.hasOwn(converted, name));
  // Gemini refuses an empty `properties`.
  if (Object.keys(converted).length > 0) result["properties"] = converted;
  if (required.length > 0) result["required"] = required;
}

function withNotes(
  result: Record<string, unknown>,
  schema: Record<string, unknown>,
  notes: readonly string[],
): Record<string, unknown> {
  if (notes.length === 0) return result;
  const description = typeof schema["description"] === "string" ? `${schema["description"]} ` : "";
  return { ...result, description: description + notes.join(" ") };
}

function isNull(schema: unknown): boolean {
  return (
    isRecord(schema) &&
    (schema["type"] === "null" || (Object.hasOwn(schema, "const") && schema["const"] === null))
  );
}
