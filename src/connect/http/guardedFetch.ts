import type { LookupFunction } from "node:net";

import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

import type { ResolvedAddress } from "../../config/securityOptions.js";
import { McpPolicyError } from "../../errors.js";
import { withLimitedBody } from "./limitedBody.js";
import type { UrlGuard } from "./urlGuard.js";

const MAX_REDIRECTS = 5;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

export interface GuardedFetchParts {
  readonly guard: UrlGuard | undefined;
  readonly configured: URL;
  /** Configured headers; they are sent to the server alone, not to OAuth servers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly maxMessageBytes: number;
}

/**
 * A `fetch` that checks every URL and bounds bodies. Follows at most 5 redirects that keep the
 * method and the origin.
 */
export async function guardedFetch({
  guard,
  configured,
  headers: own,
  maxMessageBytes,
}: GuardedFetchParts): Promise<FetchLike> {
  const send = guard === undefined ? fetch : await checkedFetch(guard);
  return async (input, init = {}) => {
    let url = new URL(input);
    let request: RequestInit = guard === undefined ? init : { ...init, redirect: "manual" };
    if (!isSamePlace(configured, url))
      request = { ...request, headers: without(request.headers, own) };
    for (let redirects = 0; ; redirects += 1) {
      if (guard !== undefined) await checked(guard, url, init.signal);
      const response = await send(url.href, request);
      const location = REDIRECTS.includes(response.status)
        ? response.headers.get("location")
        : null;
      if (location === null || init.redirect === "manual" || guard === undefined)
        return withLimitedBody(response, maxMessageBytes);
      await response.body?.cancel();
      const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
      const isGet = (init.method ?? "GET").toUpperCase() === "GET";
      if (next === undefined || init.redirect === "error" || redirects === MAX_REDIRECTS) {
        throw new TypeError("fetch failed", {
          cause: new Error(`it answers with a redirect (HTTP ${response.status})`),
        });
      }
      if (!isSamePlace(url, next))
        throw guard.refused(next, `${url.host} redirects to it, and it is another origin`);
      if (!isGet && response.status < 307)
        throw guard.refused(next, "the redirect would turn a request with a body into a GET");
      url = next;
    }
  };
}

/** True for the same origin, and for its https form on default ports. */
function isSamePlace(from: URL, to: URL): boolean {
  if (from.origin === to.origin) return true;
  return (
    from.hostname === to.hostname &&
    from.protocol === "http:" &&
    to.protocol === "https:" &&
    from.port === "" &&
    to.port === ""
  );
}

/** Removes the configured headers, unless their value was replaced. */
function without(given: RequestInit["headers"], own: Readonly<Record<string, string>>): Headers {
  const headers = new Headers(given);
  for (const [name, value] of new Headers(own))
    if (headers.get(name) === value) headers.delete(name);
  return headers;
}

/** Checks a URL; a failed DNS look-up becomes the `TypeError` that `fetch` throws. */
async function checked(
  guard: UrlGuard,
  url: URL,
  signal: AbortSignal | null | undefined,
): Promise<void> {
  try {
    await guard.check(url, signal);
  } catch (error) {
    if (McpPolicyError.isInstance(error) || signal?.aborted === true) throw error;
    throw new TypeError("fetch failed", { cause: error });
  }
}

/**
 * A `fetch` that connects only to addresses the guard has checked. Imports `undici` on first use.
 */
async function checkedFetch(guard: UrlGuard): Promise<FetchLike> {
  const { Agent, fetch: fetchWith } = await import("undici");
  const dispatcher = new Agent({ connect: { lookup: guardedLookup(guard, "https:") } });
  return async (url, init) => {
    const { body, status, statusText, headers } = await fetchWith(url, {
      ...init,
      dispatcher,
    } as never);
    // The global class; undici's own `Response` is a different one.
    return new Response(body as ReadableStream | null, {
      status,
      statusText,
      headers: [...headers],
    });
  };
}

/** A socket look-up that returns only addresses the guard has checked. */
export function guardedLookup(guard: UrlGuard, protocol: string): LookupFunction {
  return (hostname, options, callback) => {
    const give = (addresses: readonly ResolvedAddress[]): void => {
      if (options.all === true) callback(null, [...addresses]);
      else callback(null, addresses[0]!.address, addresses[0]!.family);
    };
    const family =
      options.family === "IPv4" ? 4 : options.family === "IPv6" ? 6 : (options.family ?? 0);
    guard
      .check(new URL(`${protocol}//${hostname}`))
      .then((addresses) => {
        const fitting = addresses.filter((address) => family === 0 || address.family === family);
        if (fitting.length === 0) throw new Error(`${hostname} has no address`);
        give(fitting);
      })
      .catch((error: unknown) => callback(error as NodeJS.ErrnoException, [], 0));
  };
}
