import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

import { backoffMs } from "../backoff.js";
import { linkSignal, sleep } from "../../text/abort.js";

/** What our `fetch` tells of a connection. */
export interface FetchEvents {
  /** The answer to a request is coming in a stream. */
  readonly onSent: (requestId: string | number) => void;
  /** That stream ended; when it is not resumable, an answer that it did not bring will never come. */
  readonly onStreamEnd: (requestId: string | number, isResumable: boolean) => void;
  /** The server's standing stream was given up: notifications do not come any more. */
  readonly onStreamGivenUp: () => void;
  /** A stream that ended amid answers cannot be taken up again: they will never come. */
  readonly onResumeRefused: () => void;
}

/** A standing stream that is opened so often without bringing anything is given up. */
const MAX_BARREN_OPENS = 5;
/** Milliseconds between two openings of a standing stream, at least. */
const MIN_PAUSE_MS = 100;
const EVENT_STREAM = "text/event-stream";

/**
 * The `fetch` of one streamable HTTP connection.
 *
 * - Each request gets a signal of its own: the SDK hands one signal to all, and Node 20 leaves a listener on it for each.
 * - A standing stream (GET) that ends at once is opened again after growing waits, and given up when it never brings
 *   anything; one that is no event stream is taken for "none here". The SDK would open it once a second without end.
 * - The end of a stream that should bring an answer is told of: the SDK would wait for the timeout of the request.
 */
export function connectionFetch(events: FetchEvents, baseFetch: FetchLike = fetch): FetchLike {
  let barrenOpens = 0;
  let openedAtMs = 0;
  return async (url, init = {}) => {
    const isStanding = (init.method ?? "GET") === "GET" && new Headers(init.headers).get("accept") === EVENT_STREAM;
    if (isStanding) {
      if (barrenOpens >= MAX_BARREN_OPENS) {
        events.onStreamGivenUp();
        events.onResumeRefused();
        return notOffered();
      }
      // Whatever pause the server asks for.
      const pauseMs = barrenOpens > 1 ? backoffMs(barrenOpens) : MIN_PAUSE_MS;
      const waitMs = openedAtMs + pauseMs - Date.now();
      if (openedAtMs > 0 && waitMs > 0) await sleep(waitMs, init.signal ?? undefined);
      openedAtMs = Date.now();
      barrenOpens += 1;
    }
    const linked = init.signal === undefined || init.signal === null ? undefined : linkSignal(init.signal);
    let response: Response;
    try {
      response = await baseFetch(url, linked === undefined ? init : { ...init, signal: linked.signal });
    } catch (error) {
      linked?.unlink();
      throw error;
    }
    if (isStanding && !response.ok) events.onResumeRefused();
    const isStream = response.headers.get("content-type")?.toLowerCase().startsWith(EVENT_STREAM) === true;
    if (isStanding && response.ok && !isStream) {
      linked?.unlink();
      await response.body?.cancel();
      events.onStreamGivenUp();
      return notOffered();
    }
    const requestId = isStream && !isStanding ? requestIdOf(init.body) : undefined;
    if (requestId !== undefined) events.onSent(requestId);
    return watched(response, {
      onText: (text) => {
        if (isStanding && /^data:[ \t]*\S/m.test(text)) barrenOpens = 0;
      },
      onEnd: (isResumable) => {
        linked?.unlink();
        if (requestId !== undefined) events.onStreamEnd(requestId, isResumable);
      },
    });
  };
}

/** What a server says that offers no standing stream. */
function notOffered(): Response {
  return new Response(null, { status: 405, statusText: "No event stream" });
}

/** Id of the JSON-RPC request in a body; `undefined` for notifications and answers. */
function requestIdOf(body: unknown): string | number | undefined {
  if (typeof body !== "string") return undefined;
  try {
    const { id, method } = JSON.parse(body) as { readonly id?: string | number; readonly method?: string };
    return method === undefined ? undefined : id;
  } catch {
    return undefined;
  }
}

/** The same response, whose body is looked at as it passes. */
function watched(
  response: Response,
  { onText, onEnd }: { readonly onText: (text: string) => void; readonly onEnd: (isResumable: boolean) => void },
): Response {
  if (response.body === null) {
    onEnd(false);
    return response;
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let isResumable = false;
  let hasEnded = false;
  const end = (): void => {
    if (hasEnded) return;
    hasEnded = true;
    onEnd(isResumable);
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          end();
          controller.close();
          return;
        }
        const text = decoder.decode(value, { stream: true });
        // Events with an id can be asked for again.
        isResumable ||= /^id:/m.test(text);
        onText(text);
        controller.enqueue(value);
      } catch (error) {
        end();
        controller.error(error);
      }
    },
    async cancel(reason) {
      end();
      await reader.cancel(reason);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
