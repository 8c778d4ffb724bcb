import type { Rerank, SearchOptions } from "../../config/hubOptions.js";
import { messageOf } from "../../errors.js";
import type { HubEvents } from "../../events.js";
import type { Catalog } from "../catalog.js";
import { namedTools, searchTools, type ToolMatches, type ToolQuery } from "./searchTools.js";
import type { ToolEntry } from "../toolEntry.js";
import { OptionalModel } from "./optionalModel.js";
import { VectorIndex, type NearTool } from "./vectorIndex.js";

/** Rank constant of reciprocal rank fusion; a higher one counts first places less. */
const FUSION = 60;
const CANDIDATES = 40;
const MAX_MODEL_CHARS = 4_000;
/** Least similarity of an answer that shares no words with the query. */
const MIN_SIMILARITY = 0.5;

/**
 * Searches by words, then by embeddings, then reorders by `rerank`. Tools named in the query are
 * always found.
 */
export class CatalogSearch {
  readonly #catalog: Catalog;
  readonly #rerankOption: Rerank | undefined;
  readonly #events: HubEvents;
  readonly #vectors: VectorIndex | undefined;
  readonly #reranker = new OptionalModel();

  constructor(catalog: Catalog, { embeddings, rerank }: SearchOptions, events: HubEvents) {
    this.#catalog = catalog;
    this.#rerankOption = rerank;
    this.#events = events;
    this.#vectors =
      embeddings === undefined
        ? undefined
        : new VectorIndex(embeddings, (error) => this.#warn(error));
  }

  /** Embeds the tools of a changed catalog. */
  update(): void {
    this.#vectors?.update(this.#catalog.tools());
  }

  async settled(): Promise<void> {
    await this.#vectors?.settled();
  }

  /** Finds tools, best first. */
  async find({ query, limit, accepts }: ToolQuery): Promise<ToolMatches> {
    const catalog = this.#catalog;
    const rerank = this.#rerankOption;
    if (this.#vectors === undefined && rerank === undefined)
      return searchTools(catalog, { query, limit, accepts });
    const wide = Math.max(limit, CANDIDATES);
    const byWords = searchTools(catalog, { query, limit: wide, accepts });
    const near = await this.#vectors?.nearest(query.slice(0, MAX_MODEL_CHARS), wide, accepts);
    const fused =
      near === undefined
        ? byWords.tools
        : fuse(byWords.tools, this.#entries(near, byWords.tools.length > 0));
    if (fused.length === 0) return byWords;
    const ordered =
      rerank === undefined || this.#reranker.isLeftAlone
        ? fused
        : await this.#rerank(rerank, query, fused);
    // The catalog may have changed while a model was asked.
    const isCurrent = (entry: ToolEntry): boolean =>
      catalog.tool(entry.boundName) === entry && accepts(entry);
    const tools = new Set(ordered.filter(isCurrent).slice(0, limit));
    for (const entry of namedTools(catalog, query, accepts)) tools.add(entry);
    return { tools: [...tools], nearest: [] };
  }

  /** Near tools; when words found nothing, only those similar enough to be an answer. */
  #entries(near: readonly NearTool[], isAnswered: boolean): ToolEntry[] {
    return near
      .filter(({ similarity }) => isAnswered || similarity >= MIN_SIMILARITY)
      .flatMap(({ boundName }) => this.#catalog.tool(boundName) ?? []);
  }

  #warn(error: unknown): void {
    this.#events.warn(
      "SEARCH_MODEL_FAILED",
      `Searching goes on by words alone: ${messageOf(error)}`,
    );
  }

  async #rerank(
    rerank: Rerank,
    query: string,
    tools: readonly ToolEntry[],
  ): Promise<readonly ToolEntry[]> {
    const candidates = tools.map(({ boundName, serverName, toolName, description }) => ({
      name: boundName,
      serverName,
      toolName,
      description,
    }));
    try {
      const names: unknown = await this.#reranker.ask("rerank", () => rerank(query, candidates));
      if (!Array.isArray(names)) throw new TypeError("rerank returned no list of names");
      const byName = new Map(tools.map((entry) => [entry.boundName, entry]));
      return [...new Set(names as string[])].flatMap((name) => byName.get(name) ?? []);
    } catch (error) {
      this.#warn(error);
      return tools;
    }
  }
}

function fuse(first: readonly ToolEntry[], second: readonly ToolEntry[]): ToolEntry[] {
  const scores = new Map<ToolEntry, number>();
  for (const ranking of [first, second]) {
    ranking.forEach((entry, rank) =>
      scores.set(entry, (scores.get(entry) ?? 0) + 1 / (FUSION + rank)),
    );
  }
  return [...scores]
    .sort(([a, x], [b, y]) => y - x || (a.boundName < b.boundName ? -1 : 1))
    .map(([entry]) => entry);
}
