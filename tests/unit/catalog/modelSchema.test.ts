import { modelClientOf } from "../../../src/disclose/modelClient.js";
import { Validator } from "@cfworker/json-schema";
import fc from "fast-check";

import { checkArguments } from "../../../src/catalog/schema/checkArguments.js";
import { withLegalKeys, withOwnKeys } from "../../../src/catalog/schema/legalKeys.js";
import { toModelSchema } from "../../../src/catalog/schema/modelSchema.js";
import { PROFILES } from "../../../src/catalog/schema/profiles.js";
import { repairArguments } from "../../../src/catalog/schema/repairArguments.js";
import type { JsonSchema } from "../../../src/catalog/toolEntry.js";
import { toolViolations } from "../../support/providerRules.js";

const object = (properties: object, more: object = {}): JsonSchema => ({
  type: "object",
  properties,
  ...more,
});
const view = (schema: JsonSchema, profile: keyof typeof PROFILES = "generic") =>
  toModelSchema(schema, PROFILES[profile]);
const property = (schema: object, profile: keyof typeof PROFILES = "generic") =>
  (view(object({ p: schema }), profile)["properties"] as { p: unknown }).p;

describe("hostile and unusual schemas", () => {
  it.each<[string, object, unknown]>([
    [
      "allOf with a reference",
      { allOf: [{ $ref: "#/$defs/E" }] },
      { type: "string", enum: ["a", "b"] },
    ],
    [
      "an object beside alternatives of what is required",
      { type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }] },
      { type: "object", properties: { a: { type: "string" } } },
    ],
  ])("keeps the types of %s for Google", (_what, schema, expected) => {
    const { properties } = view(
      object({ p: schema }, { $defs: { E: { type: "string", enum: ["a", "b"] } } }),
      "google",
    );
    const { p } = properties as { p: { anyOf?: readonly object[] } };
    expect(p.anyOf?.[0] ?? p).toMatchObject(expected as object);
  });

  it("takes a bounded time when alternatives multiply", () => {
    const schema = {
      ...object({ a: { type: "string" } }),
      anyOf: Array.from({ length: 6 }, () => ({ $ref: "#" })),
    };
    expect(JSON.stringify(view(schema as JsonSchema)).length).toBeLessThan(20_000);
  });

  it("drops keywords with an invalid value, in the view and in the check", () => {
    expect(property({ type: "number", maximum: null, minimum: "1" })).toEqual({ type: "number" });
    expect(
      checkArguments(object({ p: { type: "number", maximum: null } }), { p: 5 }, "no-value"),
    ).toEqual([]);
  });

  it("replaces a key that a provider refuses, and sends arguments under the server's own key", () => {
    const schema = object(
      { "filter[id]": { type: "string" }, plain: {} },
      { required: ["filter[id]"] },
    );
    const { properties, required } = withLegalKeys(view(schema)) as {
      properties: object;
      required: string[];
    };
    const [renamed = ""] = Object.keys(properties);
    expect(renamed).toMatch(/^filter_id_[a-z0-9_]*$/);
    expect(required).toEqual([renamed]);
    expect(withOwnKeys(schema, { [renamed]: "1", plain: 2 })).toEqual({
      "filter[id]": "1",
      plain: 2,
    });
    const untouched = { plain: 2 };
    expect(withOwnKeys(object({ plain: {} }), untouched)).toBe(untouched);
  });
});

describe("the generic view", () => {
  it.each<[string, object, unknown]>([
    [
      "a union with null",
      { anyOf: [{ type: "string" }, { type: "null" }], description: "d" },
      { anyOf: [{ type: "string" }, { type: "null" }], description: "d" },
    ],
    [
      "a choice of constants",
      { oneOf: [{ const: "a" }, { const: "b" }] },
      { oneOf: [{ const: "a" }, { const: "b" }] },
    ],
    ["nullable", { type: "string", nullable: true }, { type: ["string", "null"] }],
    [
      "nullable with choices",
      { type: "string", enum: ["a"], nullable: true },
      { type: ["string", "null"], enum: ["a", null] },
    ],
    [
      "a boolean exclusive limit",
      { type: "number", minimum: 1, exclusiveMinimum: true },
      { type: "number", exclusiveMinimum: 1 },
    ],
    ["an array without items", { type: "array" }, { type: "array", items: {} }],
    [
      "a tuple of draft 7",
      { type: "array", items: [{ type: "string" }, { type: "number" }] },
      { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } },
    ],
    [
      "a tuple of 2020-12",
      { type: "array", prefixItems: [{ type: "string" }], items: false },
      { type: "array", items: { type: "string" } },
    ],
    ["keywords of a vendor", { type: "string", "x-order": 1, $comment: "c" }, { type: "string" }],
    ["an unknown type", { type: "any", description: "d" }, { description: "d" }],
    ["true and a list of types", { type: ["string", "nonsense"] }, { type: "string" }],
  ])("keeps the meaning of %s", (_what, schema, expected) => {
    expect(property(schema)).toEqual(expected);
  });

  it("keeps $defs, and moves every other local reference there", () => {
    const schema = {
      ...object({
        headers: { type: "array", items: { type: "string" } },
        more: { $ref: "#/properties/headers" },
        "a/b": { type: "integer" },
        esc: { $ref: "#/properties/a~1b" },
        d: { $ref: "#/$defs/X" },
        o: { $ref: "#/definitions/Y", description: "mine" },
        gone: { $ref: "#/nowhere", type: "string" },
        far: { $ref: "https://x.example/s", type: "number" },
      }),
      $defs: { X: { type: "boolean" } },
      definitions: { Y: { type: "null" } },
    };
    expect(view(schema)).toMatchObject({
      properties: {
        more: { $ref: "#/$defs/headers" },
        esc: { $ref: "#/$defs/a_1b" },
        d: { $ref: "#/$defs/X" },
        o: { $ref: "#/$defs/Y", description: "mine" },
        gone: { type: "string" },
        far: { type: "number" },
      },
      $defs: {
        headers: { type: "array", items: { type: "string" } },
        a_1b: { type: "integer" },
        X: { type: "boolean" },
        Y: { type: "null" },
      },
    });
    expect(view(schema)).not.toHaveProperty("definitions");
  });

  it("keeps recursion as references, also to the root", () => {
    const tree = {
      ...object({ next: { $ref: "#" }, child: { $ref: "#/$defs/Node" } }),
      $defs: { Node: object({ child: { $ref: "#/$defs/Node" } }) },
    };
    expect(view(tree)).toMatchObject({
      properties: { next: { $ref: "#/$defs/root" }, child: { $ref: "#/$defs/Node" } },
      $defs: {
        root: { type: "object" },
        Node: { properties: { child: { $ref: "#/$defs/Node" } } },
      },
    });
  });

  it("follows a reference at the root and hoists what it finds", () => {
    expect(
      view({
        type: "object",
        $ref: "#/$defs/A",
        $defs: {
          A: { anyOf: [object({ a: { type: "string" } }, { required: ["a"] }), object({ b: {} })] },
        },
      }),
    ).toMatchObject({
      type: "object",
      properties: { a: { type: "string" }, b: {} },
    });
  });

  it("does not read data as schemas", () => {
    expect(
      property({
        type: "object",
        default: { type: "nonsense", $ref: "#/x" },
        enum: [{ anyOf: 1 }],
      }),
    ).toEqual({
      type: "object",
      default: { type: "nonsense", $ref: "#/x" },
      enum: [{ anyOf: 1 }],
    });
    expect(
      Object.keys(
        view(object({ type: { type: "string" }, enum: { type: "array" }, required: {} }))[
          "properties"
        ] as object,
      ),
    ).toEqual(["type", "enum", "required"]);
  });
});

describe("the view for Gemini", () => {
  it.each<[string, object, unknown]>([
    [
      "a union with null",
      { anyOf: [{ type: "string" }, { type: "null" }], description: "d" },
      { type: "string", nullable: true, description: "d" },
    ],
    [
      "a list of types",
      { type: ["string", "number"], description: "d" },
      {
        anyOf: [
          { type: "string", description: "d" },
          { type: "number", description: "d" },
        ],
      },
    ],
    ["a nullable type", { type: ["integer", "null"] }, { type: "integer", nullable: true }],
    ["a constant", { const: "a" }, { type: "string", enum: ["a"] }],
    [
      "choices of numbers",
      { type: "integer", enum: [1, 2], description: "Size." },
      { type: "integer", description: "Size. One of: 1, 2." },
    ],
    [
      "an empty text among choices",
      { enum: ["", "a"] },
      { type: "string", enum: ["a"], description: "May be an empty text." },
    ],
    ["a format it does not know", { type: "string", format: "uri" }, { type: "string" }],
    [
      "an open object",
      { type: "object", additionalProperties: { type: "string" }, properties: {} },
      { type: "object" },
    ],
    [
      "a value of any kind",
      {},
      { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }] },
    ],
    [
      "an intersection",
      {
        allOf: [
          object({ a: { type: "string" } }),
          object({ b: { type: "number" } }, { required: ["b"] }),
        ],
      },
      object({ a: { type: "string" }, b: { type: "number" } }, { required: ["b"] }),
    ],
  ])("says %s in its own way", (_what, schema, expected) => {
    expect(property(schema, "google")).toEqual(expected);
  });

  it("inlines references and cuts recursion", () => {
    const tree = {
      ...object({ root: { $ref: "#/$defs/Node" } }),
      $defs: { Node: object({ name: { type: "string" }, child: { $ref: "#/$defs/Node" } }) },
    };
    expect(view(tree, "google")).toEqual(
      object({ root: object({ name: { type: "string" }, child: { type: "object" } }) }),
    );
  });
});

describe("modelClientOf", () => {
  class ChatAnthropic {
    readonly model = "x";
  }
  it("recognises clients by class, and treats unknown ones as generic", () => {
    expect(modelClientOf(new ChatAnthropic()).profile.name).toBe("anthropic");
    expect(
      modelClientOf({
        lc_id: ["langchain", "chat_models", "google_genai", "ChatGoogleGenerativeAI"],
      }).profile.name,
    ).toBe("google");
    expect(modelClientOf({ lc_id: ["langchain", "AzureChatOpenAI"] }).profile.name).toBe("openai");
    expect([undefined, "openai:x", {}].map((model) => modelClientOf(model).profile.name)).toEqual([
      "generic",
      "generic",
      "generic",
    ]);
  });
});

describe("for any schema", () => {
  const { schema } = fc.letrec<{ schema: JsonSchema; closed: JsonSchema }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(
        { type: "string" },
        { type: "integer" },
        { type: "boolean" },
        { enum: ["a", 1] },
        { const: "b" },
        { type: ["string", "null"] },
        { type: "string", nullable: true },
        { $ref: "#/$defs/Shared" },
        { type: "string", pattern: "^a" },
      ),
      fc.record({ type: fc.constant("array"), items: tie("schema") }),
      fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
      fc.record({ oneOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
      tie("closed"),
    ),
    closed: fc
      .dictionary(fc.constantFrom("a", "b", "c"), tie("schema"), { maxKeys: 3 })
      .chain((properties) =>
        fc
          .subarray(Object.keys(properties))
          .map((required) => object(properties, { required, additionalProperties: false })),
      ),
  }));
  const root = fc
    .dictionary(fc.constantFrom("a", "b", "c"), schema, { maxKeys: 3 })
    .map((properties): JsonSchema => ({
      ...object(properties, { additionalProperties: false }),
      $defs: { Shared: { type: "integer" } },
    }));
  const value = fc.dictionary(
    fc.constantFrom("a", "b", "c"),
    fc.oneof(
      fc.constantFrom("a", "b", 1, null, true),
      fc.array(fc.constantFrom("a", 1)),
      fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("a", 1)),
    ),
  );
  const accepts = (candidate: JsonSchema, instance: unknown): boolean =>
    new Validator(structuredClone(candidate), "2020-12").validate(instance).valid;
  /** Nullable is no keyword of JSON Schema. */
  const asDraft = (candidate: JsonSchema): JsonSchema =>
    JSON.parse(
      JSON.stringify(candidate).replaceAll(
        '"type":"string","nullable":true',
        '"type":["string","null"]',
      ),
    ) as JsonSchema;
  let hashes = 0;

  it("refuses no value that the original accepts, before or after repair, and so does the model's view", () => {
    let accepted = 0;
    fc.assert(
      fc.property(root, value, (candidate, instance) => {
        if (!accepts(asDraft(candidate), instance)) return;
        accepted += 1;
        expect(checkArguments(candidate, instance, `any${(hashes += 1)}`)).toEqual([]);
        expect(
          checkArguments(candidate, repairArguments(candidate, instance), `any${hashes}`),
        ).toEqual([]);
        expect(accepts(view(candidate), instance)).toBe(true);
      }),
      { numRuns: 3_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });

  it("gives a view that no provider refuses", () => {
    fc.assert(
      fc.property(root, (candidate) => {
        const tool = { name: "t", description: "d" };
        expect(
          toolViolations("anthropic", {
            tools: [{ ...tool, input_schema: view(candidate, "anthropic") }],
          }),
        ).toEqual([]);
        expect(
          toolViolations("openai-responses", {
            tools: [{ ...tool, parameters: view(candidate, "openai") }],
          }),
        ).toEqual([]);
        expect(
          toolViolations("google", {
            tools: [{ functionDeclarations: [{ ...tool, parameters: view(candidate, "google") }] }],
          }),
        ).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it("never throws, whatever a server sends", () => {
    fc.assert(
      fc.property(
        fc.object({
          key: fc.constantFrom(
            "type",
            "properties",
            "items",
            "$ref",
            "anyOf",
            "allOf",
            "enum",
            "required",
            "$defs",
            "__proto__",
            "x",
          ),
          maxDepth: 4,
        }),
        (candidate) => {
          for (const profile of Object.keys(PROFILES))
            view(
              JSON.parse(JSON.stringify(candidate)) as JsonSchema,
              profile as keyof typeof PROFILES,
            );
        },
      ),
      { numRuns: 500 },
    );
  });
});
