import { rpcCodeOf } from "../failures.js";
import type { RawResult } from "../peer.js";

/** The MCP lists: method by result key. */
export const LISTS = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
} as const;

export type ListKey = keyof typeof LISTS;

export interface RawList {
  readonly elements: readonly unknown[];
  /** Why listing stopped before the last page. */
  readonly cutBecause: string | undefined;
}

/* Characters of all pages together. */
const MAX_LIST_CHARS = 50_000_000;
const METHOD_NOT_FOUND = -32_601;

/**
 * Lists all pages; empty for an unknown method. Stops at a repeated cursor, after `maxPages`, and
 * above 50 million characters.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
 */
export async function listPages(
  key: ListKey,
  maxPages: number,
  request: (method: string, params: RawResult) => Promise<RawResult>,
): Promise<RawList> {
  const elements: unknown[] = [];
  const cursors = new Set<string>();
  let chars = 0;
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page += 1) {
    const result = await request(LISTS[key], cursor === undefined ? {} : { cursor }).catch(
      (error: unknown): RawResult => {
        if (rpcCodeOf(error) === METHOD_NOT_FOUND) return {};
        throw error;
      },
    );
    const { [key]: found, nextCursor } = result;
    if (Array.isArray(found)) for (const element of found as unknown[]) elements.push(element);
    if (nextCursor === undefined || nextCursor === null) return { elements, cutBecause: undefined };
    if (typeof nextCursor !== "string") return { elements, cutBecause: "its cursor is not text" };
    cursor = nextCursor;
    chars += charsOf(found);
    if (chars > MAX_LIST_CHARS)
      return { elements, cutBecause: `it is larger than ${MAX_LIST_CHARS / 1e6} MB` };
    if (cursors.has(cursor)) return { elements, cutBecause: "it repeats a page" };
    cursors.add(cursor);
  }
  return { elements, cutBecause: `it has more than ${maxPages} pages` };
}

function charsOf(page: unknown): number {
  try {
    return JSON.stringify(page)?.length ?? 0;
  } catch {
    return MAX_LIST_CHARS;
  }
}
