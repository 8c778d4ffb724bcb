import { jest } from "@jest/globals";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";

import type { ServerSettings } from "../../../src/config/settings.js";
import { Breaker } from "../../../src/connect/breaker.js";
import { SESSION_UNKNOWN } from "../../../src/connect/failures.js";
import type { Lifecycle } from "../../../src/connect/lifecycle.js";
import type { Peer } from "../../../src/connect/peer.js";
import { Requests, type ServerRequest } from "../../../src/connect/requests.js";
import { McpAuthRequiredError } from "../../../src/errors.js";
import {
  deferred,
  fakePeer,
  settingsOf,
  settled,
  type FakePeer,
  type FakePeerOptions,
} from "../../support/fakePeer.js";

const FAILURES = {
  "session-lost": Object.assign(new Error("session not found"), { code: 404 }),
  transport: new Error("socket hang up"),
  timeout: new McpError(ErrorCode.RequestTimeout, "too slow", { timeout: 100 }),
  answered: new McpError(ErrorCode.InvalidParams, "no"),
  unauthorized: Object.assign(new Error("who are you"), { code: 401 }),
};
type Failing = keyof typeof FAILURES;

const CALL: ServerRequest = {
  method: "tools/call",
  params: {},
  subject: 'the call of "t"',
  isRepeatable: false,
};

interface Setup {
  readonly settings?: Partial<ServerSettings>;
  readonly breakerFailures?: number;
}

/**
 * Requests over fake peers. The lifecycle notes what it is told, and loses a peer as the real one
 * does.
 */
function requesting(peers: FakePeer[], { settings = {}, breakerFailures = 3 }: Setup = {}) {
  const told: string[] = [];
  const answers: (Promise<unknown> | undefined)[] = [];
  let position = 0;
  const lifecycle = {
    hasAnswered: false,
    checking: undefined as Promise<void> | undefined,
    get current(): Peer | undefined {
      return peers[position];
    },
    peer: (): Promise<Peer> => {
      told.push("peer");
      const peer = peers[position];
      return peer === undefined ? Promise.reject(new Error("no peer")) : Promise.resolve(peer);
    },
    lose: (_peer: Peer, reason?: string, waits?: Promise<unknown>) => {
      told.push(`lose ${reason ?? ""}`.trim());
      answers.push(waits);
      position += 1;
    },
    check: () => void told.push("check"),
    refuse: () => void told.push("refuse"),
  };
  const breaker = new Breaker(breakerFailures, 60_000);
  const all = { ...settingsOf(), ...settings };
  const requests = new Requests(all, lifecycle as unknown as Lifecycle, breaker);
  return { requests, lifecycle, breaker, told, answers, advance: () => (position += 1) };
}

/** Peers that fail in this way, one after the other; `"ok"` answers. */
function failing(...failures: (Failing | "ok")[]): FakePeer[] {
  return failures.map((failure) =>
    fakePeer({
      hasSession: true,
      answer: () => {
        if (failure !== "ok") throw FAILURES[failure];
        return { ok: true };
      },
    }),
  );
}

const waiting = (options: FakePeerOptions = {}) => {
  const ends: ReturnType<typeof deferred<Record<string, unknown>>>[] = [];
  const answer = (): Promise<Record<string, unknown>> => {
    const end = deferred<Record<string, unknown>>();
    ends.push(end);
    return end.promise;
  };
  return { peer: fakePeer({ ...options, answer }), ends };
};

afterEach(() => {
  jest.useRealTimers();
});

describe("the limit", () => {
  it("lets no more than maxConcurrentCalls run, and the next when one ends", async () => {
    const { peer, ends } = waiting();
    const { requests } = requesting([peer], { settings: { maxConcurrentCalls: 2 } });
    const all = Array.from({ length: 3 }, () => requests.send(CALL));
    await settled();
    expect(peer.sent).toHaveLength(2);
    ends[0]!.resolve({});
    await all[0];
    await settled();
    expect(peer.sent).toHaveLength(3);
    for (const { resolve } of ends) resolve({});
    await Promise.all(all);
  });

  it("gives a request that waited the connection of the time it is sent", async () => {
    const { peer, ends } = waiting();
    const [next] = failing("ok");
    const { requests, advance } = requesting([peer, next!], {
      settings: { maxConcurrentCalls: 1 },
    });
    const first = requests.send(CALL);
    const second = requests.send(CALL);
    await settled();
    advance();
    ends[0]!.resolve({});
    await Promise.all([first, second]);
    expect([peer.sent.length, next!.sent.length]).toEqual([1, 1]);
  });
});

describe("a request that failed", () => {
  it.each<[Failing, boolean, number]>([
    ["session-lost", false, 2],
    ["session-lost", true, 2],
    ["transport", false, 1],
    ["transport", true, 2],
    ["timeout", false, 1],
    ["timeout", true, 1],
    ["answered", true, 1],
    ["unauthorized", true, 1],
  ])("by %s, repeatable %s, is sent %s times", async (failure, isRepeatable, times) => {
    const [first, second] = failing(failure, "ok");
    // A connection that broke for good is lost, so that the next one is used.
    if (failure === "transport") first!.end();
    const { requests } = requesting([first!, second!]);
    const sending = requests.send({ ...CALL, isRepeatable });
    if (times === 1) await expect(sending).rejects.toMatchObject({ serverName: "s" });
    else expect(await sending).toEqual({ ok: true });
    expect(first!.sent.length + second!.sent.length).toBe(times);
  });

  it("is repeated once only", async () => {
    const peers = failing("session-lost", "session-lost", "ok");
    const { requests } = requesting(peers);
    await expect(requests.send(CALL)).rejects.toMatchObject({ code: "CONNECT_FAILED" });
    expect(peers.map(({ sent }) => sent.length)).toEqual([1, 1, 0]);
  });

  it("is reported as it failed first when there is no connection to repeat it on", async () => {
    const { requests } = requesting(failing("session-lost"));
    await expect(requests.send(CALL)).rejects.toThrow(
      'The call of "t" on server "s" was not sent: session not found. It did not run.',
    );
  });

  it("is repeated only after the check of the connection", async () => {
    const [peer] = failing("transport");
    const { requests, lifecycle } = requesting([peer!]);
    const check = deferred();
    lifecycle.check = () => void (lifecycle.checking = check.promise);
    const sending = expect(requests.send({ ...CALL, isRepeatable: true })).rejects.toThrow(
      "socket hang up",
    );
    await settled();
    expect(peer!.sent).toHaveLength(1);
    check.resolve();
    await sending;
    expect(peer!.sent).toHaveLength(2);
  });

  it.each<[Failing, string[]]>([
    ["session-lost", [`lose ${SESSION_UNKNOWN}`, "peer"]],
    ["transport", ["check"]],
    ["timeout", ["check"]],
    ["answered", []],
    ["unauthorized", []],
  ])("by %s tells the lifecycle", async (failure, expected) => {
    const { requests, told } = requesting(failing(failure));
    await expect(requests.send(CALL)).rejects.toThrow();
    expect(told).toEqual(expected);
  });

  it("for want of credentials that were refused for good ends the connection", async () => {
    const peer = fakePeer({ answer: () => Promise.reject(new McpAuthRequiredError("401")) });
    const { requests, told } = requesting([peer]);
    await expect(requests.send(CALL)).rejects.toThrow("401");
    expect(told).toEqual(["refuse"]);
  });

  it("on a connection that ended loses it, without a check", async () => {
    const [peer] = failing("transport");
    peer!.end("exit code 1");
    const { requests, told } = requesting([peer!]);
    await expect(requests.send(CALL)).rejects.toMatchObject({ code: "UNANSWERED" });
    expect(told).toEqual(["lose"]);
  });
});

describe("beforeSend", () => {
  it("cancels a request before it is sent", async () => {
    const [peer] = failing("ok");
    const stale = new Error("stale");
    const beforeSend = (): never => {
      throw stale;
    };
    await expect(requesting([peer!]).requests.send({ ...CALL, beforeSend })).rejects.toBe(stale);
    expect(peer!.sent).toEqual([]);
  });

  it("cancels a request before it is sent again", async () => {
    const peers = failing("session-lost", "ok");
    let looks = 0;
    const stale = new Error("stale");
    const beforeSend = (): void => {
      looks += 1;
      if (looks === 2) throw stale;
    };
    await expect(requesting(peers).requests.send({ ...CALL, beforeSend })).rejects.toBe(stale);
    expect(peers.map(({ sent }) => sent.length)).toEqual([1, 0]);
  });

  it("runs when the request's turn has come, not when it is given", async () => {
    const { peer, ends } = waiting();
    const { requests } = requesting([peer], { settings: { maxConcurrentCalls: 1 } });
    const beforeSend = jest.fn();
    const first = requests.send(CALL);
    const second = requests.send({ ...CALL, beforeSend });
    await settled();
    expect(beforeSend).not.toHaveBeenCalled();
    ends[0]!.resolve({});
    await settled();
    expect(beforeSend).toHaveBeenCalledTimes(1);
    ends[1]!.resolve({});
    await Promise.all([first, second]);
  });
});

describe("the breaker", () => {
  it("refuses requests after timeouts in a row, without sending", async () => {
    const [peer] = failing("timeout");
    const { requests } = requesting([peer!], { breakerFailures: 2 });
    for (let call = 0; call < 2; call += 1)
      await expect(requests.send(CALL)).rejects.toMatchObject({ code: "REQUEST_TIMEOUT" });
    await expect(requests.send(CALL)).rejects.toMatchObject({
      code: "BREAKER_OPEN",
      serverName: "s",
    });
    expect(peer!.sent).toHaveLength(2);
  });

  it.each<Failing>(["answered", "session-lost", "unauthorized"])(
    "does not count %s",
    async (failure) => {
      const { requests, breaker } = requesting(failing(failure, failure), { breakerFailures: 1 });
      await expect(requests.send(CALL)).rejects.toThrow();
      expect(breaker.openUntilMs).toBeUndefined();
    },
  );

  it("counts one break once, however many requests it costs", async () => {
    const { peer, ends } = waiting();
    const { requests, breaker, lifecycle } = requesting([peer], { breakerFailures: 2 });
    lifecycle.check = () => void (lifecycle.checking ??= new Promise<void>(() => undefined));
    const all = Promise.allSettled(Array.from({ length: 3 }, () => requests.send(CALL)));
    await settled();
    for (const { reject } of ends) {
      reject(FAILURES.transport);
      await settled();
    }
    await all;
    expect(breaker.openUntilMs).toBeUndefined();
  });

  it("does not count a request that was cancelled", async () => {
    const { peer, ends } = waiting();
    const { requests, breaker, told } = requesting([peer], { breakerFailures: 1 });
    const abort = new AbortController();
    const sending = requests.send({ ...CALL, signal: abort.signal });
    await settled();
    abort.abort(new Error("stopped"));
    ends[0]!.reject(FAILURES.timeout);
    await expect(sending).rejects.toThrow("stopped");
    await settled();
    expect([breaker.openUntilMs, told]).toEqual([undefined, []]);
  });
});

describe("an abort", () => {
  it("ends a request that waits for its turn, which is then never sent", async () => {
    const { peer, ends } = waiting();
    const { requests } = requesting([peer], { settings: { maxConcurrentCalls: 1 } });
    const first = requests.send(CALL);
    const abort = new AbortController();
    const second = requests.send({ ...CALL, signal: abort.signal });
    abort.abort(new Error("stopped"));
    await expect(second).rejects.toThrow("stopped");
    await settled();
    ends[0]!.resolve({});
    await first;
    await settled();
    expect(peer.sent).toHaveLength(1);
  });

  it("ends a request that waits for the connection", async () => {
    const { requests, lifecycle } = requesting([]);
    lifecycle.peer = () => new Promise<never>(() => undefined);
    const abort = new AbortController();
    const sending = requests.send({ ...CALL, signal: abort.signal });
    await settled();
    abort.abort(new Error("stopped"));
    await expect(sending).rejects.toThrow("stopped");
  });

  it("during a request that the session is lost under keeps it from being sent again", async () => {
    const abort = new AbortController();
    const answer = (): never => {
      abort.abort(new Error("stopped"));
      throw FAILURES["session-lost"];
    };
    const [next] = failing("ok");
    const { requests } = requesting([fakePeer({ hasSession: true, answer }), next!]);
    await expect(requests.send({ ...CALL, signal: abort.signal })).rejects.toThrow("stopped");
    await settled();
    expect(next!.sent).toEqual([]);
  });
});

describe("draining", () => {
  it("refuses new requests at once, and waits for those in flight", async () => {
    const { peer, ends } = waiting();
    const { requests } = requesting([peer]);
    const inFlight = requests.send(CALL);
    await settled();
    let isDrained = false;
    const drained = requests.drain(60_000).then(() => (isDrained = true));
    await expect(requests.send(CALL)).rejects.toMatchObject({ code: "CLOSED" });
    await settled();
    expect(isDrained).toBe(false);
    ends[0]!.resolve({ ok: true });
    await drained;
    expect(await inFlight).toEqual({ ok: true });
    expect(peer.sent).toHaveLength(1);
  });

  it("ends at its limit", async () => {
    jest.useFakeTimers();
    const { peer } = waiting();
    const { requests } = requesting([peer]);
    requests.send(CALL).catch(() => undefined);
    await settled();
    let isDrained = false;
    const drained = requests.drain(1_000).then(() => (isDrained = true));
    await jest.advanceTimersByTimeAsync(999);
    expect(isDrained).toBe(false);
    await jest.advanceTimersByTimeAsync(1);
    await drained;
  });
});

describe("an answer", () => {
  it("has its secrets masked, and shows that the connection works", async () => {
    const maskContent = <Value>(value: Value): Value =>
      JSON.parse(JSON.stringify(value).replaceAll("hunter2", "***")) as Value;
    const peer = fakePeer({ maskContent, answer: () => ({ text: "the password is hunter2" }) });
    const { requests, lifecycle } = requesting([peer]);
    expect(await requests.send(CALL)).toEqual({ text: "the password is ***" });
    expect(lifecycle.hasAnswered).toBe(true);
  });

  it("is awaited for requestTimeoutMs, unless the request has its own limit", async () => {
    const [peer] = failing("ok");
    const { requests } = requesting([peer!], { settings: { requestTimeoutMs: 1_234 } });
    await requests.send(CALL);
    await requests.send({ ...CALL, timeoutMs: 5 });
    expect(peer!.sent.map(({ timeoutMs }) => timeoutMs)).toEqual([1_234, 5]);
  });

  it("to another request is awaited for a second when the session is lost, before the connection is closed", async () => {
    jest.useFakeTimers();
    const { peer, ends } = waiting({ hasSession: true });
    const { requests, answers } = requesting([peer]);
    const sent = [requests.send(CALL), requests.send(CALL)].map((sending) =>
      sending.catch((error: unknown) => error),
    );
    await settled();
    ends[0]!.reject(FAILURES["session-lost"]);
    await sent[0];
    let mayClose = false;
    void answers[0]!.then(() => (mayClose = true));
    await jest.advanceTimersByTimeAsync(999);
    expect(mayClose).toBe(false);
    await jest.advanceTimersByTimeAsync(1);
    expect(mayClose).toBe(true);
  });
});
