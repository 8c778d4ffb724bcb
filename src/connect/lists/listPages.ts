import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";

import { linkSignal } from "../../text/abort.js";
import { MAX_MESSAGE_BYTES } from "../failures.js";

/** What can be listed: the method, and the key of the elements in its result. */
export const LISTS = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
} as const;

/** Key of a list of {@link LISTS}. */
export type ListKey = keyof typeof LISTS;

/** All elements of a list of a server, unread. */
export interface RawList {
  readonly elements: readonly unknown[];
  /** Why the listing was ended before the server said it was complete. */
  readonly cutBecause: string | undefined;
}

/** Limits of one listing. */
export interface ListLimits {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for each page. */
  readonly timeout: number;
  readonly maxPages: number;
}

/* All pages of a list together. */
const MAX_LIST_CHARS = 50_000_000;

/* Tolerant on purpose: one malformed element must not cost the server's others. */
const pageSchema = z.looseObject({ nextCursor: z.string().nullish() });

/**
 * Lists what a server has, page by page.
 *
 * Stops at a cursor that was seen before, after `maxPages`, and when all pages together are too large. A server that does not know the method has nothing.
 *
 * @throws whatever the client throws for a failed request.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
 */
export async function listPages(client: Client, key: ListKey, limits: ListLimits): Promise<RawList> {
  const elements: unknown[] = [];
  const cursors = new Set<string>();
  let chars = 0;
  let cursor: string | undefined;
  for (let page = 0; page < limits.maxPages; page += 1) {
    const result = await requestPage(client, key, cursor, limits);
    const found = result[key];
    if (Array.isArray(found)) for (const element of found as unknown[]) elements.push(element);
    cursor = result.nextCursor ?? undefined;
    if (cursor === undefined) return { elements, cutBecause: undefined };
    // One page is bounded by what one message may have.
    chars += charsOf(found);
    if (chars > MAX_LIST_CHARS) return { elements, cutBecause: `it is larger than ${MAX_LIST_CHARS / 1e6} MB` };
    if (cursors.has(cursor)) return { elements, cutBecause: "it repeats a page" };
    cursors.add(cursor);
  }
  return { elements, cutBecause: `it has more than ${limits.maxPages} pages` };
}

async function requestPage(
  client: Client,
  key: ListKey,
  cursor: string | undefined,
  { signal, timeout }: ListLimits,
): Promise<z.output<typeof pageSchema>> {
  // The SDK leaves its listener on the signal it is given.
  const linked = signal === undefined ? undefined : linkSignal(signal);
  try {
    return await client.request({ method: LISTS[key], params: cursor === undefined ? {} : { cursor } }, pageSchema, {
      ...(linked === undefined ? {} : { signal: linked.signal }),
      timeout,
    });
  } catch (error) {
    if (error instanceof McpError && error.code === Number(ErrorCode.MethodNotFound)) return {};
    throw error;
  } finally {
    linked?.unlink();
  }
}

/** Characters of a page, about. */
function charsOf(page: unknown): number {
  try {
    return JSON.stringify(page)?.length ?? 0;
  } catch {
    // Too deep to be written.
    return MAX_MESSAGE_BYTES;
  }
}
