import { McpConfigError, messageOf } from "../errors.js";

/** Looks up the `NAME` of a `${NAME}`. `undefined` means it is not known. */
export type SecretResolver = (name: string) => string | undefined | Promise<string | undefined>;

/** The default resolver: the environment of this process. */
export const environmentResolver: SecretResolver = (name) => process.env[name];

const VARIABLE = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_.:-]*?)(?::-([^}]*))?\}/g;

/** A value with its variables filled in, and the values that were filled in. */
export interface Expanded<Value> {
  readonly value: Value;
  /** Texts that must not appear in messages, logs or state. */
  readonly secrets: readonly string[];
  /** Names and values of the variables. */
  readonly resolved: readonly (readonly [name: string, value: string])[];
}

/**
 * Fills in `${NAME}`, `${NAME:-default}` and `${env:NAME}` in every string of a plain value.
 *
 * @throws {McpConfigError} naming the server and the variable, when one is not known and has no default.
 */
export async function expandVariables<Value>(
  value: Value,
  resolve: SecretResolver,
  serverName: string,
): Promise<Expanded<Value>> {
  const resolved = new Map<string, string>();
  const expandText = async (text: string): Promise<string> => {
    let result = "";
    let end = 0;
    for (const match of text.matchAll(VARIABLE)) {
      const [whole, name, fallback] = match as unknown as [string, string, string | undefined];
      const found = (await lookUp(name, resolve, serverName)) ?? fallback;
      if (found === undefined) throw missingVariable(name, serverName);
      if (found !== fallback && found !== "") resolved.set(name, found);
      result += text.slice(end, match.index) + found;
      end = match.index + whole.length;
    }
    return result + text.slice(end);
  };
  const expand = async (part: unknown): Promise<unknown> => {
    if (typeof part === "string") return part.includes("${") ? expandText(part) : part;
    if (Array.isArray(part)) return Promise.all(part.map(expand));
    if (isPlainObject(part)) {
      const entries = await Promise.all(Object.entries(part).map(async ([key, inner]) => [key, await expand(inner)] as const));
      return Object.fromEntries(entries);
    }
    return part;
  };
  const filled = (await expand(value)) as Value;
  return { value: filled, secrets: [...new Set(resolved.values())], resolved: [...resolved] };
}

async function lookUp(name: string, resolve: SecretResolver, serverName: string): Promise<string | undefined> {
  try {
    return await resolve(name);
  } catch (cause) {
    throw new McpConfigError(`Server "${serverName}": the secretResolver failed for ${name}: ${messageOf(cause)}`, {
      serverName,
      cause,
    });
  }
}

function missingVariable(name: string, serverName: string): McpConfigError {
  const isOfEditor = name.includes(":") || name === "workspaceFolder";
  const fix = isOfEditor
    ? "An editor fills it in; give a secretResolver that knows it."
    : `Set it, or write \${${name}:-default}.`;
  return new McpConfigError(`Server "${serverName}" needs the variable ${name}, which is not set. ${fix}`, { serverName });
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * Replaces secrets in a text by `***`. Longer secrets first, so that no part of one stays behind.
 *
 * Secrets of fewer than 4 characters are left: masking them would make the text unreadable and hide nothing.
 */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text;
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
    if (secret.length >= 4) masked = masked.replaceAll(secret, "***");
  }
  return masked;
}
