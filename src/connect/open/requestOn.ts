import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import * as z from "zod";

import { linkSignal } from "../../text/abort.js";
import { withCallHeaders } from "../http/callHeaders.js";
import type { PeerRequest, Progress, RawResult } from "../peer.js";

/* Results are read block by block later, so that one malformed element does not cost the others. */
const anyResult = z.custom<RawResult>((value) => typeof value === "object" && value !== null);

/**
 * Sends a request with the SDK's client, without its schemas: they reject a whole result for one
 * fault.
 */
export async function requestOn(client: Client, request: PeerRequest): Promise<RawResult> {
  const { method, params, signal, timeoutMs: timeout, maxTimeoutMs, onProgress, headers } = request;
  // The SDK leaves a listener on the signal, which may outlive the request.
  const linked = signal === undefined ? undefined : linkSignal(signal);
  const progress = onProgress === undefined ? undefined : (given: Progress) => onProgress(given);
  const options = {
    timeout,
    ...(linked === undefined ? {} : { signal: linked.signal }),
    ...(maxTimeoutMs === undefined
      ? {}
      : { maxTotalTimeout: maxTimeoutMs, resetTimeoutOnProgress: true }),
    ...(progress === undefined ? {} : { onprogress: progress as never }),
  };
  try {
    return await withCallHeaders(headers, () =>
      client.request({ method, params }, anyResult, options),
    );
  } finally {
    linked?.unlink();
  }
}
