import { SYNONYMS } from "./synonyms.js";
import { pairsOf, tokenize, wordsOf } from "./tokenize.js";

/** Words of the index. */
export interface Vocabulary {
  frequency(word: string): number;
  words(): Iterable<string>;
}

/** One word of a query, with the words of the index that stand for it. */
export interface QueryTerm {
  readonly weight: number;
  readonly words: readonly { readonly text: string; readonly weight: number }[];
}

/* Weights of words that are not the query's own. */
const JOINED = 0.8;
const SPLIT = 0.7;
const PREFIX = 0.5;
const EDITED = 0.6;
const SYNONYM = 0.2;
const ONLY_SYNONYM = 0.7;
const PAIR = 0.3;
const WEAK = 0.35;
const REPEATED = 0.5;

const MAX_QUERY_CHARS = 4_000;
const MAX_TERMS = 48;
const MAX_GUESSED = 8;

/** Words that wrap a request and say little about a tool. */
const WEAK_WORDS = new Set(
  tokenize(
    "help offer provide give tell show like know look find information try interest recommend suggest assist guide something anything " +
      "best good great different various way able current currently latest detail specific related available relevant wish hope possible " +
      "perform task tool also more most other one first next after before ensure include including within without based given",
  ),
);

/**
 * Expands a query into words of the index: pairs, joined neighbours, synonyms, and known words near
 * an unknown one.
 */
export function expandQuery(query: string, vocabulary: Vocabulary): QueryTerm[] {
  const text = query.slice(0, MAX_QUERY_CHARS);
  const sequence = tokenize(text).slice(0, MAX_TERMS * 2);
  const counts = new Map<string, number>();
  for (const word of sequence) counts.set(word, (counts.get(word) ?? 0) + 1);
  const guesses = { left: MAX_GUESSED };
  const joined = joinedWords(text, counts, vocabulary);
  for (const { parts } of joined)
    for (const part of parts) if (vocabulary.frequency(part) === 0) counts.delete(part);
  const terms = [...counts].slice(0, MAX_TERMS).map(([word, count]): QueryTerm => {
    const weight = (WEAK_WORDS.has(word) ? WEAK : 1) * (1 + REPEATED * Math.log(count));
    return { weight, words: expandWord(word, vocabulary, guesses) };
  });
  const pairs = [...new Set(pairsOf(sequence))]
    .filter((pair) => vocabulary.frequency(pair) > 0)
    .slice(0, MAX_TERMS);
  return [
    ...terms,
    ...pairs.map((pair) => ({ weight: PAIR, words: [{ text: pair, weight: 1 }] })),
    ...joined.map(({ word }) => ({ weight: JOINED, words: [{ text: word, weight: 1 }] })),
  ];
}

function expandWord(
  word: string,
  vocabulary: Vocabulary,
  guesses: { left: number },
): QueryTerm["words"] {
  const synonyms = (SYNONYMS.get(word) ?? []).filter((other) => vocabulary.frequency(other) > 0);
  if (vocabulary.frequency(word) > 0)
    return [{ text: word, weight: 1 }, ...synonyms.map((text) => ({ text, weight: SYNONYM }))];
  if (synonyms.length > 0) return synonyms.map((text) => ({ text, weight: ONLY_SYNONYM }));
  if (word.length < 4 || !/^[a-z0-9]+$/.test(word) || guesses.left === 0) return [];
  guesses.left -= 1;
  return splitWord(word, vocabulary) ?? similarWords(word, vocabulary);
}

function splitWord(word: string, vocabulary: Vocabulary): QueryTerm["words"] | undefined {
  for (let at = 3; at <= word.length - 3; at += 1) {
    const parts = [word.slice(0, at), word.slice(at)].flatMap((part) => tokenize(part).slice(0, 1));
    if (parts.length === 2 && parts.every((part) => vocabulary.frequency(part) > 0))
      return parts.map((text) => ({ text, weight: SPLIT }));
  }
  return undefined;
}

function similarWords(word: string, vocabulary: Vocabulary): QueryTerm["words"] {
  const similar: { readonly text: string; readonly weight: number }[] = [];
  for (const known of vocabulary.words()) {
    if (known.length < 4) continue;
    const isPrefix =
      known.startsWith(word) || (word.startsWith(known) && known.length >= word.length - 3);
    if (isPrefix) similar.push({ text: known, weight: PREFIX });
    else if (word.length >= 5 && isOneEdit(word, known))
      similar.push({ text: known, weight: EDITED });
  }
  return similar
    .sort(
      (a, b) => b.weight - a.weight || a.text.length - b.text.length || (a.text < b.text ? -1 : 1),
    )
    .slice(0, 3);
}

/** Neighbouring words of the query that are one word in the index: "Ba Zi", "word cloud". */
function joinedWords(
  text: string,
  counts: ReadonlyMap<string, number>,
  vocabulary: Vocabulary,
): { readonly word: string; readonly parts: readonly string[] }[] {
  const words = wordsOf(text).slice(0, MAX_TERMS * 2);
  const joined = new Map<string, readonly string[]>();
  for (let at = 0; at + 1 < words.length; at += 1) {
    const [word] = tokenize(words[at]! + words[at + 1]!);
    if (word === undefined || counts.has(word) || vocabulary.frequency(word) === 0) continue;
    joined.set(word, tokenize(`${words[at]!} ${words[at + 1]!}`));
  }
  return [...joined].map(([word, parts]) => ({ word, parts }));
}

/** True for one inserted, missing or changed letter, or two swapped neighbours. */
function isOneEdit(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1 || a === b) return false;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  if (a.length > b.length) return a.slice(at + 1) === b.slice(at);
  if (a.length < b.length) return a.slice(at) === b.slice(at + 1);
  const isSwap = a[at] === b[at + 1] && a[at + 1] === b[at] && a.slice(at + 2) === b.slice(at + 2);
  return isSwap || a.slice(at + 1) === b.slice(at + 1);
}
