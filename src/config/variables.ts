import { McpConfigError, messageOf } from "../errors.js";

/** Looks up the `NAME` of `${NAME}`; `undefined` means unknown. */
export type SecretResolver = (name: string) => string | undefined | Promise<string | undefined>;

/** The default resolver: the environment of this process. */
export const environmentResolver: SecretResolver = (name) => process.env[name];

const VARIABLE = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_.:-]*?)(?::-([^}]*))?\}/g;

/** A value with its variables filled in. */
export interface Expanded<Value> {
  readonly value: Value;
  /** Values that must not appear in messages, logs or state. */
  readonly secrets: readonly string[];
  readonly resolved: readonly (readonly [name: string, value: string])[];
}

/**
 * Fills in `${NAME}`, `${NAME:-default}` and `${env:NAME}` in all strings.
 * @throws {McpConfigError} for unknown ones.
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
  const filled = (await mapTexts(value, async (text) =>
    text.includes("${") ? expandText(text) : text,
  )) as Value;
  return { value: filled, secrets: [...new Set(resolved.values())], resolved: [...resolved] };
}

/** A copy of plain data in which each text is changed; other objects stay as they are. */
export async function mapTexts(
  value: unknown,
  change: (text: string) => Promise<string>,
): Promise<unknown> {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return Promise.all(value.map((part) => mapTexts(part, change)));
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(
    async ([key, inner]) => [key, await mapTexts(inner, change)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

async function lookUp(
  name: string,
  resolve: SecretResolver,
  serverName: string,
): Promise<string | undefined> {
  try {
    return await resolve(name);
  } catch (cause) {
    throw new McpConfigError(
      `Server "${serverName}": the secretResolver failed for ${name}: ${messageOf(cause)}`,
      {
        serverName,
        cause,
      },
    );
  }
}

function missingVariable(name: string, serverName: string): McpConfigError {
  const isOfEditor = name.includes(":") || name === "workspaceFolder";
  const fix = isOfEditor
    ? "An editor fills it in; give a secretResolver that knows it."
    : `Set it, or write \${${name}:-default}.`;
  return new McpConfigError(
    `Server "${serverName}" needs the variable ${name}, which is not set. ${fix}`,
    { serverName },
  );
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
  );
}

/**
 * Masks secrets as `***`, longer ones first; those of fewer than 4 characters stay, for masking
 * them would hide nothing.
 */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text;
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
    if (secret.length >= 4) masked = masked.replaceAll(secret, "***");
  }
  return masked;
}
