/** Spellings that a server may take for the same URI, or for a part of it. */
export interface UriSpellings {
  /** The URI, and with its dots resolved; it is allowed only if all of these are. */
  readonly same: readonly string[];
  /**
   * Looser spellings (unescaped, lower-case host, no query); a rule that denies or asks for one of
   * them counts.
   */
  readonly loose: readonly string[];
}

const MAX_UNESCAPES = 3;

/** Spells a URI as a lenient server might read it; never throws. */
export function spellUri(uri: string): UriSpellings {
  const unescaped: string[] = [uri];
  for (let round = 0; round < MAX_UNESCAPES; round += 1) {
    const next = unescape(unescaped.at(-1)!);
    if (next === unescaped.at(-1)) break;
    unescaped.push(next);
  }
  const same = new Set([uri]);
  const loose = new Set<string>();
  for (const text of unescaped) {
    const resolved = resolve(text);
    if (resolved !== text) same.add(resolved);
    for (const spelling of [text, resolved]) {
      const slashed = oneSlash(spelling);
      for (const variant of [spelling, slashed, beforeQuery(spelling), beforeQuery(slashed)]) {
        loose.add(variant);
        loose.add(lowerHost(variant));
      }
    }
  }
  for (const text of unescaped) {
    for (const href of standardForms(text)) loose.add(href);
  }
  return { same: [...same], loose: [...loose].filter((text) => !same.has(text)) };
}

/** Decodes escapes one by one, so that a malformed one does not hide the others. */
function unescape(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      return decodeURIComponent(run);
    } catch {
      return run.replace(/%([0-7][0-9a-f])/gi, (_all, code: string) =>
        String.fromCharCode(Number.parseInt(code, 16)),
      );
    }
  });
}

function split(uri: string): [head: string, path: string] {
  const [head] = /^[a-z][a-z0-9+.-]*:(?:\/\/[^/\\?#]*)?/i.exec(uri) ?? [""];
  return [head, uri.slice(head.length)];
}

/**
 * Resolves `.` and `..` in the whole rest, even behind a `?` or `#`, which an escape may have
 * hidden.
 */
function resolve(uri: string): string {
  const [head, path] = split(uri);
  const parts = path.replaceAll("\\", "/").split("/");
  if (!parts.some((part) => part === "." || part === ".."))
    return path.includes("\\") ? head + parts.join("/") : uri;
  const kept: string[] = [];
  for (const [index, part] of parts.entries()) {
    if (part === "..") {
      if (kept.length > 1 || (kept.length === 1 && kept[0] !== "")) kept.pop();
    } else if (part !== ".") kept.push(part);
    if (index === parts.length - 1 && (part === "." || part === "..")) kept.push("");
  }
  return head + kept.join("/");
}

/**
 * The form of the URL standard, with and without user name and port: what a server's own parser
 * makes of it.
 */
function standardForms(text: string): string[] {
  if (!URL.canParse(text)) return [];
  const url = new URL(text);
  const plain = new URL(text);
  plain.username = "";
  plain.password = "";
  plain.port = "";
  return [url.href, plain.href].flatMap((href) => [href, unescape(href), beforeQuery(href)]);
}

/**
 * True for a URI that cannot be compared safely: parsers drop control characters and outer spaces.
 */
export function isUnclear(uri: string): boolean {
  return /\p{Cc}|^\s|\s$/u.test(uri);
}

function oneSlash(uri: string): string {
  const [head, path] = split(uri);
  return head + path.replace(/\/{2,}/g, "/");
}

function beforeQuery(uri: string): string {
  return uri.replace(/[?#][^]*$/, "");
}

function lowerHost(uri: string): string {
  const [head, path] = split(uri);
  return head.toLowerCase() + path;
}
