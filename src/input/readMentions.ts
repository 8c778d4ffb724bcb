import { setMaxListeners } from "node:events";

import type { Caller } from "../call/caller.js";
import type { ResourceRef, ServerReads } from "../call/serverReads.js";
import { oneLine } from "../text/clean.js";
import { linkSignal } from "../text/abort.js";
import { McpConnectionError, McpPolicyError } from "../errors.js";
import { failureText } from "../call/failureText.js";
import { excerptOf, type ResourceExcerpt } from "./resourceContents.js";

/** What reading a resource brought. */
export type Reading = ResourceRef & {
  /** Kept to tell later whether the resource changed; `""` when that does not matter. */
  readonly mark: string;
} & ({ readonly kind: "read"; readonly excerpt: ResourceExcerpt } | { readonly kind: "failed"; readonly why: string });

/** What a server without resources is answered with, behind its name. */
export const HAS_NO_RESOURCES = "has no resources that can be read. Use its tools instead.";

/**
 * Reads resources at the same time, within one deadline. What fails says so in its reading.
 *
 * @param callerOf - Who a resource is read for, with what a person said about it.
 * @throws only the abort reason when the run was aborted.
 */
export async function readMentions(
  reads: ServerReads,
  wanted: readonly ResourceRef[],
  callerOf: (resource: ResourceRef) => Caller,
  { mentionDeadlineMs, maxResourceChars }: { readonly mentionDeadlineMs: number; readonly maxResourceChars: number },
): Promise<Reading[]> {
  if (wanted.length === 0) return [];
  const outer = callerOf(wanted[0]!).signal;
  const { signal, abort, unlink } = linkSignal(outer ?? new AbortController().signal);
  // One for all of them, each with listeners of its own.
  setMaxListeners(0, signal);
  const late = new McpConnectionError("REQUEST_TIMEOUT", `Reading took longer than mentionDeadlineMs (${mentionDeadlineMs}).`);
  const timer = setTimeout(() => abort(late), mentionDeadlineMs);
  const reading = Promise.all(
    wanted.map(async ({ serverName, uri }): Promise<Reading> => {
      try {
        const { result, mark } = await reads.readWatched({ serverName, uri }, { ...callerOf({ serverName, uri }), signal });
        return { serverName, uri, mark, kind: "read", excerpt: excerptOf(result, uri, maxResourceChars) };
      } catch (error) {
        outer?.throwIfAborted();
        // A refusal stands; nobody is asked again in every turn.
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
