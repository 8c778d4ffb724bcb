import { Validator, type OutputUnit, type Schema, type SchemaDraft } from "@cfworker/json-schema";

import { isRecord } from "../../text/isRecord.js";
import { isKeywordValue, JSON_TYPES } from "./keywordValues.js";
import { hoistRoot } from "./hoistRoot.js";
import { dereference, mapSchema, requiredOf, resolveReference } from "./schemaWalk.js";
import { cut, oneLine } from "../../text/clean.js";
import type { JsonSchema } from "../toolEntry.js";

/** Validators by content hash; the least recently used leaves first. */
const validators = new Map<string, Validator | undefined>();
const MAX_VALIDATORS = 512;
const MAX_PROBLEMS = 5;

/**
 * Checks arguments against the server's original schema, but not `pattern` and `format`, since a
 * pattern can block the process. A schema that cannot be read accepts everything. `hash` is the
 * tool's content hash. @returns At most five problems.
 */
export function checkArguments(
  schema: JsonSchema,
  value: unknown,
  hash: string,
): readonly string[] {
  const validator = validatorFor(schema, hash);
  if (validator === undefined) return [];
  try {
    steps = 0;
    const result = validator.validate(value);
    return result.valid ? [] : problemsOf(result.errors);
  } catch {
    // Too many steps, or a schema that the validator cannot follow: the server decides.
    return [];
  }
}

/** Schema objects of a schema that is checked; with more of them the server decides. */
const MAX_SCHEMA_OBJECTS = 5_000;

/** Schema objects that one check may look at: references can double them with every level. */
export const MAX_CHECK_STEPS = 50_000;
let steps = 0;

/** The number of schema objects that the last check looked at. */
export function lastCheckSteps(): number {
  return steps;
}

/** Counts each look of the validator at a schema object. */
function counted(schema: Record<string, unknown>): Record<string, unknown> {
  const { type } = schema;
  return Object.defineProperty(schema, "type", {
    enumerable: type !== undefined,
    get: () => {
      steps += 1;
      if (steps > MAX_CHECK_STEPS) throw new Error("too many steps");
      return type;
    },
  });
}

function validatorFor(schema: JsonSchema, hash: string): Validator | undefined {
  const known = validators.get(hash);
  if (known !== undefined || validators.has(hash)) {
    validators.delete(hash);
    validators.set(hash, known);
    return known;
  }
  let made: Validator | undefined;
  try {
    made = new Validator(lenientSchema(schema) as Schema, draftOf(schema), false);
  } catch {
    // The schema cannot be read: the server decides.
  }
  validators.set(hash, made);
  if (validators.size > MAX_VALIDATORS) validators.delete(validators.keys().next().value!);
  return made;
}

/**
 * A copy of a schema that accepts all that the original does; targets of references move into
 * `$defs`, relaxed too. @throws for a schema that is too large.
 */
export function lenientSchema(root: JsonSchema): unknown {
  const names = new Map<string, string>();
  const pending: string[] = [];
  let size = 0;
  const relaxed = (schema: unknown): unknown =>
    mapSchema(schema, (copy) => {
      size += 1;
      if (size > MAX_SCHEMA_OBJECTS) throw new Error("too many schema objects");
      for (const keyword of IGNORED) delete copy[keyword];
      const reference = copy["$ref"];
      if (reference !== undefined) {
        delete copy["$ref"];
        if (typeof reference === "string" && isRecord(resolveReference(root, reference))) {
          if (!names.has(reference)) {
            names.set(reference, `ref${names.size}`);
            pending.push(reference);
          }
          copy["$ref"] = `#/$defs/${names.get(reference)!}`;
        }
      }
      const lenient = relax(copy);
      return isRecord(lenient) ? counted(lenient) : lenient;
    });
  const whole = relaxed(root);
  const definitions: Record<string, unknown> = {};
  // Grows while it is walked.
  for (const reference of pending) {
    definitions[names.get(reference)!] = relaxed(resolveReference(root, reference));
  }
  return names.size === 0 || !isRecord(whole) ? whole : { ...whole, $defs: definitions };
}

/**
 * Keywords not judged: patterns, formats, those that could refuse too much without them, names that
 * move references.
 */
const IGNORED = [
  "pattern",
  "format",
  "not",
  "if",
  "then",
  "else",
  "unevaluatedProperties",
  "unevaluatedItems",
  "maxContains",
  "propertyNames",
  "dependencies",
  "dependentSchemas",
  "dependentRequired",
  "$defs",
  "definitions",
  "$id",
  "id",
  "$anchor",
  "$recursiveRef",
  "$recursiveAnchor",
  "$dynamicRef",
];

function relax(copy: Record<string, unknown>): unknown {
  for (const [keyword, value] of Object.entries(copy))
    if (!isKeywordValue(keyword, value)) delete copy[keyword];
  // Another dialect: the server decides.
  if (copy["type"] !== undefined && ![copy["type"]].flat().every((type) => JSON_TYPES.has(type)))
    delete copy["type"];
  if (
    copy["required"] !== undefined &&
    !(Array.isArray(copy["required"]) && copy["required"].every((name) => typeof name === "string"))
  ) {
    delete copy["required"];
  }
  if (copy["patternProperties"] !== undefined) {
    delete copy["patternProperties"];
    delete copy["additionalProperties"];
  }
  if (Array.isArray(copy["oneOf"])) {
    if (copy["anyOf"] === undefined) copy["anyOf"] = copy["oneOf"];
    delete copy["oneOf"];
  }
  if (copy["nullable"] !== true) return copy;
  delete copy["nullable"];
  return { anyOf: [copy, { type: "null" }] };
}

function draftOf(schema: JsonSchema): SchemaDraft {
  const dialect = typeof schema["$schema"] === "string" ? schema["$schema"] : "";
  if (dialect.includes("draft-04")) return "4";
  // These drafts ignore keywords beside a reference.
  return /draft-0[67]/.test(dialect) ? "7" : "2020-12";
}

function problemsOf(errors: readonly OutputUnit[]): string[] {
  const problems = new Set<string>();
  // The validator reports outer keywords first; the errors inside them help.
  for (const { keyword, instanceLocation, error } of errors) {
    if (
      ["properties", "items", "$ref", "additionalProperties", "allOf"].includes(keyword) &&
      errors.length > 1
    )
      continue;
    const at = instanceLocation.replace(/^#\/?/, "");
    const text = keyword === "false" ? "is not an argument of this tool" : error.replace(/\.$/, "");
    problems.add(at === "" ? text : `${at}: ${text}`);
  }
  return [...problems].slice(0, MAX_PROBLEMS).map((problem) => oneLine(problem, 300));
}

/** Levels of objects that are described. */
const MAX_DESCRIBED_LEVELS = 3;
const MAX_CHOICES = 12;

/**
 * The arguments of a tool in a few words for the model, such as `path: string (required)`, with
 * references resolved and choices listed.
 */
export function describeParameters(schema: JsonSchema, maxChars = 1_500): string {
  const text = describeProperties(schema, schema, 1);
  return text === "" ? "no arguments" : cut(text, maxChars);
}

function describeProperties(root: JsonSchema, schema: JsonSchema, level: number): string {
  const whole = hoistRoot(root, schema);
  const required = new Set(requiredOf(whole));
  // A required name may have no property.
  const named = Object.fromEntries([...required].map((name) => [name, {}]));
  const properties = { ...named, ...(isRecord(whole["properties"]) ? whole["properties"] : {}) };
  return Object.entries(properties)
    .map(([name, property]) => {
      const type = describeType(root, property, level);
      return `${oneLine(name, 80)}: ${type}${required.has(name) ? " (required)" : ""}`;
    })
    .join(", ");
}

function describeType(root: JsonSchema, given: unknown, level: number): string {
  const schema = dereference(root, given);
  if (!isRecord(schema)) return "any";
  const { type, enum: choices, const: only, items } = schema;
  if (Array.isArray(choices)) {
    return oneLine(`one of ${JSON.stringify(choices.slice(0, MAX_CHOICES))}`, 200);
  }
  if (only !== undefined) return oneLine(JSON.stringify(only), 80);
  if (type === "array") {
    return level > MAX_DESCRIBED_LEVELS
      ? "array"
      : `array of ${describeType(root, items, level + 1)}`;
  }
  if (Array.isArray(type)) return type.filter((name) => typeof name === "string").join(" or ");
  const branches = schema["anyOf"] ?? schema["oneOf"];
  if (typeof type !== "string" && Array.isArray(branches) && level <= MAX_DESCRIBED_LEVELS) {
    const described = branches
      .slice(0, MAX_CHOICES)
      .map((branch) => describeType(root, branch, level + 1));
    return [...new Set(described)].join(" or ");
  }
  const isObject = type === "object" || (type === undefined && isRecord(schema["properties"]));
  if (isObject || Array.isArray(schema["allOf"])) {
    const inner = level >= MAX_DESCRIBED_LEVELS ? "" : describeProperties(root, schema, level + 1);
    return inner === "" ? "object" : `object { ${inner} }`;
  }
  return typeof type === "string" ? oneLine(type, 40) : "any";
}
