import { nearestOf } from "../../text/nearest.js";
import type { Catalog } from "../catalog.js";
import { fold } from "./tokenize.js";
import type { ToolEntry } from "../toolEntry.js";

/*
 * Below this share of the query's information a tool is not an answer: "send gmail email" without
 * Gmail.
 */
const MIN_COVERAGE = 0.34;
const MAX_QUERY_CHARS = 4_000;
const MAX_NAME_CHARS = 80;
const MAX_NAMED_CHARS = 100_000;
const ASCII_NAME = /[A-Za-z0-9_.:/-]+/g;
const ANY_NAME = /[\p{L}\p{M}\p{N}_.:/-]+/gu;
const PUNCTUATION = ".:/-";

/** What {@link searchTools} looks for. */
export interface ToolQuery {
  /** The job in plain words, a tool's name, or both. */
  readonly query: string;
  /** Tools returned at the most; tools named in the query are returned beyond it. */
  readonly limit: number;
  /** Leaves tools out: policy, disabled servers, a `server` filter. */
  readonly accepts: (entry: ToolEntry) => boolean;
}

/** What {@link searchTools} found. */
export interface ToolMatches {
  /** Best first. Empty when nothing fits. */
  readonly tools: readonly ToolEntry[];
  /** Names near the query, when nothing fits. */
  readonly nearest: readonly string[];
}

/**
 * Finds tools by what they do.
 *
 * A tool whose bound name, raw name or unique leaf (the last part of a dotted or slashed raw name)
 * stands in the query is always returned, beyond the limit if need be. Nothing is returned when
 * nothing fits.
 */
export function searchTools(catalog: Catalog, { query, limit, accepts }: ToolQuery): ToolMatches {
  const text = query.slice(0, MAX_QUERY_CHARS);
  const named = namedTools(catalog, query, accepts);
  const hits = catalog.index.search(text, limit, (key) => {
    const entry = catalog.tool(key);
    return entry !== undefined && accepts(entry);
  });
  const best = hits[0]?.coverage ?? 0;
  if (named.size === 0 && best < MIN_COVERAGE)
    return { tools: [], nearest: nearestNames(catalog, text, accepts) };
  const ranked = hits
    .filter(({ coverage }) => coverage >= Math.min(MIN_COVERAGE, best))
    .map(({ key }) => catalog.tool(key)!);
  // "create_issue" is meant as a name and stands first; a tool called "search" in "search my mail"
  // need only be there.
  const first = [...named].filter(
    (entry) => entry.toolName === text.trim() || /[_\-./:]|\p{Ll}\p{Lu}/u.test(entry.toolName),
  );
  const tools = new Set([...first, ...ranked].slice(0, Math.max(limit, first.length)));
  for (const entry of named) tools.add(entry);
  return { tools: [...tools], nearest: [] };
}

/**
 * Tools whose exact name stands in the text: bound name, raw name, or a leaf that only one visible
 * tool has.
 */
export function namedTools(
  catalog: Catalog,
  text: string,
  accepts: (entry: ToolEntry) => boolean,
): ReadonlySet<ToolEntry> {
  const found = new Set<ToolEntry>();
  const searched = text.slice(0, MAX_NAMED_CHARS);
  for (const word of nameLikeWords(searched)) {
    const bound = catalog.tool(word);
    if (bound !== undefined && accepts(bound)) found.add(bound);
    for (const entry of catalog.toolsNamed(word)) if (accepts(entry)) found.add(entry);
    const byLeaf = catalog.toolsWithLeaf(word).filter(accepts);
    if (byLeaf.length === 1) found.add(byLeaf[0]!);
  }
  for (const name of catalog.unusualNames()) {
    if (searched.includes(name))
      for (const entry of catalog.toolsNamed(name)) if (accepts(entry)) found.add(entry);
  }
  return new Set([...found].sort((a, b) => (a.boundName < b.boundName ? -1 : 1)));
}

/**
 * Pieces of a text that could be names: the whole text, runs of the characters of names, and their
 * parts.
 */
function nameLikeWords(text: string): Set<string> {
  const words = new Set<string>([text.trim()]);
  for (const pattern of [ASCII_NAME, ANY_NAME]) {
    for (const run of text.match(pattern) ?? []) {
      words.add(run);
      // A full stop at the end of a sentence, `select:get_handoff`, `tool=search`.
      for (const part of run.split(/[.:/]/)) words.add(part);
      words.add(trimPunctuation(run));
    }
  }
  words.delete("");
  return words;
}

function trimPunctuation(run: string): string {
  let [start, end] = [0, run.length];
  while (start < end && PUNCTUATION.includes(run[start]!)) start += 1;
  while (end > start && PUNCTUATION.includes(run[end - 1]!)) end -= 1;
  return run.slice(start, end);
}

/** Names by version of a catalog: folded, with a mask of the letters they have. */
const foldedNames = new WeakMap<
  Catalog,
  { readonly version: number; readonly names: readonly FoldedName[] }
>();
interface FoldedName {
  readonly folded: string;
  readonly letters: number;
  readonly entry: ToolEntry;
}

/** Up to three visible bound names that look like the text; none for a text that is no name. */
export function nearestNames(
  catalog: Catalog,
  text: string,
  accepts: (entry: ToolEntry) => boolean,
): string[] {
  const wanted = fold(text.trim().slice(0, MAX_NAME_CHARS + 1));
  if (wanted === "" || wanted.length > MAX_NAME_CHARS || /\s\S+\s/.test(wanted)) return [];
  const letters = lettersOf(wanted);
  const names = new Map<string, string>();
  for (const name of namesOf(catalog)) {
    const allowed = Math.max(1, Math.floor(Math.max(wanted.length, name.folded.length) / 3));
    // Each edit changes at most two letters of the sets; most names are told apart without counting
    // edits.
    if (
      Math.abs(wanted.length - name.folded.length) > allowed ||
      countBits(letters ^ name.letters) > 2 * allowed
    )
      continue;
    if (accepts(name.entry) && !names.has(name.folded))
      names.set(name.folded, name.entry.boundName);
  }
  return [...new Set(nearestOf(wanted, names.keys(), 6).map((name) => names.get(name)!))].slice(
    0,
    3,
  );
}

function namesOf(catalog: Catalog): readonly FoldedName[] {
  const known = foldedNames.get(catalog);
  if (known?.version === catalog.version) return known.names;
  const names = [...catalog.tools()].flatMap((entry) =>
    [entry.boundName, entry.toolName].map((name): FoldedName => {
      const folded = fold(name);
      return { folded, letters: lettersOf(folded), entry };
    }),
  );
  foldedNames.set(catalog, { version: catalog.version, names });
  return names;
}

function lettersOf(text: string): number {
  let letters = 0;
  for (let at = 0; at < text.length; at += 1) letters |= 1 << (text.charCodeAt(at) & 31);
  return letters;
}

function countBits(value: number): number {
  let count = 0;
  for (let left = value; left !== 0; left &= left - 1) count += 1;
  return count;
}
