import type { TransportSettings } from "../config/transport.js";

/** Words in names of variables, headers, flags and query parameters whose values are secret. */
const SECRET_WORDS: ReadonlySet<string> = new Set(
  "apikey auth authorization bearer cookie credential credentials jwt key pass passphrase passwd password pat pem pwd secret session signature token".split(
    " ",
  ),
);
const SECRET_ENDS =
  /(?:(?:api|access|private|secret|signing|encryption|client)[_-]?key|token|secret|password|passwd)s?$/i;
/** Last words of names that tell where a secret is, or of which kind: `TOKEN_FILE`, `AUTH_TYPE`. */
const NEUTRAL_ENDS: ReadonlySet<string> = new Set(
  "column dir directory domain enabled endpoint expiry file folder host id kind method mode name path port provider realm scheme size tenant timeout ttl type uri url user".split(
    " ",
  ),
);
/* A path, a URL or a host. */
const PLACE =
  /^(?:~|\.{1,2})?[\\/]|^[A-Za-z]:[\\/]|^[a-z][a-z0-9+.-]*:\/\/|^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?$/;
/* Values remembered that came up while a server is used. */
const MAX_FOUND = 200;

/** Secrets of one server; those that come up later are added. */
export interface Secrets {
  /** Never shown in messages about the server. */
  readonly all: string[];
  /** Those that are removed also from texts of the server. */
  readonly credentials: string[];
}

/** Nothing is known to be secret. */
export const NO_SECRETS: Secrets = Object.freeze({ all: [], credentials: [] });

/**
 * The secrets of a transport: filled-in variables, headers, passwords in URLs, values whose names
 * say so.
 *
 * Only values that look like credentials are removed from texts of the server: others, such as a
 * folder or a port, may stand there by right.
 *
 * @param filled - Values of variables that were filled in.
 * @param resolved - Names and values of these variables.
 */
export function secretsOf(
  transport: TransportSettings,
  filled: readonly string[],
  resolved: readonly (readonly [name: string, value: string])[],
): Secrets {
  return {
    all: [...withSpellings(filled), ...literalSecrets(transport)],
    credentials: withSpellings(
      [...named(resolved), ...namedSecrets(transport)].filter(looksLikeCredential),
    ),
  };
}

/** Secrets that are written out in a configuration. */
export function literalSecrets(transport: TransportSettings): string[] {
  const headers = "headers" in transport ? Object.values(transport.headers) : [];
  return withSpellings([
    ...headers.flatMap((value) => [value, ...partsOf(value)]),
    ...namedSecrets(transport),
  ]);
}

/** Remembers secrets that come up while a server is used: tokens, headers of calls. */
export function keeperOf({ all, credentials }: Secrets): (value: string) => void {
  const found: string[] = [];
  return (value) => {
    for (const text of withSpellings([value, ...partsOf(value)])) {
      if (all.includes(text)) continue;
      found.push(text);
      all.push(text);
      if (looksLikeCredential(text)) credentials.push(text);
    }
    while (found.length > MAX_FOUND) {
      const oldest = found.shift()!;
      for (const list of [all, credentials])
        if (list.includes(oldest)) list.splice(list.indexOf(oldest), 1);
    }
  };
}

/**
 * True for a name whose value is secret: `API_KEY`, `x-api-key`, `accessToken`; not `AUTHOR` or
 * `KEYBOARD`.
 */
export function isSecretName(name: string): boolean {
  const words = name
    .split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/)
    .map((word) => word.toLowerCase());
  if (NEUTRAL_ENDS.has(words.at(-1) ?? "")) return false;
  return words.some((word) => SECRET_WORDS.has(word)) || SECRET_ENDS.test(name);
}

/** True for a text that is made to be kept secret, not a word that may stand anywhere. */
export function looksLikeCredential(value: string): boolean {
  if (value.startsWith("-----BEGIN ")) return true;
  if (value.length < 8 || /\s/.test(value) || PLACE.test(value)) return false;
  return value.length >= 20 || (/\d/.test(value) && /[A-Za-z]/.test(value));
}

/**
 * Values of command line arguments that are secret: `--token=x`, `--token x`, `TOKEN=x`,
 * `Authorization: Bearer x`, URLs.
 */
export function argumentSecrets(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    const [, flag] = /^--?([\w.-]+)$/.exec(arg) ?? [];
    const next = args[index + 1];
    if (flag !== undefined && next !== undefined && !next.startsWith("-") && isSecretName(flag))
      return [next, ...partsOf(next)];
    const [, name, value] = /^-{0,2}([A-Za-z][\w.-]*)(?:=|:\s)\s*([^]+)$/.exec(arg) ?? [];
    if (name !== undefined && value !== undefined && isSecretName(name))
      return [value, ...partsOf(value)];
    return URL.canParse(arg) ? urlSecrets(arg) : [];
  });
}

/** Each secret with its URL- and JSON-encoded spellings. */
export function withSpellings(values: readonly string[]): string[] {
  const all = values.flatMap((value) => {
    const encoded = value.isWellFormed() ? [encodeURIComponent(value), encodeURI(value)] : [];
    return [value, value.trim(), JSON.stringify(value).slice(1, -1), ...encoded];
  });
  return [...new Set(all)].filter((value) => value !== "");
}

/** Secrets of a transport by the names of their variables, headers, flags and parameters. */
function namedSecrets(transport: TransportSettings): string[] {
  if (transport.kind === "stdio")
    return [...named(Object.entries(transport.env)), ...argumentSecrets(transport.args)];
  return "headers" in transport
    ? [...named(Object.entries(transport.headers)), ...urlSecrets(transport.url)]
    : [];
}

function named(entries: readonly (readonly [name: string, value: string])[]): string[] {
  return entries.flatMap(([name, value]) => (isSecretName(name) ? [value, ...partsOf(value)] : []));
}

/** The token of `Bearer x`; of `Basic x` also user and password. */
function partsOf(value: string): string[] {
  const [, scheme, rest] = /^\s*(\S+)\s+(\S[^]*?)\s*$/.exec(value) ?? [];
  if (scheme === undefined || rest === undefined) return [];
  if (scheme.toLowerCase() !== "basic") return [rest];
  const pair = Buffer.from(rest, "base64").toString("utf8");
  return [rest, pair, pair.replace(/^[^:]*:/, "")];
}

/** Password and secret parameters of a URL, as they are written and decoded. */
function urlSecrets(text: string): string[] {
  const query = /\?([^#]*)/.exec(text)?.[1] ?? "";
  const inQuery = query.split("&").flatMap((pair) => {
    const [name = "", ...rest] = pair.split("=");
    const written = rest.join("=");
    if (written === "" || !isSecretName(decoded(name))) return [];
    return [written, decoded(written), decoded(written.replaceAll("+", " "))];
  });
  if (!URL.canParse(text)) return inQuery;
  const { username, password } = new URL(text);
  const userinfo = [username, password].flatMap((part) =>
    part === "" ? [] : [part, decoded(part)],
  );
  return [...(password === "" ? userinfo.filter(looksLikeCredential) : userinfo), ...inQuery];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
