import type { Asker } from "../call/permits.js";
import type { Requests } from "../call/requests.js";
import { linkSignal } from "../connect/abort.js";
import { McpConnectionError, McpPolicyError } from "../errors.js";
import { failureText } from "./failureText.js";
import { excerptOf, type ResourceExcerpt } from "./resourceContents.js";

/** A resource to be read. */
export interface WantedResource {
  readonly serverName: string;
  readonly uri: string;
}

/** What reading a resource brought. */
export type Reading = WantedResource & {
  /** Kept to tell later whether the resource changed; `""` when that does not matter. */
  readonly mark: string;
} & ({ readonly kind: "read"; readonly excerpt: ResourceExcerpt } | { readonly kind: "failed"; readonly why: string });

/** What a server without resources is answered with, behind its name. */
export const HAS_NO_RESOURCES = "has no resources that can be read. Use its tools instead.";

/**
 * Reads resources at the same time, within one deadline. What fails says so in its reading.
 *
 * @param askerOf - Who a resource is read for, with what a person said about it.
 * @throws only the abort reason when the run was aborted.
 */
export async function readMentions(
  requests: Requests,
  wanted: readonly WantedResource[],
  askerOf: (resource: WantedResource) => Asker,
  { mentionDeadlineMs, maxResourceChars }: { readonly mentionDeadlineMs: number; readonly maxResourceChars: number },
): Promise<Reading[]> {
  return Promise.all(
    wanted.map(async ({ serverName, uri }): Promise<Reading> => {
      const asker = askerOf({ serverName, uri });
      const { signal, abort, unlink } = linkSignal(asker.signal ?? new AbortController().signal);
      const late = new McpConnectionError(
        "REQUEST_TIMEOUT",
        `Reading took longer than mentionDeadlineMs (${mentionDeadlineMs}).`,
        {
          serverName,
        },
      );
      const timer = setTimeout(() => abort(late), mentionDeadlineMs);
      try {
        const { result, mark } = await requests.readWatched({ ...asker, signal, serverName, uri });
        return { serverName, uri, mark, kind: "read", excerpt: excerptOf(result, uri, maxResourceChars) };
      } catch (error) {
        asker.signal?.throwIfAborted();
        // A refusal stands; nobody is asked again in every turn.
        const mark = McpPolicyError.isInstance(error) ? "" : requests.markOf(serverName, uri);
        return { serverName, uri, mark, kind: "failed", why: failureText(error, "this resource", HAS_NO_RESOURCES) };
      } finally {
        clearTimeout(timer);
        unlink();
      }
    }),
  );
}
