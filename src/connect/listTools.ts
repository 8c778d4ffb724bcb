import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";

/* Tolerant on purpose: one malformed tool must not cost the server's other tools. */
const pageSchema = z.looseObject({
  tools: z.array(z.unknown()).optional(),
  nextCursor: z.string().nullish(),
});

/** All elements of a server's `tools/list`, unread. */
export interface RawToolList {
  readonly tools: readonly unknown[];
  /** Why the listing was ended before the server said it was complete. */
  readonly cutBecause: string | undefined;
}

/**
 * Lists a server's tools, page by page.
 *
 * Stops at a cursor that was seen before and after `maxPages`. A server that does not know `tools/list` has no tools.
 *
 * @throws whatever the client throws for a failed request.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
 */
export async function listTools(
  client: Client,
  options: { readonly signal: AbortSignal; readonly timeout: number; readonly maxPages: number },
): Promise<RawToolList> {
  const tools: unknown[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < options.maxPages; page += 1) {
    const result = await requestPage(client, cursor, options);
    tools.push(...(result.tools ?? []));
    cursor = result.nextCursor ?? undefined;
    if (cursor === undefined) return { tools, cutBecause: undefined };
    if (cursors.has(cursor)) return { tools, cutBecause: "it repeats a page" };
    cursors.add(cursor);
  }
  return { tools, cutBecause: `it has more than ${options.maxPages} pages` };
}

async function requestPage(
  client: Client,
  cursor: string | undefined,
  { signal, timeout }: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<z.output<typeof pageSchema>> {
  try {
    return await client.request({ method: "tools/list", params: cursor === undefined ? {} : { cursor } }, pageSchema, {
      signal,
      timeout,
    });
  } catch (error) {
    if (error instanceof McpError && error.code === Number(ErrorCode.MethodNotFound)) return {};
    throw error;
  }
}
