import { codeRanges, type Range } from "./codeRanges.js";

export interface Mention extends Range {
  readonly serverName: string;
  readonly uri: string;
}

/** A longer URI is not a mention. */
export const MAX_URI_CHARS = 4_096;

/*
 * Characters before an `@` in e-mail addresses, paths and escapes. Scripts without spaces are
 * exempt.
 */
const JOINED = /[\p{L}\p{M}\p{N}_+\-%/\\@&#$~]$/u;
const WITHOUT_SPACES =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]$/u;
const QUOTES: Readonly<Record<string, string>> = { '"': '"', "'": "'", "“": "”" };
const CLOSERS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };
const OPENERS = "([{";
/* Characters that end an unquoted URI. The last ones end sentences in scripts without spaces. */

const ENDS = /[\s\p{Cc}\p{Cf}<>"`|“”»，。；！？、）」』】》]/u;
const POSSESSIVE = /^['’]s$/;
const TRAILING = ".,;:!?'*…’";

/**
 * Finds the resources that a text mentions as `@server:uri`, in order. Pure; never throws; linear
 * time. The server must be known; the longest matching name wins. The URI ends at a space or is
 * quoted: `@docs:"file:///two words.md"`, `@"docs:file:///two words.md"`. Punctuation after it and
 * unbalanced brackets are left out. Ignores code, e-mail addresses, and an `@` after a slash or a
 * backslash.
 * @example
 * parseMentions("compare @docs:file:///a.md, please", ["docs"]);
 * // → [{ serverName: "docs", uri: "file:///a.md", start: 8, end: 26 }]
 */
export function parseMentions(text: string, serverNames: readonly string[]): Mention[] {
  const mentions: Mention[] = [];
  if (serverNames.length === 0 || !text.includes("@")) return mentions;
  const nameAt = nameFinder(text, serverNames);
  const quoteFrom = quoteFinder(text);
  const code = codeRanges(text);
  let nextCode = 0;
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at)) {
    while (nextCode < code.length && code[nextCode]!.end <= at) nextCode += 1;
    const around = code[nextCode];
    if (around !== undefined && around.start <= at) {
      at = around.end;
      continue;
    }
    const found = isJoined(text, at) ? undefined : mentionAt(text, at, nameAt, quoteFrom);
    // Skips a mention that is too long as a whole.
    if (found !== undefined && found.uri.length <= MAX_URI_CHARS) mentions.push(found);
    at = found?.end ?? at + 1;
  }
  return mentions;
}

function isJoined(text: string, at: number): boolean {
  // Two code units: the character before may be a surrogate pair.
  const before = text.slice(Math.max(0, at - 2), at);
  return JOINED.test(before) && !WITHOUT_SPACES.test(before);
}

type NameFinder = (from: number) => string | undefined;
type QuoteFinder = (quote: string, from: number) => number;

function mentionAt(
  text: string,
  at: number,
  nameAt: NameFinder,
  quoteFrom: QuoteFinder,
): Mention | undefined {
  const outer = QUOTES[text[at + 1] ?? ""];
  const nameStart = outer === undefined ? at + 1 : at + 2;
  const serverName = nameAt(nameStart);
  if (serverName === undefined) return undefined;
  const start = nameStart + serverName.length + 1;
  const inner = outer === undefined ? QUOTES[text[start] ?? ""] : undefined;
  const quote = outer ?? inner;
  const uriStart = inner === undefined ? start : start + 1;
  if (quote === undefined) {
    const end = uriEnd(text, uriStart);
    return end > uriStart
      ? { serverName, uri: text.slice(uriStart, end), start: at, end }
      : undefined;
  }
  const end = quoteFrom(quote, uriStart);
  if (end < 0 || end - uriStart > MAX_URI_CHARS) return undefined;
  const uri = text.slice(uriStart, end).trim();
  return uri === "" || uri.includes("\n")
    ? undefined
    : { serverName, uri, start: at, end: end + 1 };
}

/** The end of an unquoted URI; `start` when there is none. */
function uriEnd(text: string, start: number): number {
  const open: { readonly bracket: string; readonly at: number }[] = [];
  let end = start;
  for (; end < text.length; end += 1) {
    if (end - start > MAX_URI_CHARS) return end;
    const char = text[end]!;
    if (ENDS.test(char)) break;
    if ((char === "," || char === ";") && text[end + 1] === "@") break;
    if (OPENERS.includes(char)) open.push({ bracket: char, at: end });
    const opener = CLOSERS[char];
    if (opener === undefined) continue;
    if (open.at(-1)?.bracket !== opener) break;
    open.pop();
  }
  // Trailing punctuation and brackets left open at the end belong to the surrounding text.
  for (;;) {
    const last = end - 1;
    if (last < start) return start;
    if (TRAILING.includes(text[last]!)) end = last;
    else if (POSSESSIVE.test(text.slice(Math.max(start, end - 2), end))) end -= 2;
    else if (open.at(-1)?.at === last) {
      open.pop();
      end = last;
    } else return end;
  }
}

/** Finds the longest known server name that stands at a position and has a colon after it. */
function nameFinder(text: string, serverNames: readonly string[]): NameFinder {
  const byFirst = new Map<string, string[]>();
  for (const name of [...serverNames].sort((a, b) => b.length - a.length)) {
    if (name === "") continue;
    const list = byFirst.get(name[0]!) ?? [];
    list.push(name);
    byFirst.set(name[0]!, list);
  }
  return (from) =>
    byFirst
      .get(text[from] ?? "")
      ?.find((name) => text[from + name.length] === ":" && text.startsWith(name, from));
}

/** Finds the next quote. Caches positions, so that many open quotes stay linear. */
function quoteFinder(text: string): QuoteFinder {
  const next = new Map<string, number>();
  return (quote, from) => {
    const known = next.get(quote);
    if (known !== undefined && (known < 0 || known >= from)) return known;
    const found = text.indexOf(quote, from);
    next.set(quote, found);
    return found;
  };
}
