import type { TransportSettings } from "../config/transport.js";

/** Names of variables and query parameters whose values are secret wherever they come from. */
const SECRET_NAME = /key|token|secret|pass|pwd|auth|credential|cookie|session/i;

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
