import { AsyncLocalStorage } from "node:async_hooks";

import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

type CallHeaders = Readonly<Record<string, string>>;

const NONE: CallHeaders = Object.freeze({});

/**
 * HTTP headers of the call that is being made, besides those of the configuration. They follow it through the SDK, which
 * shares one connection among all calls.
 */
const callHeaders = new AsyncLocalStorage<CallHeaders>();

/** Makes a call with headers of its own; one without has none, also inside of another one. */
export function withCallHeaders<Value>(headers: CallHeaders | undefined, call: () => Value): Value {
  if (headers === undefined && callHeaders.getStore() === undefined) return call();
  return callHeaders.run(headers ?? NONE, call);
}

/** What a {@link callHeadersFetch} is made of. */
export interface CallHeadersFetchParts {
  /** For all requests. */
  readonly fetch: FetchLike;
  /** For calls that bring credentials of their own: nothing is renewed for these. */
  readonly plainFetch: FetchLike;
  readonly serverUrl: URL;
  /** Told of each value that is sent: it may be a secret. */
  readonly onValue: (value: string) => void;
}

/**
 * A `fetch` that adds the headers of a call to the request of that call, in place of equal ones in whatever letters. No other
 * request gets them: the context of a call goes on into all that its answer brings about, a new session included.
 */
export function callHeadersFetch({ fetch: send, plainFetch, serverUrl, onValue }: CallHeadersFetchParts): FetchLike {
  return async (url, init = {}) => {
    const own = callHeaders.getStore() ?? NONE;
    const names = Object.keys(own);
    if (names.length === 0 || !isToolCall(init) || new URL(url).origin !== serverUrl.origin) return send(url, init);
    const headers = new Headers(init.headers);
    for (const name of names) {
      headers.set(name, own[name]!);
      onValue(own[name]!);
    }
    if (!names.some((name) => name.toLowerCase() === "authorization")) return send(url, { ...init, headers });
    const response = await plainFetch(url, { ...init, headers });
    if (response.status !== 401) return response;
    // Refused for what this caller brought: no reason to doubt the tokens of all.
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
