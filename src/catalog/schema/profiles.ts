/** Schemas and descriptions that a provider takes. */
export interface SchemaProfile {
  readonly name: "generic" | "anthropic" | "openai" | "google";
  /** `"keep"`: takes `$ref` into `$defs`. `"inline"`: refuses it, so that recursion is cut. */
  readonly references: "keep" | "inline";
  /** `"standard"`: JSON Schema 2020-12. `"openapi"`: Gemini's subset of OpenAPI 3.0. */
  readonly dialect: "standard" | "openapi";
  readonly maxDescriptionChars: number;
}

/**
 * Published rules of the providers; `generic` fits all with standard JSON Schema, and is used while
 * the client is unknown.
 * @see https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
 * @see https://platform.openai.com/docs/guides/function-calling
 * @see https://ai.google.dev/api/caching#Schema
 */
export const PROFILES: Readonly<Record<SchemaProfile["name"], SchemaProfile>> = {
  generic: { name: "generic", references: "keep", dialect: "standard", maxDescriptionChars: 1_024 },
  anthropic: {
    name: "anthropic",
    references: "keep",
    dialect: "standard",
    maxDescriptionChars: 10_000,
  },
  openai: { name: "openai", references: "keep", dialect: "standard", maxDescriptionChars: 1_024 },
  google: { name: "google", references: "inline", dialect: "openapi", maxDescriptionChars: 10_000 },
};
