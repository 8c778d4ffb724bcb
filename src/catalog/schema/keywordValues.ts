/** The types of JSON Schema. */
export const JSON_TYPES: ReadonlySet<unknown> = new Set([
  "string",
  "number",
  "integer",
  "boolean",
  "array",
  "object",
  "null",
]);

const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isCount = (value: unknown): boolean => isNumber(value) && (value as number) >= 0;
const isText = (value: unknown): boolean => typeof value === "string";
const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isNamesByName = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.values(value).every((names) => Array.isArray(names) && names.every(isText));

/** Tests for the values of keywords whose wrong values do harm. */
const TESTS: Readonly<Record<string, (value: unknown) => boolean>> = {
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minContains: isCount,
  maxContains: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  uniqueItems: isFlag,
  deprecated: isFlag,
  readOnly: isFlag,
  writeOnly: isFlag,
  title: isText,
  description: isText,
  pattern: isText,
  format: isText,
  examples: Array.isArray,
  enum: (value) => Array.isArray(value) && value.length > 0,
  dependentRequired: isNamesByName,
};

/** False for a value that makes a keyword meaningless, such as `maxLength: null`. */
export function isKeywordValue(keyword: string, value: unknown): boolean {
  return !Object.hasOwn(TESTS, keyword) || TESTS[keyword]!(value);
}
