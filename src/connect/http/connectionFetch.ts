import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

import { messageOf } from "../../errors.js";
import { UNREAD } from "../failures.js";
import { requestIdOf } from "./requestId.js";
import { backoffMs } from "../backoff.js";
import { nextTurn, TurnClock } from "../../text/slices.js";
import { linkSignal, sleep } from "../../text/abort.js";

/** Events of streamable HTTP that only `fetch` sees. */
export interface FetchEvents {
  /** A stream has begun that will bring the answer to a request. */
  readonly onSent: (requestId: string | number) => void;
  /** That stream ended or failed; if it is not resumable, a missing answer will never come. */
  readonly onStreamEnd: (
    requestId: string | number,
    isResumable: boolean,
    failure?: string,
  ) => void;
  /** The standing stream was given up: no more notifications. */
  readonly onStreamGivenUp: () => void;
  /** An interrupted stream cannot be resumed: its answers will never come. */
  readonly onResumeRefused: () => void;
  /** The server has sent more requests than can be answered at the same time. */
  readonly onFlood: () => void;
}

/** A standing stream is given up after this many connects without an event. */
const MAX_BARREN_OPENS = 5;
/** Shortest pause between two connects of a standing stream. */
const MIN_PAUSE_MS = 100;
/** Answers to requests of the server that are sent at the same time. */
const MAX_ANSWERS = 32;
const EVENT_STREAM = "text/event-stream";

/**
 * The `fetch` of one streamable HTTP connection; it works around three behaviours of the SDK.
 * - The SDK passes one signal to all requests, on which Node 20 leaves a listener for each: every
 *   request gets its own.
 * - The SDK reconnects a standing stream (GET) every second without end: here the waits grow, and a
 *   stream that stays empty, or is no event stream, is given up.
 * - The SDK waits for the timeout of a request whose stream has ended: here its end is reported.
 */
export function connectionFetch(events: FetchEvents, baseFetch: FetchLike = fetch): FetchLike {
  let barrenOpens = 0;
  let answers = 0;
  let openedAtMs = 0;
  return async (url, init = {}) => {
    const isStanding =
      (init.method ?? "GET") === "GET" && new Headers(init.headers).get("accept") === EVENT_STREAM;
    if (isStanding) {
      if (barrenOpens >= MAX_BARREN_OPENS) {
        events.onStreamGivenUp();
        events.onResumeRefused();
        return notOffered();
      }
      const pauseMs = barrenOpens > 1 ? backoffMs(barrenOpens) : MIN_PAUSE_MS;
      const waitMs = openedAtMs + pauseMs - Date.now();
      if (openedAtMs > 0 && waitMs > 0) await sleep(waitMs, init.signal ?? undefined);
      openedAtMs = Date.now();
      barrenOpens += 1;
    }
    const isAnswer = init.method === "POST" && isAnswerIn(init.body);
    if (isAnswer && answers >= MAX_ANSWERS) {
      events.onFlood();
      throw new Error(UNREAD);
    }
    if (isAnswer) answers += 1;
    const linked =
      init.signal === undefined || init.signal === null ? undefined : linkSignal(init.signal);
    let response: Response;
    try {
      response = await baseFetch(
        url,
        linked === undefined ? init : { ...init, signal: linked.signal },
      );
    } catch (error) {
      linked?.unlink();
      throw error;
    } finally {
      if (isAnswer) answers -= 1;
    }
    if (isStanding && !response.ok) events.onResumeRefused();
    const isStream =
      response.headers.get("content-type")?.toLowerCase().startsWith(EVENT_STREAM) === true;
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
      onEnd: (isResumable, failure) => {
        linked?.unlink();
        if (requestId !== undefined) events.onStreamEnd(requestId, isResumable, failure);
      },
    });
  };
}

function notOffered(): Response {
  return new Response(null, { status: 405, statusText: "No event stream" });
}

/** True for the answer to a request of the server: the SDK writes `result` or `error` first. */
function isAnswerIn(body: unknown): boolean {
  return (
    typeof body === "string" &&
    /^\{"(?:result|error|jsonrpc":"2\.0","id":[^,]+,"(?:result|error))"/.test(body)
  );
}

interface WatchedEvents {
  readonly onText: (text: string) => void;
  readonly onEnd: (isResumable: boolean, failure?: string) => void;
}

function watched(response: Response, { onText, onEnd }: WatchedEvents): Response {
  if (response.body === null) {
    onEnd(false);
    return response;
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const turn = new TurnClock();
  let isResumable = false;
  let hasEnded = false;
  const end = (failure?: string): void => {
    if (hasEnded) return;
    hasEnded = true;
    onEnd(isResumable, failure);
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        turn.begin();
        if (turn.isOver) await nextTurn();
        const { done, value } = await reader.read();
        if (done) {
          end();
          controller.close();
          return;
        }
        const text = decoder.decode(value, { stream: true });
        // A stream whose events have ids can be resumed.
        isResumable ||= /^id:/m.test(text);
        onText(text);
        controller.enqueue(value);
      } catch (error) {
        end(messageOf(error));
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
