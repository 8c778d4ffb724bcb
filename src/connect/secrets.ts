import type { TransportSettings } from "../config/transport.js";

/** Words in names of variables, headers, flags and query parameters whose values are secret wherever they come from. */
const SECRET_WORDS: ReadonlySet<string> = new Set(
  "apikey auth authorization bearer cookie credential credentials jwt key pass passphrase passwd password pat pem pwd secret session signature token".split(
    " ",
  ),
);
const SECRET_ENDS = /(?:(?:api|access|private|secret|signing|encryption|client)[_-]?key|token|secret|password|passwd)s?$/i;
/** Last words of names that speak of where a secret is, or what kind it has: not of the secret. */
const NEUTRAL_ENDS: ReadonlySet<string> = new Set(
  "column dir directory domain enabled endpoint expiry file folder host id kind method mode name path port provider realm scheme size tenant timeout ttl type uri url user".split(
    " ",
  ),
);

/** True for a name that says that its value is secret: `API_KEY`, `x-api-key`, `accessToken`; not `AUTHOR` or `KEYBOARD`. */
export function isSecretName(name: string): boolean {
  const words = name.split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/).map((word) => word.toLowerCase());
  if (NEUTRAL_ENDS.has(words.at(-1) ?? "")) return false;
  return words.some((word) => SECRET_WORDS.has(word)) || SECRET_ENDS.test(name);
}

/** True for a text that is made to be kept secret, not a word that may stand anywhere. */
export function looksLikeCredential(value: string): boolean {
  if (value.startsWith("-----BEGIN ")) return true;
  if (value.length < 8 || /\s/.test(value) || PLACE.test(value)) return false;
  return value.length >= 20 || (/\d/.test(value) && /[A-Za-z]/.test(value));
}

/* A path, a URL or a host. */
const PLACE = /^(?:~|\.{1,2})?[\\/]|^[A-Za-z]:[\\/]|^[a-z][a-z0-9+.-]*:\/\/|^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?$/;

/** Secrets that are written out in the configuration: headers, passwords in URLs, values whose names say so. */
export function literalSecrets(transport: TransportSettings): string[] {
  if (transport.kind === "custom" || transport.kind === "client") return [];
  if (transport.kind === "stdio")
    return withSpellings([...named(Object.entries(transport.env)), ...argumentSecrets(transport.args)]);
  const headers = Object.values(transport.headers).flatMap((value) => [value, ...partsOf(value)]);
  return withSpellings([...headers, ...urlSecrets(transport.url)]);
}

/**
 * Values whose names say that they are credentials, and that look so. They are taken out also of what a server sends for the
 * model: others, such as a folder or a port, may stand there by right.
 *
 * @param resolved - Names and values of variables that were filled in.
 */
export function credentialsOf(
  transport: TransportSettings,
  resolved: readonly (readonly [name: string, value: string])[],
): string[] {
  const values = named(resolved);
  if (transport.kind === "stdio") values.push(...named(Object.entries(transport.env)), ...argumentSecrets(transport.args));
  else if ("headers" in transport) values.push(...named(Object.entries(transport.headers)), ...urlSecrets(transport.url));
  return withSpellings(values.filter(looksLikeCredential));
}

/** Values of command line arguments that are secret: `--token=x`, `--token x`, `TOKEN=x`, `Authorization: Bearer x`, URLs. */
export function argumentSecrets(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    const [, flag] = /^--?([\w.-]+)$/.exec(arg) ?? [];
    const next = args[index + 1];
    if (flag !== undefined && isSecretName(flag) && next !== undefined && !next.startsWith("-")) return [next, ...partsOf(next)];
    const [, name, value] = /^-{0,2}([A-Za-z][\w.-]*)(?:=|:\s)\s*([^]+)$/.exec(arg) ?? [];
    if (name !== undefined && value !== undefined && isSecretName(name)) return [value, ...partsOf(value)];
    return URL.canParse(arg) ? urlSecrets(arg) : [];
  });
}

/* So many values that came up while a server is used are remembered. */
const MAX_FOUND = 200;

/** Remembers secrets that come up while a server is used: tokens, headers of calls. */
export function keeperOf({
  all,
  credentials,
}: {
  readonly all: string[];
  readonly credentials: string[];
}): (value: string) => void {
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
      for (const list of [all, credentials]) if (list.includes(oldest)) list.splice(list.indexOf(oldest), 1);
    }
  };
}

/**
 * The texts, and how else they are written: in URLs, in JSON. Whoever tells of a secret may use any.
 */
export function withSpellings(values: readonly string[]): string[] {
  const all = values.flatMap((value) => {
    const isWhole = !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(value);
    return [
      value,
      value.trim(),
      JSON.stringify(value).slice(1, -1),
      ...(isWhole ? [encodeURIComponent(value), encodeURI(value)] : []),
    ];
  });
  return [...new Set(all)].filter((value) => value !== "");
}

function named(entries: readonly (readonly [name: string, value: string])[]): string[] {
  return entries.flatMap(([name, value]) => (isSecretName(name) ? [value, ...partsOf(value)] : []));
}

/** Of `Bearer x` the token, of `Basic x` also what it stands for. */
function partsOf(value: string): string[] {
  const [, scheme, rest] = /^\s*(\S+)\s+(\S[^]*?)\s*$/.exec(value) ?? [];
  if (scheme === undefined || rest === undefined) return [];
  if (scheme.toLowerCase() !== "basic") return [rest];
  const decoded = Buffer.from(rest, "base64").toString("utf8");
  return [rest, decoded, decoded.replace(/^[^:]*:/, "")];
}

/** Password and secret parameters of a URL, as they are written and as they are meant. */
function urlSecrets(text: string): string[] {
  const query = /\?([^#]*)/.exec(text)?.[1] ?? "";
  const inQuery = query.split("&").flatMap((pair) => {
    const [name = "", ...rest] = pair.split("=");
    const written = rest.join("=");
    return written !== "" && isSecretName(decoded(name))
      ? [written, decoded(written), decoded(written.replaceAll("+", " "))]
      : [];
  });
  if (!URL.canParse(text)) return inQuery;
  const { username, password } = new URL(text);
  const userinfo = [username, password].flatMap((part) => (part === "" ? [] : [part, decoded(part)]));
  return [...(password === "" ? userinfo.filter(looksLikeCredential) : userinfo), ...inQuery];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
