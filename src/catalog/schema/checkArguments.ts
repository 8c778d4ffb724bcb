import { Validator, type OutputUnit, type Schema, type SchemaDraft } from "@cfworker/json-schema";

import { isRecord } from "../../text/isRecord.js";
import { isKeywordValue, JSON_TYPES } from "./keywordValues.js";
import { mapSchema, requiredOf, resolvePointer } from "./schemaWalk.js";
import { cut, oneLine } from "../../text/clean.js";
import type { JsonSchema } from "../toolEntry.js";

/** Validators by content hash, the least recently used dropped first. */
const validators = new Map<string, Validator | undefined>();
const MAX_VALIDATORS = 512;
const MAX_PROBLEMS = 5;

/**
 * Checks arguments against the server's original schema.
 *
 * Lenient where our check could be wrong: `pattern` and `format` are not looked at (a pattern can block the process,
 * and the server decides), and a schema that the validator cannot read accepts everything.
 *
 * @param hash - Content hash of the tool, the key under which the validator is kept.
 * @returns What is wrong, at most five problems; empty when the arguments fit.
 */
export function checkArguments(schema: JsonSchema, value: unknown, hash: string): readonly string[] {
  const validator = validatorFor(schema, hash);
  if (validator === undefined) return [];
  try {
    const result = validator.validate(value);
    return result.valid ? [] : problemsOf(result.errors);
  } catch {
    return [];
  }
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
    // An unreadable schema: the server decides.
  }
  validators.set(hash, made);
  if (validators.size > MAX_VALIDATORS) validators.delete(validators.keys().next().value!);
  return made;
}

/**
 * A copy of a schema that refuses nothing the original accepts, without the parts we do not judge.
 *
 * What references point to is moved into `$defs` and relaxed, too, wherever it stood.
 */
export function lenientSchema(root: JsonSchema): unknown {
  const names = new Map<string, string>();
  const pending: string[] = [];
  const relaxed = (schema: unknown): unknown =>
    mapSchema(schema, (copy) => {
      for (const keyword of IGNORED) delete copy[keyword];
      const reference = copy["$ref"];
      if (reference !== undefined) {
        delete copy["$ref"];
        if (typeof reference === "string" && isRecord(resolvePointer(root, reference))) {
          if (!names.has(reference)) {
            names.set(reference, `ref${names.size}`);
            pending.push(reference);
          }
          copy["$ref"] = `#/$defs/${names.get(reference)!}`;
        }
      }
      return relax(copy);
    });
  const whole = relaxed(root);
  const definitions: Record<string, unknown> = {};
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    definitions[names.get(next)!] = relaxed(resolvePointer(root, next));
  }
  return names.size === 0 || !isRecord(whole) ? whole : { ...whole, $defs: definitions };
}

/* Not judged: patterns and formats, and what could refuse too much without them; names that would move references. */
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
  for (const [keyword, value] of Object.entries(copy)) if (!isKeywordValue(keyword, value)) delete copy[keyword];
  // Written by servers that mean another dialect: the server decides.
  if (copy["type"] !== undefined && ![copy["type"]].flat().every((type) => JSON_TYPES.has(type))) delete copy["type"];
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
  // There keywords beside a reference count for nothing.
  return /draft-0[67]/.test(dialect) ? "7" : "2020-12";
}

function problemsOf(errors: readonly OutputUnit[]): string[] {
  const problems = new Set<string>();
  // The validator reports outer keywords ("properties") and then what failed inside them; the inner ones help.
  for (const { keyword, instanceLocation, error } of errors) {
    if (["properties", "items", "$ref", "additionalProperties", "allOf"].includes(keyword) && errors.length > 1) continue;
    const at = instanceLocation.replace(/^#\/?/, "");
    const text = error.replace(/\.$/, "");
    problems.add(at === "" ? text : `${at}: ${text}`);
  }
  return [...problems].slice(0, MAX_PROBLEMS).map((problem) => oneLine(problem, 300));
}

/**
 * The arguments a tool takes, in a few words for the model.
 *
 * @example
 * describeParameters({ type: "object", properties: { path: { type: "string" } }, required: ["path"] });
 * // → 'path: string (required)'
 */
export function describeParameters(schema: JsonSchema, maxChars = 1_500): string {
  const required = new Set(requiredOf(schema));
  // A name may be required of which nothing else is said.
  const named = Object.fromEntries([...required].map((name) => [name, {}]));
  const properties = { ...named, ...(isRecord(schema["properties"]) ? schema["properties"] : {}) };
  if (Object.keys(properties).length === 0) return "no arguments";
  const parts = Object.entries(properties).map(
    ([name, property]) => `${oneLine(name, 80)}: ${describeType(property)}${required.has(name) ? " (required)" : ""}`,
  );
  return cut(parts.join(", "), maxChars);
}

function describeType(schema: unknown): string {
  if (!isRecord(schema)) return "any";
  const { type, enum: choices, items } = schema;
  if (Array.isArray(choices)) return oneLine(`one of ${JSON.stringify(choices.slice(0, 12))}`, 200);
  if (type === "array") return `array of ${describeType(items)}`;
  if (Array.isArray(type)) return type.filter((name) => typeof name === "string").join(" or ");
  if (typeof type === "string") return oneLine(type, 40);
  const branches = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(branches)) return [...new Set(branches.map(describeType))].join(" or ");
  return typeof schema["$ref"] === "string" ? "object" : "any";
}
