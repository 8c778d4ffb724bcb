import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

import { cut } from "../../text/clean.js";
import { HttpStatusError } from "../failures.js";
import { requestIdOf } from "./requestId.js";

const MAX_TEXT_CHARS = 1_000;
const MAX_RETRY_AFTER_MS = 24 * 3_600_000;

/**
 * A `fetch` that throws the status of an MCP request which a web server did not answer (429, 5xx),
 * with the time of `Retry-After`: the SDK's transports lose it.
 * @see https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
 */
export function statusFetch(send: FetchLike): FetchLike {
  return async (url, init) => {
    const response = await send(url, init);
    const isFailure = response.status === 429 || response.status >= 500;
    if (!isFailure || requestIdOf(init?.body) === undefined) return response;
    const text = await response.text().catch(() => "");
    const retryAtMs = timeOf(response.headers.get("retry-after"));
    throw new HttpStatusError(response.status, cut(text.trim(), MAX_TEXT_CHARS), retryAtMs);
  };
}

/** Seconds from now, or a date. */
function timeOf(written: string | null): number | undefined {
  if (written === null) return undefined;
  const inMs = /^\d+$/.test(written) ? Number(written) * 1_000 : Date.parse(written) - Date.now();
  if (!Number.isFinite(inMs)) return undefined;
  return Date.now() + Math.min(Math.max(0, inMs), MAX_RETRY_AFTER_MS);
}
