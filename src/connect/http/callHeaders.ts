import { AsyncLocalStorage } from "node:async_hooks";

import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

type CallHeaders = Readonly<Record<string, string>>;

const NONE: CallHeaders = Object.freeze({});

/**
 * HTTP headers of the current call; async context carries them through the SDK, whose connection
 * all calls share.
 */
const callHeaders = new AsyncLocalStorage<CallHeaders>();

/** Runs a call with its own headers; without headers it does not inherit those of an outer call. */
export function withCallHeaders<Value>(headers: CallHeaders | undefined, call: () => Value): Value {
  if (headers === undefined && callHeaders.getStore() === undefined) return call();
  return callHeaders.run(headers ?? NONE, call);
}

export interface CallHeadersFetchParts {
  readonly fetch: FetchLike;
  /** Used for calls with their own `authorization`: it renews no token. */
  readonly plainFetch: FetchLike;
  readonly serverUrl: URL;
  /** Called with each header value that is sent, so that it can be masked. */
  readonly onValue: (value: string) => void;
}

/**
 * A `fetch` that adds the current call's headers to its `tools/call` request, and to no other
 * request, in place of equal names.
 */
export function callHeadersFetch({
  fetch: send,
  plainFetch,
  serverUrl,
  onValue,
}: CallHeadersFetchParts): FetchLike {
  return async (url, init = {}) => {
    const own = callHeaders.getStore() ?? NONE;
    const names = Object.keys(own);
    if (names.length === 0 || !isToolCall(init) || new URL(url).origin !== serverUrl.origin)
      return send(url, init);
    const headers = new Headers(init.headers);
    for (const name of names) {
      headers.set(name, own[name]!);
      onValue(own[name]!);
    }
    if (!names.some((name) => name.toLowerCase() === "authorization"))
      return send(url, { ...init, headers });
    const response = await plainFetch(url, { ...init, headers });
    if (response.status !== 401) return response;
    // A 401 would renew the shared token, which is not at fault.
    const { statusText, headers: answered } = response;
    return new Response(response.body, { status: 403, statusText, headers: answered });
  };
}

function isToolCall({ method, body }: RequestInit): boolean {
  if (method !== "POST" || typeof body !== "string") return false;
  try {
    return (JSON.parse(body) as { readonly method?: unknown }).method === "tools/call";
  } catch {
    return false;
  }
}
