import { stemmer } from "stemmer";

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/**
 * Scripts without spaces, and Hangul, whose words carry endings: matched by pairs of characters.
 */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]+/gu;
const HUMP = /\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{Lu}+|\p{N}+/gu;
const MAX_WORD_CHARS = 64;

const STOP_WORDS = new Set(
  (
    "a an and any are as at be been but by can could do does for from get had has have how i if in into is it its just me my " +
    "need needs of on onto or our out please should so some such than that the their them then there these they this those to up use using " +
    "want was we were what when where which who will with would you your"
  ).split(" "),
);

/**
 * Words of a text for the index: folded, stemmed, no stop words; `getUserIssues` → `user`, `issu`,
 * `getuserissu`.
 */
export function tokenize(text: string): string[] {
  const tokens: string[] = [];
  for (const word of text.normalize("NFKC").match(WORD) ?? [])
    for (const token of tokensOf(word)) tokens.push(token);
  return tokens;
}

/** Tokens by word, since texts of tools repeat few words. */
const known = new Map<string, readonly string[]>();
const MAX_KNOWN = 50_000;

function tokensOf(word: string): readonly string[] {
  const found = known.get(word);
  if (found !== undefined) return found;
  // A copy: a slice keeps the whole text in memory.
  const copy = Buffer.from(word.slice(0, MAX_WORD_CHARS)).toString();
  const tokens: string[] = [];
  addWord(tokens, copy);
  if (known.size >= MAX_KNOWN) known.clear();
  if (word.length <= MAX_WORD_CHARS) known.set(copy, tokens);
  return tokens;
}

/** The words of a text in lower case and without accents. */
export function wordsOf(text: string): string[] {
  return Array.from(text.normalize("NFKC").matchAll(WORD), ([word]) => fold(word));
}

/** Neighbouring words as pairs. */
export function pairsOf(words: readonly string[]): string[] {
  return words.slice(1).map((word, at) => `${words[at]!} ${word}`);
}

function addWord(tokens: string[], word: string): void {
  let spaced = word;
  if (!isAscii(word)) {
    spaced = word.replace(UNSPACED, (run) => {
      addPairs(tokens, run);
      return " ";
    });
  }
  for (const part of spaced.split(" ")) {
    if (part === "") continue;
    const humps = part.match(HUMP) ?? [part];
    if (humps.length > 1) for (const hump of humps) addTerm(tokens, hump);
    addTerm(tokens, part);
  }
}

function addTerm(tokens: string[], word: string): void {
  const lower = fold(word);
  if (lower === "" || STOP_WORDS.has(lower)) return;
  tokens.push(stem(lower));
}

function addPairs(tokens: string[], run: string): void {
  const characters = Array.from(run);
  if (characters.length === 1) tokens.push(run);
  for (let index = 0; index + 1 < characters.length; index += 1)
    tokens.push(characters[index]! + characters[index + 1]!);
}

/** Lower case without accents. */
export function fold(word: string): string {
  const lower = word.toLowerCase();
  return isAscii(lower)
    ? lower
    : lower
        .normalize("NFKD")
        .replace(/\p{M}+/gu, "")
        .normalize("NFKC");
}

function stem(word: string): string {
  return /^[a-z]{3,}$/.test(word) ? stemmer(word) : word;
}

function isAscii(text: string): boolean {
  // eslint-disable-next-line no-control-regex
  return /^[\u0000-\u007F]*$/.test(text);
}
