/** Which schemas and descriptions a provider of models takes. */
export interface SchemaProfile {
  readonly name: "generic" | "anthropic" | "openai" | "google";
  /** `"keep"`: `$ref` into `$defs` is taken. `"inline"`: it is refused, recursion is cut. */
  readonly references: "keep" | "inline";
  /** `"standard"`: JSON Schema 2020-12. `"openapi"`: the subset of OpenAPI 3.0 that Gemini takes. */
  readonly dialect: "standard" | "openapi";
  /** Characters of a tool's description that are taken. */
  readonly maxDescriptionChars: number;
}

/**
 * Rules of the providers, as they publish them.
 *
 * `generic` is what every provider with standard JSON Schema takes; it is used while the model client is not known.
 *
 * @see https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
 * @see https://platform.openai.com/docs/guides/function-calling
 * @see https://ai.google.dev/api/caching#Schema
 */
export const PROFILES: Readonly<Record<SchemaProfile["name"], SchemaProfile>> = {
  generic: { name: "generic", references: "keep", dialect: "standard", maxDescriptionChars: 1_024 },
  anthropic: { name: "anthropic", references: "keep", dialect: "standard", maxDescriptionChars: 10_000 },
  openai: { name: "openai", references: "keep", dialect: "standard", maxDescriptionChars: 1_024 },
  google: { name: "google", references: "inline", dialect: "openapi", maxDescriptionChars: 10_000 },
};
