import { jest } from "@jest/globals";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError } from "@modelcontextprotocol/sdk/types.js";

import {
  classifyFailure,
  mayRepeat,
  HttpStatusError,
  Unanswered,
  UnsentError,
  type Failure,
} from "../../../src/connect/failures.js";
import { connectionFetch, type FetchEvents } from "../../../src/connect/http/connectionFetch.js";
import { tooManyBytes } from "../../../src/connect/messageBudget.js";
import type { Peer } from "../../../src/connect/peer.js";

const session = (more: Partial<Peer> = {}): Peer =>
  ({ endReason: () => undefined, hasSession: () => true, ...more }) as Peer;

describe("a failed request", () => {
  it.each<[string, unknown, Failure]>([
    [
      "HTTP 404",
      new StreamableHTTPError(404, "Error POSTing to endpoint: Not Found"),
      "session-lost",
    ],
    [
      "HTTP 400 that names the session",
      new StreamableHTTPError(400, "Bad Request: No valid session ID provided"),
      "session-lost",
    ],
    [
      "HTTP 401 that names the session",
      new StreamableHTTPError(401, "Session not found"),
      "session-lost",
    ],
    [
      "HTTP 503 that names the session",
      new StreamableHTTPError(503, '{"error":"unknown session"}'),
      "session-lost",
    ],
    ["an answer that names the session", new McpError(-32001, "Session not found"), "session-lost"],
    ["SSE: HTTP 404", new Error("Error POSTing to endpoint (HTTP 404): gone"), "session-lost"],
    ["HTTP 400", new StreamableHTTPError(400, "Bad Request"), "answered"],
    ["HTTP 429", new StreamableHTTPError(429, "Too many"), "busy"],
    ["HTTP 503", new HttpStatusError(503, "later", undefined), "busy"],
    ["HTTP 502", new HttpStatusError(502, "bad gateway", undefined), "transport"],
    [
      "a refused connection",
      new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }),
      "unsent",
    ],
    [
      "a reset connection",
      new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }),
      "transport",
    ],
    ["a pipe that cannot be written to", new UnsentError("no"), "unsent"],
    ["HTTP 403", new StreamableHTTPError(403, "not yours"), "unauthorized"],
    ["HTTP 401", new StreamableHTTPError(401, "who are you"), "unauthorized"],
    ["OAuth", new UnauthorizedError(), "unauthorized"],
    ["HTTP 500", new StreamableHTTPError(500, "oops"), "transport"],
    [
      "the SDK's own timeout",
      new McpError(-32001, "Request timed out", { timeout: 100 }),
      "timeout",
    ],
    ["a server's error of the same code", new McpError(-32001, "busy"), "answered"],
    ["a server's error", new McpError(-32602, "bad params"), "answered"],
    [
      "a server's error about a session of its own tool",
      new McpError(-32603, "The session has 3 tabs"),
      "answered",
    ],
    [
      "a tool's own session, after it ran",
      new McpError(-32603, "order booked, but the payment session has expired"),
      "answered",
    ],
    [
      "a tool's own session in other words",
      new McpError(-32000, "the browser session is closed"),
      "answered",
    ],
    [
      "SDK servers' words",
      new McpError(-32000, "Bad Request: No valid session ID provided"),
      "session-lost",
    ],
    ["an answer that will not come", new McpError(-32000, "gone", new Unanswered()), "transport"],
    [
      "a server that sends our mark",
      new McpError(-32000, "gone", { reason: "the connection ended" }),
      "answered",
    ],
    [
      "an answer that is too large",
      new McpError(-32000, "", new Unanswered(tooManyBytes(10))),
      "too-large",
    ],
    ["an error text that says so", new McpError(-32000, tooManyBytes(10)), "answered"],
    ["a failed fetch", new TypeError("fetch failed"), "transport"],
  ])("%s: says %s", (_name, error, failure) => {
    expect(classifyFailure(error, session())).toBe(failure);
  });

  it("of a transport without sessions, or of a closed connection, is no lost session", () => {
    const lost = new McpError(-32001, "Session not found");
    expect(classifyFailure(lost, session({ hasSession: () => false }))).toBe("answered");
    expect(
      classifyFailure(
        new McpError(-32000, "Connection closed"),
        session({ endReason: () => "it exited" }),
      ),
    ).toBe("transport");
  });

  it("is repeated when it did not run, or may run twice; never after a timeout", () => {
    const failures: Failure[] = [
      "answered",
      "timeout",
      "unauthorized",
      "session-lost",
      "transport",
      "too-large",
    ];
    expect(failures.filter((failure) => mayRepeat(failure, false))).toEqual(["session-lost"]);
    expect(failures.filter((failure) => mayRepeat(failure, true))).toEqual([
      "session-lost",
      "transport",
    ]);
  });
});

describe("our fetch", () => {
  const stream = (...chunks: string[]): Response =>
    new Response(new Blob(chunks).stream(), { headers: { "content-type": "text/event-stream" } });
  const get = { method: "GET", headers: { accept: "text/event-stream" } };
  const post = {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call" }),
  };

  function listen() {
    const log: string[] = [];
    const events: FetchEvents = {
      onSent: (id) => log.push(`sent ${id}`),
      onStreamEnd: (id, isResumable) =>
        log.push(`end ${id} ${isResumable ? "resumable" : "for good"}`),
      onStreamGivenUp: () => log.push("given up"),
      onResumeRefused: () => undefined,
      onFlood: () => undefined,
    };
    return { log, events };
  }

  it("reports the end of a stream that owes an answer, and whether it can be resumed", async () => {
    const { log, events } = listen();
    await (
      await connectionFetch(events, async () => stream(": wait\n\n"))("http://x", post)
    ).text();
    await (
      await connectionFetch(events, async () => stream("id: 1\ndata: {}\n\n"))("http://x", post)
    ).text();
    expect(log).toEqual(["sent 7", "end 7 for good", "sent 7", "end 7 resumable"]);
  });

  it("opens a standing stream that brings nothing at most five times in 30 seconds, with growing waits, then never", async () => {
    jest.useFakeTimers();
    const { log, events } = listen();
    const opens: number[] = [];
    const startedAt = Date.now();
    const fetchLike = connectionFetch(events, async () => {
      opens.push(Date.now() - startedAt);
      return stream("id: 1\nretry: 10\n\n");
    });
    const statuses: number[] = [];
    const sdk = (async () => {
      for (let open = 0; open < 8; open += 1) {
        const response = await fetchLike("http://x", get);
        statuses.push(response.status);
        await response.text();
        if (response.status === 405) return;
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    })();
    await jest.advanceTimersByTimeAsync(120_000);
    await sdk;
    expect(statuses).toEqual([200, 200, 200, 200, 200, 405]);
    expect(opens.filter((at) => at <= 5_000).length).toBeLessThanOrEqual(3);
    expect(log).toEqual(["given up"]);
    jest.useRealTimers();
  });

  it("starts counting again once a stream brought something", async () => {
    const { log, events } = listen();
    const fetchLike = connectionFetch(events, async () => stream('data: {"jsonrpc":"2.0"}\n\n'));
    for (let open = 0; open < 20; open += 1)
      expect(await (await fetchLike("http://x", get)).text()).toContain("data:");
    expect(log).toEqual([]);
  });

  it("leaves no listener on the signal it is given, on success and on failure", async () => {
    const { events } = listen();
    const { signal } = new AbortController();
    const added = jest.spyOn(signal, "addEventListener");
    const removed = jest.spyOn(signal, "removeEventListener");
    await (
      await connectionFetch(events, async () => new Response("{}"))("http://x", { ...post, signal })
    ).text();
    await connectionFetch(events, () => Promise.reject(new TypeError("fetch failed")))("http://x", {
      ...post,
      signal,
    }).catch(() => undefined);
    await connectionFetch(events, async () => new Response(null, { status: 202 }))("http://x", {
      ...post,
      signal,
    });
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([3, 3]);
  });
});
