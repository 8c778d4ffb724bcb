import { isRecord } from "../../text/isRecord.js";
import { digest } from "../../text/hash.js";
import { setOwn } from "./schemaWalk.js";
import type { JsonSchema } from "../toolEntry.js";

/** Parameter keys that Anthropic takes; one other key makes it refuse the whole request. */
const LEGAL = /^[a-zA-Z0-9_.-]{1,64}$/;

/** The model's key of a parameter: its own if legal, else a readable head and a short hash. */
export function legalKey(key: string): string {
  return LEGAL.test(key)
    ? key
    : `${key.replace(/[^a-zA-Z0-9_.-]+/g, "_").slice(0, 50)}_${digest(key, 8)}`;
}

/** Renames the parameters of a schema to legal keys. */
export function withLegalKeys(view: JsonSchema): JsonSchema {
  const { properties, required } = view;
  if (!isRecord(properties) || Object.keys(properties).every((key) => LEGAL.test(key))) return view;
  const renamed: Record<string, unknown> = {};
  for (const [key, schema] of Object.entries(properties)) setOwn(renamed, legalKey(key), schema);
  return {
    ...view,
    properties: renamed,
    ...(Array.isArray(required) ? { required: required.map((key) => legalKey(String(key))) } : {}),
  };
}

/**
 * Restores the server's own keys in arguments; returns the value itself when no parameter was
 * renamed.
 */
export function withOwnKeys(schema: JsonSchema, value: unknown): unknown {
  const own = ownKeys(schema);
  if (own.size === 0 || !isRecord(value)) return value;
  const restored: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) setOwn(restored, own.get(key) ?? key, inner);
  return restored;
}

const OWN_KEYS = new WeakMap<JsonSchema, ReadonlyMap<string, string>>();

/** The server's own keys of renamed parameters by legal key; made once per schema. */
function ownKeys(schema: JsonSchema): ReadonlyMap<string, string> {
  let own = OWN_KEYS.get(schema);
  if (own === undefined) {
    const { properties } = schema;
    const keys = isRecord(properties)
      ? Object.keys(properties).filter((key) => !LEGAL.test(key))
      : [];
    own = new Map(keys.map((key) => [legalKey(key), key]));
    OWN_KEYS.set(schema, own);
  }
  return own;
}
