import type { EmbeddingsInterface } from "@langchain/core/embeddings";

import { OptionalModel, RETRY_MS } from "./optionalModel.js";
import { cut } from "../../text/clean.js";
import type { ToolEntry } from "../toolEntry.js";

const BATCH = 64;
const MAX_TEXT_CHARS = 1_000;

/** A tool near a query in meaning. */
export interface NearTool {
  readonly boundName: string;
  /** Cosine similarity, -1 to 1. */
  readonly similarity: number;
}

/**
 * Vectors of tools by content hash, made in the background; while they are missing, words alone
 * decide.
 */
export class VectorIndex {
  readonly #embeddings: EmbeddingsInterface;
  readonly #query = new OptionalModel();
  readonly #onError: (error: unknown) => void;
  readonly #vectors = new Map<string, Float32Array>();
  #tools: readonly ToolEntry[] = [];
  #working: Promise<void> | undefined;
  #failedAtMs = Number.NEGATIVE_INFINITY;

  /** @param onError - Called once for each failing round. */
  constructor(embeddings: EmbeddingsInterface, onError: (error: unknown) => void) {
    this.#embeddings = embeddings;
    this.#onError = onError;
  }

  get isReady(): boolean {
    return this.#tools.every(({ hash }) => this.#vectors.has(hash));
  }

  /** Takes the tools of a changed catalog, and embeds new ones in the background. */
  update(tools: Iterable<ToolEntry>): void {
    this.#tools = [...tools];
    const hashes = new Set(this.#tools.map(({ hash }) => hash));
    for (const hash of this.#vectors.keys()) if (!hashes.has(hash)) this.#vectors.delete(hash);
    this.#embed();
  }

  #embed(): void {
    this.#working ??= this.#embedAll().finally(() => {
      this.#working = undefined;
    });
  }

  async settled(): Promise<void> {
    await this.#working;
  }

  /**
   * The tools nearest to a query, nearest first; `undefined` while vectors are missing or the model
   * fails.
   */
  async nearest(
    query: string,
    limit: number,
    accepts: (entry: ToolEntry) => boolean,
  ): Promise<NearTool[] | undefined> {
    if (!this.isReady && Date.now() - this.#failedAtMs > RETRY_MS) this.#embed();
    if (!this.isReady || this.#tools.length === 0 || this.#query.isLeftAlone) return undefined;
    let wanted: Float32Array;
    try {
      wanted = unit(await this.#query.ask("embedQuery", () => this.#embeddings.embedQuery(query)));
    } catch (error) {
      this.#onError(error);
      return undefined;
    }
    const near: NearTool[] = [];
    for (const entry of this.#tools) {
      const vector = this.#vectors.get(entry.hash);
      if (vector !== undefined && accepts(entry))
        near.push({ boundName: entry.boundName, similarity: dot(wanted, vector) });
    }
    return near
      .sort((a, b) => b.similarity - a.similarity || (a.boundName < b.boundName ? -1 : 1))
      .slice(0, limit);
  }

  async #embedAll(): Promise<void> {
    for (;;) {
      const missing = new Map(
        this.#tools
          .filter(({ hash }) => !this.#vectors.has(hash))
          .map((entry) => [entry.hash, entry]),
      );
      const batch = [...missing.values()].slice(0, BATCH);
      if (batch.length === 0) return;
      try {
        const vectors = await this.#embeddings.embedDocuments(batch.map(textOf));
        batch.forEach(({ hash }, position) => this.#vectors.set(hash, unit(vectors[position]!)));
      } catch (error) {
        this.#failedAtMs = Date.now();
        this.#onError(error);
        return;
      }
    }
  }
}

function textOf({ serverName, toolName, title, description }: ToolEntry): string {
  return cut(
    `${serverName} ${toolName.replaceAll(/[_-]/g, " ")} ${title ?? ""}: ${description}`,
    MAX_TEXT_CHARS,
  );
}

function unit(vector: readonly number[]): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0)) || 1;
  return Float32Array.from(vector, (value) => value / length);
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at += 1) sum += a[at]! * b[at]!;
  return sum;
}
