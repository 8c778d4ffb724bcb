import type { TransportSettings } from "../config/transport.js";

/* What is shorter is no credential, and may be a word. */
const MIN_CREDENTIAL_CHARS = 8;
/** Names of variables and query parameters whose values are secret wherever they come from. */
const SECRET_NAME = /key|token|secret|pass|pwd|auth|credential|cookie|session/i;

/**
 * Values whose names say that they are credentials. They are taken out also of what a server sends for the model: others,
 * such as a folder or a port, may stand there by right.
 */
export function credentialsOf(
  transport: TransportSettings,
  resolved: readonly (readonly [name: string, value: string])[],
): string[] {
  const named = (entries: readonly (readonly [name: string, value: string])[]): string[] =>
    entries.flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value, value.replace(/^\S+ /, "")] : []));
  const values = [...named(resolved)];
  if (transport.kind === "stdio") values.push(...literalSecrets(transport));
  if ("headers" in transport) {
    values.push(...named(Object.entries(transport.headers)), ...literalSecrets({ ...transport, headers: {} }));
  }
  return [...new Set(values)].filter((value) => value.length >= MIN_CREDENTIAL_CHARS);
}

/** Secrets that are written out in the configuration: headers, passwords in URLs, values of variables named so. */
export function literalSecrets(transport: TransportSettings): string[] {
  if (transport.kind === "stdio") {
    const inEnv = Object.entries(transport.env).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []));
    const inArgs = transport.args.flatMap((arg) => {
      const [, name, value] = /^--?([\w-]+)=(.+)$/.exec(arg) ?? [];
      return name !== undefined && value !== undefined && SECRET_NAME.test(name) ? [value] : [];
    });
    return [...inEnv, ...inArgs];
  }
  if (transport.kind === "custom" || transport.kind === "client") return [];
  const headers = Object.values(transport.headers).flatMap((value) => [value, value.replace(/^\S+ /, "")]);
  if (!URL.canParse(transport.url)) return headers;
  const { password, searchParams } = new URL(transport.url);
  const inQuery = [...searchParams].flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []));
  return [...headers, ...(password === "" ? [] : [password, decodeURIComponent(password)]), ...inQuery];
}
