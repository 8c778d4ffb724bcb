import type * as z from "zod";

import { McpConfigError } from "../errors.js";
import { nearest } from "../text/nearest.js";

/**
 * Checks an options object; errors begin with `subject`.
 * @throws {McpConfigError} with the option, its value and a fix.
 */
export function parseOptions<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  subject: string,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new McpConfigError(
    `${subject}: ${result.error.issues.map((issue) => describeIssue(issue, value, schema)).join("; ")}.`,
    {
      cause: result.error,
    },
  );
}

function describeIssue(issue: z.core.$ZodIssue, root: unknown, schema: z.ZodType): string {
  const place = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    return issue.keys
      .map(
        (key) =>
          `unknown option "${place === "" ? key : `${place}.${key}`}"${hintFor(key, issue.path, schema)}`,
      )
      .join("; ");
  }
  if (issue.code === "invalid_union") {
    const branches = issue.errors
      .flat()
      .map((inner) => inner.message.replace(/^Invalid \w+: expected /, ""));
    return `"${place}" is ${showAt(root, issue.path)}, expected ${[...new Set(branches)].join(" or ")}`;
  }
  return `"${place}" is ${showAt(root, issue.path)}: ${issue.message}`;
}

/** Where a misplaced option belongs, or the known name nearest to a misspelt one. */
function hintFor(key: string, path: readonly PropertyKey[], schema: z.ZodType): string {
  const places = optionPlaces(schema);
  const place = places.find((known) => known.split(".").at(-1) === key);
  if (place !== undefined)
    return place.includes(".")
      ? `: write it as "${place}"`
      : ": write it beside the groups, not in one";
  const guess = nearest(key, Object.keys(shapeOf(unwrap(at(schema, path))) ?? {}));
  if (guess !== undefined) return `, did you mean "${guess}"?`;
  const far = nearest(
    key,
    places.map((known) => known.split(".").at(-1)!),
  );
  return far === undefined
    ? ""
    : `, did you mean "${places.find((known) => known.split(".").at(-1) === far)!}"?`;
}

/**
 * Every option with its path: `startup`, `timeouts.connectTimeoutMs`, `mcpServers.<name>.command`.
 */
function optionPlaces(schema: unknown): string[] {
  return Object.entries(shapeOf(unwrap(schema)) ?? {}).flatMap(([key, value]) => {
    const inner = unwrap(value) as { readonly valueType?: unknown };
    const group = Object.keys(shapeOf(inner) ?? {}).map((name) => `${key}.${name}`);
    const record = Object.keys(shapeOf(unwrap(inner?.valueType)) ?? {}).map(
      (name) => `${key}.<name>.${name}`,
    );
    return [key, ...group, ...record];
  });
}

/** The schema at a path through objects and records. */
function at(schema: z.ZodType, path: readonly PropertyKey[]): unknown {
  let current: unknown = schema;
  for (const key of path) {
    current = unwrap(current);
    const shape = shapeOf(current);
    current =
      shape === undefined ? (current as { valueType?: unknown }).valueType : shape[String(key)];
  }
  return current;
}

function unwrap(schema: unknown): unknown {
  let current = schema;
  while (typeof (current as { unwrap?: unknown } | undefined)?.unwrap === "function") {
    current = (current as { unwrap(): unknown }).unwrap();
  }
  return current;
}

function shapeOf(schema: unknown): Record<string, unknown> | undefined {
  const { shape, options } = (schema ?? {}) as {
    shape?: Record<string, unknown>;
    options?: readonly unknown[];
  };
  // Of a union, the branch that is an object.
  return (
    shape ??
    (Array.isArray(options)
      ? options.map(shapeOf).find((branch) => branch !== undefined)
      : undefined)
  );
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let current: unknown = root;
  for (const key of path)
    current = (current as Record<PropertyKey, unknown> | null | undefined)?.[key];
  return current;
}

/** The given value; only its type where it may be secret. */
function showAt(root: unknown, path: readonly PropertyKey[]): string {
  const value = valueAt(root, path);
  const mayBeSecret = path.some((key) =>
    ["env", "headers", "auth", "args", "url"].includes(String(key)),
  );
  return mayBeSecret && value !== undefined
    ? `a value of type ${Array.isArray(value) ? "array" : typeof value}`
    : show(value);
}

function show(value: unknown): string {
  if (value === undefined) return "missing";
  if (typeof value === "function") return "a function";
  if (typeof value === "number") return String(value);
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
