import { tokenize } from "./tokenize.js";

/** The texts of one tool, by how much a match in them says. */
export interface SearchFields {
  readonly name: string;
  readonly server: string;
  readonly description: string;
  readonly argumentNames: string;
  readonly argumentDescriptions: string;
}

/* Weight, length normalisation and usual length (in words) of each field. The lengths are those of real servers' tools;
   being constants, they make the weight of a word independent of what else is in the index. */
const FIELDS = [
  ["name", 3, 0.3, 4],
  ["server", 1.5, 0, 4],
  ["description", 1, 0.6, 25],
  ["argumentNames", 0.6, 0.6, 6],
  ["argumentDescriptions", 0.3, 0.7, 40],
] as const satisfies readonly (readonly [keyof SearchFields, number, number, number])[];

const SATURATION = 1.2;
const NAME_SHARE_BONUS = 0.6;
const MAX_QUERY_WORDS = 64;
const MAX_FIELD_CHARS = 8_000;

interface Posting {
  readonly documents: number[];
  readonly weights: number[];
}

/** One hit of {@link SearchIndex.search}. */
export interface Hit {
  readonly key: string;
  readonly score: number;
  /** Share of the query's information (rare words weigh more) that the document contains, 0 to 1. */
  readonly coverage: number;
}

/**
 * Inverted index with BM25F weights over the fields of a tool.
 *
 * Documents are added and removed one by one. Results do not depend on the order in which they came: scores use only
 * the live documents and ties are broken by key.
 */
export class SearchIndex {
  readonly #postings = new Map<string, Posting>();
  readonly #documents = new Map<string, { readonly id: number; readonly words: readonly string[] }>();
  readonly #keys: (string | undefined)[] = [];
  readonly #nameWords: (ReadonlySet<string> | undefined)[] = [];
  readonly #free: number[] = [];

  /** Number of documents. */
  get size(): number {
    return this.#documents.size;
  }

  /** Adds a document, replacing one of the same key. */
  add(key: string, fields: SearchFields): void {
    this.remove(key);
    const id = this.#free.pop() ?? this.#keys.length;
    const weights = new Map<string, number>();
    for (const [field, weight, normalisation, usualWords] of FIELDS) {
      const words = tokenize(fields[field].slice(0, MAX_FIELD_CHARS));
      if (field === "name") this.#nameWords[id] = new Set(words);
      const unit = weight / (1 - normalisation + (normalisation * words.length) / usualWords);
      for (const word of words) weights.set(word, (weights.get(word) ?? 0) + unit);
    }
    this.#keys[id] = key;
    this.#documents.set(key, { id, words: [...weights.keys()] });
    for (const [word, weight] of weights) {
      let posting = this.#postings.get(word);
      if (posting === undefined) this.#postings.set(word, (posting = { documents: [], weights: [] }));
      posting.documents.push(id);
      posting.weights.push(weight);
    }
  }

  /** Removes a document; does nothing when there is none of that key. */
  remove(key: string): void {
    const document = this.#documents.get(key);
    if (document === undefined) return;
    this.#documents.delete(key);
    this.#keys[document.id] = undefined;
    this.#nameWords[document.id] = undefined;
    this.#free.push(document.id);
    for (const word of document.words) {
      const posting = this.#postings.get(word)!;
      const at = posting.documents.indexOf(document.id);
      posting.documents[at] = posting.documents.at(-1)!;
      posting.weights[at] = posting.weights.at(-1)!;
      posting.documents.pop();
      posting.weights.pop();
      if (posting.documents.length === 0) this.#postings.delete(word);
    }
  }

  /**
   * Documents that share words with the query, best first.
   *
   * @param accepts - Documents it refuses are left out before ranking.
   */
  search(query: string, limit: number, accepts: (key: string) => boolean): Hit[] {
    const words = [...new Set(tokenize(query.slice(0, MAX_FIELD_CHARS)))].slice(0, MAX_QUERY_WORDS);
    const scores = new Map<number, { score: number; covered: number; named: number }>();
    let total = 0;
    for (const word of words) {
      const posting = this.#postings.get(word);
      const frequency = posting?.documents.length ?? 0;
      const rarity = Math.log(1 + (this.size - frequency + 0.5) / (frequency + 0.5));
      total += rarity;
      posting?.documents.forEach((id, at) => {
        const weight = posting.weights[at]!;
        const entry = scores.get(id) ?? { score: 0, covered: 0, named: 0 };
        entry.score += rarity * ((weight * (SATURATION + 1)) / (weight + SATURATION));
        entry.covered += rarity;
        if (this.#nameWords[id]!.has(word)) entry.named += 1;
        scores.set(id, entry);
      });
    }
    const hits: Hit[] = [];
    for (const [id, { score, covered, named }] of scores) {
      const key = this.#keys[id]!;
      if (!accepts(key)) continue;
      const nameShare = named / Math.max(1, this.#nameWords[id]!.size);
      hits.push({ key, score: score * (1 + NAME_SHARE_BONUS * nameShare), coverage: covered / total });
    }
    return hits.sort((a, b) => b.score - a.score || (a.key < b.key ? -1 : 1)).slice(0, limit);
  }
}
