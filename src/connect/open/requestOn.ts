import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import * as z from "zod";

import { linkSignal } from "../../text/abort.js";
import { withCallHeaders } from "../http/callHeaders.js";
import type { PeerRequest, Progress, RawResult } from "../peer.js";

/* Tolerant on purpose: results are read block by block, and one malformed element must not cost the others. */
const anyResult = z.custom<RawResult>((value) => typeof value === "object" && value !== null);

/** Sends a request with a client of the SDK, whose own schemas would refuse a whole result for one fault. */
export async function requestOn(client: Client, request: PeerRequest): Promise<RawResult> {
  const { method, params, signal, timeoutMs: timeout, maxTimeoutMs, onProgress, headers } = request;
  // The SDK leaves its listener on the signal it is given; the caller's may live long.
  const linked = signal === undefined ? undefined : linkSignal(signal);
  const progress = onProgress === undefined ? undefined : (given: Progress) => onProgress(given);
  const options = {
    timeout,
    ...(linked === undefined ? {} : { signal: linked.signal }),
    ...(maxTimeoutMs === undefined ? {} : { maxTotalTimeout: maxTimeoutMs, resetTimeoutOnProgress: true }),
    ...(progress === undefined ? {} : { onprogress: progress as never }),
  };
  try {
    return await withCallHeaders(headers, () => client.request({ method, params }, anyResult, options));
  } finally {
    linked?.unlink();
  }
}
