import { Validator } from "@cfworker/json-schema";
import fc from "fast-check";

import { checkArguments, describeParameters } from "../../../src/catalog/schema/checkArguments.js";
import { toModelSchema } from "../../../src/catalog/schema/modelSchema.js";
import { repairArguments } from "../../../src/catalog/schema/repairArguments.js";
import { dereference, resolveReference } from "../../../src/catalog/schema/schemaWalk.js";

const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
let hashes = 0;
const check = (schema: object, value: unknown) =>
  checkArguments(schema as never, value, `h${(hashes += 1)}`);

describe("repairArguments", () => {
  const list = object({
    a: { type: "array" },
    o: { type: "object" },
    s: { type: "string" },
    u: { anyOf: [{ type: "string" }, { type: "array" }] },
    any: {},
  });

  it.each<[string, object, unknown, unknown]>([
    ["nothing", object({}), undefined, {}],
    ["null", object({}), null, {}],
    ["an empty text", object({}), "", {}],
    ["arguments as one JSON text", list, '{"s":"x"}', { s: "x" }],
    ["JSON text for an array", list, { a: "[1,2]" }, { a: [1, 2] }],
    ["JSON text for an object", list, { o: '{"x":1}' }, { o: { x: 1 } }],
    ["JSON text for a string", list, { s: "[1,2]" }, { s: "[1,2]" }],
    ["JSON text where a string is one of the types", list, { u: "[1,2]" }, { u: "[1,2]" }],
    ["JSON text where no type is said", list, { any: "[1,2]" }, { any: "[1,2]" }],
    ["text for an array that is no JSON", list, { a: "one, two" }, { a: "one, two" }],
    ["text for an object that is an array", list, { o: "[1]" }, { o: "[1]" }],
    [
      "JSON text inside an array",
      object({ a: { type: "array", items: { type: "object" } } }),
      { a: ['{"x":1}', { y: 2 }] },
      { a: [{ x: 1 }, { y: 2 }] },
    ],
    [
      "JSON text behind a reference",
      { ...object({ a: { $ref: "#/$defs/list" } }), $defs: { list: { type: "array" } } },
      { a: "[3]" },
      { a: [3] },
    ],
    [
      "a required parameter with a default",
      object({ p: { default: 5 } }, { required: ["p"] }),
      {},
      { p: 5 },
    ],
    ["an optional parameter with a default", object({ p: { default: 5 } }), {}, {}],
    ["null for an optional parameter", list, { s: null, a: [] }, { a: [] }],
    [
      "null for a required parameter",
      object({ s: { type: "string" } }, { required: ["s"] }),
      { s: null },
      { s: null },
    ],
    [
      "null where it is taken",
      object({ s: { type: ["string", "null"] } }),
      { s: null },
      { s: null },
    ],
    ["null where it is a choice", object({ s: { enum: ["a", null] } }), { s: null }, { s: null }],
    [
      "null where OpenAPI takes it",
      object({ s: { type: "string", nullable: true } }),
      { s: null },
      { s: null },
    ],
    [
      "null deeper",
      object({ o: object({ s: { type: "string" } }) }),
      { o: { s: null } },
      { o: {} },
    ],
    [
      "a number as text",
      object({ n: { type: "integer" }, x: { type: "number" } }),
      { n: "10", x: "-1.5e3" },
      { n: 10, x: -1500 },
    ],
    [
      "numbers as texts in a list",
      object({ l: { type: "array", items: { type: "number" } } }),
      { l: ["1", 2] },
      { l: [1, 2] },
    ],
    [
      "a number as text where one of the choices is a number",
      object({ n: { enum: [1, 2] } }),
      { n: "2" },
      { n: 2 },
    ],
    ["a fraction for an integer", object({ n: { type: "integer" } }), { n: "1.5" }, { n: "1.5" }],
    [
      "more digits than a number has",
      object({ n: { type: "integer" } }),
      { n: "12345678901234567890" },
      { n: "12345678901234567890" },
    ],
    [
      "text that is nearly a number",
      object({ n: { type: "number" } }),
      { n: "10 kg" },
      { n: "10 kg" },
    ],
    [
      "a number as text where text is taken",
      object({ n: { type: ["number", "string"] } }),
      { n: "10" },
      { n: "10" },
    ],
    ["a boolean as text", object({ b: { type: "boolean" } }), { b: "true" }, { b: true }],
    ["a boolean in other words", object({ b: { type: "boolean" } }), { b: "yes" }, { b: "yes" }],
    [
      "JSON text behind an anchor",
      { ...object({ a: { $ref: "#list" } }), $defs: { l: { $anchor: "list", type: "array" } } },
      { a: "[3]" },
      { a: [3] },
    ],
    [
      "JSON text behind an id",
      {
        ...object({ a: { $ref: "item.json" } }),
        $id: "https://x.example/root.json",
        $defs: { i: { $id: "item.json", type: "array" } },
      },
      { a: "[3]" },
      { a: [3] },
    ],
    [
      "JSON text behind the root's own id",
      {
        ...object({ a: { $ref: "https://x.example/root.json#/$defs/l" } }),
        $id: "https://x.example/root.json",
        $defs: { l: { type: "array" } },
      },
      { a: "[3]" },
      { a: [3] },
    ],
    [
      "a parameter called __proto__",
      JSON.parse('{"type":"object","properties":{"__proto__":{"type":"array"}}}') as object,
      JSON.parse('{"__proto__":"[1]"}'),
      JSON.parse('{"__proto__":[1]}'),
    ],
  ])("handles %s", (_what, schema, value, expected) => {
    expect(repairArguments(schema as never, value)).toEqual(expected);
  });

  it("never changes a value that the schema accepts", () => {
    const leaf = fc.constantFrom<object>(
      {},
      { type: "string" },
      { type: "integer" },
      { type: ["string", "null"] },
      { type: "boolean", nullable: true },
      { enum: ["1", 1, null] },
      { const: "true" },
      { anyOf: [{ type: "number" }, { type: "string" }] },
      { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }] },
      { type: "array", items: { type: ["integer", "string"] } },
      { allOf: [{ type: "string" }] },
      { $ref: "#/$defs/d" },
    );
    const value = fc.oneof(
      fc.constantFrom(null, "10", "true", "[1]", "{}", "", 1, 1.5, true, [], ["1"], {}),
      fc.json().map((text) => JSON.parse(text) as unknown),
    );
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("a", "b", "c"), leaf),
        fc.subarray(["a", "b"]),
        fc.dictionary(fc.constantFrom("a", "b", "c", "d"), value),
        (properties, required, args) => {
          const schema = { ...object(properties, { required }), $defs: { d: { type: "object" } } };
          fc.pre(new Validator(withNullable(schema) as never, "2020-12").validate(args).valid);
          expect(repairArguments(schema as never, args)).toEqual(args);
        },
      ),
      { seed: 7, numRuns: 3_000 },
    );
  });

  it("returns arguments that need no repair unchanged, and never writes to them", () => {
    const value = Object.freeze({ s: "x", a: Object.freeze([1]) });
    expect(repairArguments(list, value)).toBe(value);
    expect(repairArguments(list, Object.freeze({ a: "[1]" }))).toEqual({ a: [1] });
  });

  it("ends for schemas that refer to themselves", () => {
    const schema = {
      type: "object",
      properties: { next: { $ref: "#" }, loop: { $ref: "#/$defs/a" } },
      $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } },
    };
    expect(repairArguments(schema, { next: { next: { next: {} } }, loop: "[1]" })).toEqual({
      next: { next: { next: {} } },
      loop: "[1]",
    });
  });
});

/** OpenAPI's `nullable` in words of JSON Schema. */
function withNullable(schema: unknown): unknown {
  return JSON.parse(
    JSON.stringify(schema).replaceAll(
      '"type":"boolean","nullable":true',
      '"type":["boolean","null"]',
    ),
  ) as unknown;
}

describe("checkArguments", () => {
  it("accepts both forms of a union and every branch of another", () => {
    const schema = object({
      v: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
    });
    expect(check(schema, { v: "x" })).toEqual([]);
    expect(check(schema, { v: ["x"] })).toEqual([]);
    const leafOrGroup = object({
      f: {
        oneOf: [object({ op: { enum: ["eq", "ne"] } }), object({ op: { enum: ["and", "or"] } })],
      },
    });
    for (const op of ["eq", "and"]) expect(check(leafOrGroup, { f: { op } })).toEqual([]);
  });

  it("names what is wrong and where", () => {
    const schema = object(
      { path: { type: "string" }, n: { type: "integer" } },
      { required: ["path"], additionalProperties: false },
    );
    expect(check(schema, { n: "x" }).join("; ")).toMatch(/required property "path"/);
    expect(check(schema, { path: "a", n: "x" }).join("; ")).toMatch(/^n: /);
  });

  it("ignores pattern and format, and cannot be blocked by a pattern", () => {
    const schema = object(
      { a: { type: "string", pattern: "^(a+)+$", format: "email" } },
      { patternProperties: { "^(x+)+$": { type: "null" } }, additionalProperties: false },
    );
    expect(check(schema, { a: `${"a".repeat(100)}!`, [`${"x".repeat(100)}!`]: 1 })).toEqual([]);
  });

  it("understands nullable, and accepts everything when the schema cannot be read", () => {
    expect(check(object({ a: { type: "string", nullable: true } }), { a: null })).toEqual([]);
    expect(check(object({ a: { type: "nonsense" } }), { a: 1 }).length).toBeGreaterThanOrEqual(0);
    expect(check(object({ a: { $ref: "#/nowhere" } }), { a: 1 })).toEqual([]);
    expect(check({ type: "object", properties: "broken" }, { a: 1 })).toEqual([]);
  });

  it("is as lenient below a reference to any place", () => {
    const schema = {
      ...object({ p: { $ref: "#/components/schemas/A" } }),
      components: { schemas: { A: { type: "string", pattern: "^(a+)+$", nullable: true } } },
    };
    expect(check(schema, { p: `${"a".repeat(40)}!` })).toEqual([]);
    expect(check(schema, { p: null })).toEqual([]);
    expect(check(schema, { p: 1 })).not.toEqual([]);
  });

  it("follows references that are not in $defs, with escapes", () => {
    const schema = object({
      headers: { type: "array", items: { type: "string" } },
      "a/b": { type: "integer" },
      h: { $ref: "#/properties/headers" },
      x: { $ref: "#/properties/a~1b" },
    });
    expect(check(schema, { h: ["x"], x: 1 })).toEqual([]);
    expect(check(schema, { h: 5 })).not.toEqual([]);
    expect(resolveReference(schema, "#/properties/a~1b")).toEqual({ type: "integer" });
    expect(dereference(schema, { $ref: "#/properties/h" })).toEqual({
      type: "array",
      items: { type: "string" },
    });
  });
});

describe("describeParameters", () => {
  it("names parameters, types and which are required", () => {
    const schema = object(
      {
        p: { type: "string" },
        n: { type: ["integer", "null"] },
        e: { enum: ["a", "b"] },
        l: { type: "array", items: { type: "number" } },
      },
      { required: ["p"] },
    );
    expect(describeParameters(schema)).toBe(
      'p: string (required), n: integer or null, e: one of ["a","b"], l: array of number',
    );
    expect(describeParameters(object({}))).toBe("no arguments");
  });

  it.each<[string, object, string]>([
    [
      "a reference",
      { ...object({ a: { $ref: "#/$defs/k" } }), $defs: { k: { enum: [1, 2] } } },
      "a: one of [1,2]",
    ],
    [
      "a reference at the root",
      {
        type: "object",
        $ref: "#/$defs/r",
        $defs: { r: object({ a: { type: "string" } }, { required: ["a"] }) },
      },
      "a: string (required)",
    ],
    [
      "composition at the root",
      { type: "object", allOf: [object({ a: { type: "string" } }), object({ b: { const: 5 } })] },
      "a: string, b: 5",
    ],
    [
      "nested objects",
      object({ o: object({ i: { type: "integer" } }, { required: ["i"] }) }),
      "o: object { i: integer (required) }",
    ],
    [
      "a list of objects",
      object({ l: { type: "array", items: object({ x: {} }) } }),
      "l: array of object { x: any }",
    ],
    [
      "a schema that refers to itself",
      { ...object({ n: { $ref: "#" } }) },
      "n: object { n: object { n: object } }",
    ],
  ])("resolves %s", (_what, schema, expected) => {
    expect(describeParameters(schema as never)).toBe(expected);
  });
});

describe("toModelSchema", () => {
  it("passes a plain schema through", () => {
    const schema = object({ a: { type: "string" } });
    expect(toModelSchema(schema)).toEqual(schema);
    expect(toModelSchema({ type: "object" })).toEqual({ type: "object", properties: {} });
  });

  it("makes one object of composition at the root, keeping every branch of a property", () => {
    const schema = {
      type: "object",
      properties: { kind: { type: "string" } },
      required: ["kind"],
      anyOf: [
        object({ a: { type: "string" }, x: { enum: [1] } }, { required: ["a", "x"] }),
        object({ b: { type: "number" }, x: { enum: [2] } }, { required: ["b", "x"] }),
      ],
    };
    expect(toModelSchema(schema)).toEqual({
      type: "object",
      properties: {
        kind: { type: "string" },
        a: { type: "string" },
        x: { anyOf: [{ enum: [1] }, { enum: [2] }] },
        b: { type: "number" },
      },
      required: ["kind", "x"],
    });
    expect(
      toModelSchema({
        type: "object",
        allOf: [object({ a: {} }, { required: ["a"] }), object({ b: {} })],
      }),
    ).toEqual({
      type: "object",
      properties: { a: {}, b: {} },
      required: ["a"],
    });
  });

  it("accepts what the original accepts when each branch says what it takes", () => {
    const property = fc.constantFrom({ type: "string" }, { type: "integer" }, { enum: ["a", "b"] });
    const branch = fc
      .dictionary(fc.constantFrom("a", "b", "c"), property)
      .map((properties) =>
        object(properties, { required: Object.keys(properties), additionalProperties: false }),
      );
    const value = fc.dictionary(
      fc.constantFrom("a", "b", "c"),
      fc.oneof(fc.string(), fc.integer(), fc.constantFrom("a", "b")),
    );
    fc.assert(
      fc.property(
        fc.constantFrom("anyOf", "oneOf", "allOf"),
        fc.array(branch, { minLength: 1, maxLength: 3 }),
        value,
        (keyword, branches, args) => {
          const schema = { type: "object", [keyword]: branches };
          if (check(schema, args).length === 0)
            expect(check(toModelSchema(schema), args)).toEqual([]);
        },
      ),
    );
  });
});
