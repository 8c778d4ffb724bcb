import { documentOf, isInName, packEntry, weightOf } from "./posting.js";
import type { Steps } from "../../text/slices.js";
import { expandQuery } from "./queryTerms.js";
import { pairsOf, tokenize } from "./tokenize.js";

/** The texts of one tool, by how much a match in them says. */
export interface SearchFields {
  readonly name: string;
  readonly server: string;
  /** First sentence of the description. */
  readonly summary: string;
  /** The rest of it. */
  readonly description: string;
  /** What is said of the whole server. */
  readonly background: string;
  readonly argumentNames: string;
  readonly argumentDescriptions: string;
}

/** How a field counts. */
interface FieldWeight {
  readonly weight: number;
  /** 0: long fields count as short ones; 1: a word counts by its share of the field. */
  readonly normalisation: number;
  /**
   * Usual number of words in real servers' tools. A constant, so that a tool's weight does not
   * depend on what else is indexed.
   */
  readonly usualWords: number;
  /** Whether neighbouring words are indexed as pairs, too. */
  readonly hasPairs?: boolean;
}

/*
 * Fitted on sets of queries as a whole, never on single ones (`npm run bench:search`,
 * docs/search.md).
 */
const FIELDS: Readonly<Record<keyof SearchFields, FieldWeight>> = {
  name: { weight: 3, normalisation: 0.3, usualWords: 4, hasPairs: true },
  server: { weight: 2, normalisation: 0, usualWords: 4 },
  summary: { weight: 1, normalisation: 0.6, usualWords: 14, hasPairs: true },
  description: { weight: 0.7, normalisation: 0.6, usualWords: 25 },
  background: { weight: 0.3, normalisation: 0.7, usualWords: 40 },
  argumentNames: { weight: 0.6, normalisation: 0.6, usualWords: 6 },
  argumentDescriptions: { weight: 0.3, normalisation: 0.7, usualWords: 40 },
};
const FIELD_NAMES = Object.keys(FIELDS) as (keyof SearchFields)[];
const SATURATION = 1.2;
/** A tool whose whole name was asked for counts this much more. */
const NAME_SHARE_BONUS = 0.4;
const MAX_FIELD_CHARS = 4_000;
/** Ids of removed documents are not used again; from this many on, all are numbered anew. */
const MAX_HOLES = 20_000;
/** Entries of removed documents that a word may keep. */
const MIN_DEAD = 16;

/** The documents with a word. */
interface Posting {
  /** May hold entries of documents that were removed. */
  entries: number[];
  /** How many of them were not. */
  live: number;
}

/** One hit of {@link SearchIndex.search}. */
export interface Hit {
  readonly key: string;
  readonly score: number;
  /**
   * Share of the query's information (rare words weigh more) that the document contains, 0 to 1.
   */
  readonly coverage: number;
}

/**
 * Inverted index with BM25F weights over the fields of a tool, in typed arrays.
 *
 * Documents are added and removed one by one. Results do not depend on the order in which they
 * came: scores use only the live documents, and ties are broken by key.
 */
export class SearchIndex {
  readonly #postings = new Map<string, Posting>();
  /** The same for pairs of words; apart, since unknown words are compared with all words. */
  readonly #pairs = new Map<string, Posting>();
  readonly #ids = new Map<string, number>();
  #keys: (string | undefined)[] = [];
  #words: (readonly string[] | undefined)[] = [];
  #nameWords = new Uint16Array(64);
  /* Accumulators of a search, by document; zero between searches. */
  #scores = new Float64Array(64);
  #covered = new Float64Array(64);
  #named = new Float64Array(64);

  /** Number of documents. */
  get size(): number {
    return this.#ids.size;
  }

  /** Number of documents that contain a word, as {@link tokenize} gives it, or a pair of words. */
  frequency(word: string): number {
    return this.#of(word).get(word)?.live ?? 0;
  }

  /** The words of all documents. */
  words(): Iterable<string> {
    return this.#postings.keys();
  }

  /** Adds a document, replacing one of the same key. */
  add(key: string, fields: SearchFields): void {
    this.remove(key);
    const id = this.#keys.length;
    this.#grow(id + 1);
    const weights = new Map<string, number>();
    const nameWords = new Set<string>();
    for (const field of FIELD_NAMES) {
      const text = fields[field];
      if (text === "") continue;
      const { weight, normalisation, usualWords, hasPairs } = FIELDS[field];
      const words = tokenize(text.length > MAX_FIELD_CHARS ? text.slice(0, MAX_FIELD_CHARS) : text);
      const unit = weight / (1 - normalisation + (normalisation * words.length) / usualWords);
      for (const word of words) weights.set(word, (weights.get(word) ?? 0) + unit);
      if (hasPairs === true)
        for (const pair of pairsOf(words)) weights.set(pair, (weights.get(pair) ?? 0) + unit);
      if (field === "name") for (const word of words) nameWords.add(word);
    }
    for (const [word, weight] of weights) {
      const entry = packEntry(id, weight / (weight + SATURATION), nameWords.has(word));
      const posting = this.#of(word).get(word);
      if (posting === undefined) this.#of(word).set(word, { entries: [entry], live: 1 });
      else {
        posting.entries.push(entry);
        posting.live += 1;
      }
    }
    this.#nameWords[id] = Math.max(1, nameWords.size);
    this.#keys.push(key);
    this.#words.push([...weights.keys()]);
    this.#ids.set(key, id);
  }

  /** Removes a document; does nothing when there is none of that key. */
  remove(key: string): void {
    const id = this.#ids.get(key);
    if (id === undefined) return;
    const words = this.#words[id]!;
    this.#ids.delete(key);
    this.#keys[id] = undefined;
    this.#words[id] = undefined;
    for (const word of words) {
      const posting = this.#of(word).get(word)!;
      posting.live -= 1;
      if (posting.live === 0) this.#of(word).delete(word);
      // Entries of removed documents stay until they are the greater part: removing each by itself
      // takes quadratic time.
      else if (posting.entries.length > 2 * posting.live + MIN_DEAD)
        posting.entries = posting.entries.filter((entry) => this.#isLive(entry));
    }
  }

  /** True when so many documents were removed that {@link compact} is due. */
  get hasManyHoles(): boolean {
    return this.#keys.length > 2 * this.size + MAX_HOLES;
  }

  /**
   * Numbers the documents anew, without holes, in steps; searches may run meanwhile, changes must
   * not.
   */
  *compact(): Steps<void> {
    const moved = new Int32Array(this.#keys.length);
    const live: number[] = [];
    for (const [id, key] of this.#keys.entries()) {
      yield;
      if (key !== undefined) moved[id] = live.push(id) - 1;
    }
    const renumbered = new Map<Posting, number[]>();
    for (const postings of [this.#postings, this.#pairs]) {
      for (const posting of postings.values()) {
        const entries: number[] = [];
        for (const entry of posting.entries) {
          yield;
          if (this.#isLive(entry))
            entries.push(packEntry(moved[documentOf(entry)]!, weightOf(entry), isInName(entry)));
        }
        renumbered.set(posting, entries);
      }
    }
    for (const [posting, entries] of renumbered) posting.entries = entries;
    live.forEach((id, position) => {
      this.#nameWords[position] = this.#nameWords[id]!;
      this.#ids.set(this.#keys[id]!, position);
    });
    this.#words = live.map((id) => this.#words[id]);
    this.#keys = live.map((id) => this.#keys[id]);
  }

  /**
   * Documents that share words with the query, best first.
   *
   * @param accepts - Documents it refuses are left out before ranking.
   */
  search(query: string, limit: number, accepts: (key: string) => boolean): Hit[] {
    const touched: number[] = [];
    let total = 0;
    for (const { words, weight } of expandQuery(query, this)) {
      const rarities = words.map(({ text }) => this.#rarity(text));
      // Of the words that stand for one word of the query the rarest says how much it tells; an
      // unknown one tells most.
      const rarity = words.length === 0 ? this.#rarity("") : Math.max(...rarities);
      total += rarity * weight;
      words.forEach((word, position) =>
        this.#collect(
          word.text,
          rarities[position]! * word.weight * weight,
          rarity * weight * word.weight,
          word.weight,
          touched,
        ),
      );
    }
    return this.#best(touched, total, limit, accepts);
  }

  #isLive(entry: number): boolean {
    return this.#keys[documentOf(entry)] !== undefined;
  }

  #of(word: string): Map<string, Posting> {
    return word.includes(" ") ? this.#pairs : this.#postings;
  }

  #rarity(word: string): number {
    const frequency = this.frequency(word);
    return Math.log(1 + (this.size - frequency + 0.5) / (frequency + 0.5));
  }

  #collect(
    word: string,
    score: number,
    information: number,
    share: number,
    touched: number[],
  ): void {
    for (const entry of this.#of(word).get(word)?.entries ?? []) {
      const id = documentOf(entry);
      if (this.#keys[id] === undefined) continue;
      if (this.#scores[id] === 0) touched.push(id);
      this.#scores[id]! += score * weightOf(entry);
      this.#covered[id]! += information;
      if (isInName(entry)) this.#named[id]! += share;
    }
  }

  /** The best hits in order, without sorting all that was collected; clears the accumulators. */
  #best(
    touched: readonly number[],
    total: number,
    limit: number,
    accepts: (key: string) => boolean,
  ): Hit[] {
    const top: Hit[] = [];
    for (const id of touched) {
      const share = Math.min(1, this.#named[id]! / this.#nameWords[id]!);
      const score = this.#scores[id]! * (1 + NAME_SHARE_BONUS * share);
      const coverage = Math.min(1, this.#covered[id]! / total);
      this.#scores[id] = 0;
      this.#covered[id] = 0;
      this.#named[id] = 0;
      const key = this.#keys[id]!;
      let at = top.length;
      while (at > 0 && isBetter(score, key, top[at - 1]!)) at -= 1;
      if (at === limit || !accepts(key)) continue;
      top.splice(at, 0, { key, score, coverage });
      if (top.length > limit) top.pop();
    }
    return top;
  }

  #grow(size: number): void {
    if (size <= this.#scores.length) return;
    const capacity = Math.max(size, this.#scores.length * 2);
    const nameWords = new Uint16Array(capacity);
    nameWords.set(this.#nameWords);
    this.#nameWords = nameWords;
    this.#scores = new Float64Array(capacity);
    this.#covered = new Float64Array(capacity);
    this.#named = new Float64Array(capacity);
  }
}

function isBetter(score: number, key: string, than: Hit): boolean {
  return score > than.score || (score === than.score && key < than.key);
}
