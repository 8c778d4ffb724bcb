import { setMaxListeners } from "node:events";

import type { Caller } from "../call/caller.js";
import type { ResourceRef, ServerReads } from "../call/serverReads.js";
import { oneLine } from "../text/clean.js";
import { linkSignal } from "../text/abort.js";
import { McpConnectionError, McpPolicyError } from "../errors.js";
import { failureText } from "../call/failureText.js";
import { excerptOf, type ResourceExcerpt } from "./resourceContents.js";

export type Reading = ResourceRef & {
  /** Tells later whether the resource changed; `""` when that does not matter. */
  readonly mark: string;
} & (
    | { readonly kind: "read"; readonly excerpt: ResourceExcerpt }
    | { readonly kind: "failed"; readonly why: string }
  );

/** Follows the name of a server that has no resources. */
export const HAS_NO_RESOURCES = "has no resources that can be read. Use its tools instead.";

/**
 * Reads resources in parallel, within one deadline. Failures are readings too.
 * @param callerOf - The caller for a resource, with a person's decision about it.
 * @throws only the abort reason.
 */
export async function readMentions(
  reads: ServerReads,
  wanted: readonly ResourceRef[],
  callerOf: (resource: ResourceRef) => Caller,
  {
    mentionDeadlineMs,
    maxResourceChars,
  }: { readonly mentionDeadlineMs: number; readonly maxResourceChars: number },
): Promise<Reading[]> {
  if (wanted.length === 0) return [];
  const outer = callerOf(wanted[0]!).signal;
  const { signal, abort, unlink } = linkSignal(outer ?? new AbortController().signal);
  // All reads share this signal, each with its own listeners.
  setMaxListeners(0, signal);
  const late = new McpConnectionError(
    "REQUEST_TIMEOUT",
    `Reading took longer than mentionDeadlineMs (${mentionDeadlineMs}).`,
  );
  const timer = setTimeout(() => abort(late), mentionDeadlineMs);
  const reading = Promise.all(
    wanted.map(async ({ serverName, uri }): Promise<Reading> => {
      try {
        const { result, mark } = await reads.readWatched(
          { serverName, uri },
          { ...callerOf({ serverName, uri }), signal },
        );
        return {
          serverName,
          uri,
          mark,
          kind: "read",
          excerpt: excerptOf(result, uri, maxResourceChars),
        };
      } catch (error) {
        outer?.throwIfAborted();
        // Without a mark, later turns do not ask again after a refusal.
        const mark = McpPolicyError.isInstance(error) ? "" : reads.markOf({ serverName, uri });
        const why =
          error === late
            ? `Server "${oneLine(serverName, 64)}" did not answer in time.`
            : failureText(error, "this resource", HAS_NO_RESOURCES);
        return { serverName, uri, mark, kind: "failed", why };
      }
    }),
  );
  return reading.finally(() => {
    clearTimeout(timer);
    unlink();
  });
}
