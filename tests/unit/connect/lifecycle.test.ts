import { jest } from "@jest/globals";
import pLimit from "p-limit";

import { Breaker } from "../../../src/connect/breaker.js";
import { Lifecycle, type LifecycleOptions } from "../../../src/connect/lifecycle.js";
import type { OpenPeer, Peer } from "../../../src/connect/peer.js";
import {
  McpAuthRequiredError,
  McpConfigError,
  McpConnectionError,
  McpPolicyError,
} from "../../../src/errors.js";
import {
  deferred,
  fakeOpen,
  fakePeer,
  settingsOf,
  settled,
  type FakePeerOptions,
} from "../../support/fakePeer.js";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const RECONNECT = { waits: 2, delayMs: 1_000 };
const DOWN = new McpConnectionError("CONNECT_FAILED", "refused");

type Outcome = "ok" | Error | Promise<unknown>;

interface Setup extends Omit<Partial<LifecycleOptions>, "settings"> {
  readonly settings?: Partial<LifecycleOptions["settings"]>;
  readonly peer?: FakePeerOptions;
  /** What each connect comes to, in turn; then "ok". */
  readonly outcomes?: Outcome[];
  readonly onOpened?: (peer: Peer, signal: AbortSignal) => Promise<void>;
}

function living({
  settings,
  peer,
  outcomes = [],
  onOpened = async () => undefined,
  ...more
}: Setup = {}) {
  const { open, peers, events } = fakeOpen(peer);
  const states: string[] = [];
  const openedAt: number[] = [];
  const startedAt = Date.now();
  const opening: OpenPeer = async (signal, told) => {
    openedAt.push(Date.now() - startedAt);
    const outcome = outcomes[openedAt.length - 1] ?? "ok";
    if (outcome instanceof Error) throw outcome;
    if (outcome !== "ok") {
      await Promise.race([
        outcome,
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error)),
        ),
      ]);
    }
    return open(signal, told);
  };
  const breaker = new Breaker(3, 60_000);
  const all = { ...settingsOf(), reconnect: RECONNECT, ...settings };
  const options = {
    settings: all,
    connectLimit: pLimit(1),
    retryFailedAfterMs: 60_000,
    isOwned: false,
    random: () => 0.5,
  };
  const lifecycle = new Lifecycle({ ...options, open: opening, ...more }, breaker, {
    onState: ({ kind }) => states.push(kind),
    onOpened,
    onNotification: () => undefined,
  });
  return { lifecycle, states, peers, events, openedAt, breaker };
}

async function connected(setup: Setup = {}) {
  const made = living(setup);
  await made.lifecycle.connect();
  return { ...made, peer: made.peers[0]! };
}

describe("connecting", () => {
  it("goes from idle over connecting to connected", async () => {
    const { lifecycle, states, peers } = living();
    expect(lifecycle.state.kind).toBe("idle");
    expect(await lifecycle.peer()).toBe(peers[0]);
    expect(states).toEqual(["connecting", "connected"]);
  });

  it("happens once for all who want it at the same time", async () => {
    const { lifecycle, peers, openedAt } = living();
    const [first, second] = await Promise.all([
      lifecycle.peer(),
      lifecycle.peer(),
      lifecycle.connect(),
    ]);
    expect([first, second, openedAt.length]).toEqual([peers[0], peers[0], 1]);
    await lifecycle.connect();
    expect(openedAt).toHaveLength(1);
  });

  it("fails for all who wait, with the reason", async () => {
    const { lifecycle, states } = living({ outcomes: [DOWN] });
    const all = await Promise.allSettled([lifecycle.peer(), lifecycle.connect()]);
    expect(all).toEqual([
      { status: "rejected", reason: DOWN },
      { status: "rejected", reason: DOWN },
    ]);
    expect(states).toEqual(["connecting", "failed"]);
    await expect(lifecycle.peer()).rejects.toBe(DOWN);
  });

  it("leaves no connection behind when its tools cannot be listed", async () => {
    const { lifecycle, peers } = living({ onOpened: () => Promise.reject(new Error("no list")) });
    await expect(lifecycle.connect()).rejects.toMatchObject({
      code: "CONNECT_FAILED",
      message: 'Server "s" was reached, but its tools could not be listed: no list.',
    });
    expect(peers[0]!.closes()).toBe(1);
  });

  it("ends after connectTimeoutMs", async () => {
    const { lifecycle, states } = living({
      settings: { connectTimeoutMs: 5_000 },
      outcomes: [new Promise(() => undefined)],
    });
    const failed = expect(lifecycle.connect()).rejects.toMatchObject({ code: "CONNECT_TIMEOUT" });
    await jest.advanceTimersByTimeAsync(4_999);
    expect(states).toEqual(["connecting"]);
    await jest.advanceTimersByTimeAsync(1);
    await failed;
    expect(jest.getTimerCount()).toBe(0);
  });

  it("without valid credentials becomes needs-auth", async () => {
    const { lifecycle, states } = living({ outcomes: [new McpAuthRequiredError("401")] });
    await expect(lifecycle.connect()).rejects.toThrow("401");
    expect(states).toEqual(["connecting", "needs-auth"]);
  });

  it("does not happen for a server that is switched off", async () => {
    const { lifecycle, openedAt } = living({ settings: { enabled: false } });
    await expect(lifecycle.peer()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(lifecycle.reconnect()).rejects.toMatchObject({ code: "CLOSED" });
    expect([lifecycle.state.kind, openedAt]).toEqual(["disabled", []]);
  });
});

describe("a failed server", () => {
  it("is tried again by use of the hub, but not before retryFailedAfterMs", async () => {
    const { lifecycle, openedAt } = living({ outcomes: [DOWN] });
    await expect(lifecycle.connect()).rejects.toThrow();
    await jest.advanceTimersByTimeAsync(59_999);
    lifecycle.retryIfDue();
    await expect(lifecycle.peer()).rejects.toBe(DOWN);
    await jest.advanceTimersByTimeAsync(1);
    await lifecycle.peer();
    expect(openedAt).toEqual([0, 60_000]);
  });

  it("is not tried again by itself when its configuration is wrong", async () => {
    const { lifecycle, openedAt } = living({ outcomes: [new McpConfigError("wrong")] });
    await expect(lifecycle.connect()).rejects.toThrow();
    await jest.advanceTimersByTimeAsync(600_000);
    lifecycle.retryIfDue();
    await expect(lifecycle.peer()).rejects.toThrow("wrong");
    expect(openedAt).toEqual([0]);
  });

  it("is tried at once by connect, and its attempts are counted", async () => {
    const { lifecycle } = living({ outcomes: [DOWN, DOWN] });
    for (const attempts of [1, 2]) {
      await expect(lifecycle.connect()).rejects.toThrow();
      expect(lifecycle.state).toMatchObject({ kind: "failed", attempts });
    }
  });
});

describe("a lost connection", () => {
  it("is reconnected at once, and who asks waits for that attempt", async () => {
    const { lifecycle, states, peer, peers } = await connected();
    peer.end();
    expect(lifecycle.state).toMatchObject({
      kind: "reconnecting",
      attempt: 0,
      error: { code: "SESSION_LOST" },
    });
    expect(await lifecycle.peer()).toBe(peers[1]);
    expect(states).toEqual([
      "connecting",
      "connected",
      "reconnecting",
      "reconnecting",
      "connected",
    ]);
    expect(peer.closes()).toBe(1);
  });

  it("is noticed also when the server did not say that it ended", async () => {
    const { lifecycle, peer, peers } = await connected();
    peer.end("exit code 1", false);
    expect(lifecycle.current).toBeUndefined();
    await jest.advanceTimersByTimeAsync(0);
    expect(lifecycle.current).toBe(peers[1]);
  });

  it("is tried again after growing waits; in between, requests fail at once and say when the next attempt is", async () => {
    const { lifecycle, peer, openedAt } = await connected({ outcomes: ["ok", DOWN, DOWN] });
    peer.end();
    await jest.advanceTimersByTimeAsync(0);
    await expect(lifecycle.peer()).rejects.toMatchObject({
      code: "CONNECT_FAILED",
      message:
        'Server "s" is being reconnected (attempt 1 failed); the next attempt is in 1 s. Last error: refused',
    });
    await jest.advanceTimersByTimeAsync(3_000);
    expect(openedAt).toEqual([0, 0, 1_000, 3_000]);
    expect(lifecycle.state.kind).toBe("connected");
  });

  it("has failed after the last attempt, with its error", async () => {
    const last = new McpConnectionError("CONNECT_FAILED", "still refused");
    const { lifecycle, peer, openedAt } = await connected({ outcomes: ["ok", DOWN, DOWN, last] });
    peer.end();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(lifecycle.state).toMatchObject({ kind: "failed", error: last, attempts: 3 });
    expect(openedAt).toHaveLength(4);
  });

  it("stays lost without the setting, until someone reconnects it", async () => {
    const { lifecycle, peer, openedAt } = await connected({ settings: { reconnect: undefined } });
    peer.end("exit code 1");
    await expect(lifecycle.peer()).rejects.toMatchObject({
      code: "SESSION_LOST",
      message: expect.stringContaining("exit code 1"),
    });
    await jest.advanceTimersByTimeAsync(600_000);
    await expect(lifecycle.peer()).rejects.toMatchObject({ code: "SESSION_LOST" });
    expect(openedAt).toHaveLength(1);
    await lifecycle.reconnect();
    expect(lifecycle.state.kind).toBe("connected");
  });

  it("that a newer one has replaced changes nothing", async () => {
    const { lifecycle, peer, peers } = await connected();
    await lifecycle.reconnect();
    lifecycle.lose(peer);
    lifecycle.refuse(peer, new McpAuthRequiredError("401"), Promise.resolve());
    expect(lifecycle.current).toBe(peers[1]);
  });

  it("is closed only when the answers in flight are there", async () => {
    const { lifecycle, peer } = await connected();
    const answers = deferred();
    lifecycle.lose(peer, "gone", answers.promise);
    await jest.advanceTimersByTimeAsync(0);
    expect(peer.closes()).toBe(0);
    answers.resolve();
    await jest.advanceTimersByTimeAsync(0);
    expect(peer.closes()).toBe(1);
  });

  it("waits longer each time while connections end without an answer, and begins anew after one that answered", async () => {
    const { lifecycle, peers, openedAt } = await connected();
    const lose = async (waitMs: number): Promise<void> => {
      const before = openedAt.length;
      peers.at(-1)!.end();
      await jest.advanceTimersByTimeAsync(Math.max(0, waitMs - 1));
      expect(openedAt.length).toBe(waitMs === 0 ? before + 1 : before);
      await jest.advanceTimersByTimeAsync(waitMs === 0 ? 0 : 1);
      expect(openedAt.length).toBe(before + 1);
    };
    await lose(0);
    await lose(1_000);
    await lose(2_000);
    lifecycle.hasAnswered = true;
    await lose(0);
  });

  it("counts as healthy after thirty seconds, even without an answer", async () => {
    const { peers, openedAt } = await connected();
    for (let loss = 0; loss < 3; loss += 1) {
      await jest.advanceTimersByTimeAsync(30_000);
      peers.at(-1)!.end();
      await jest.advanceTimersByTimeAsync(0);
    }
    expect(openedAt).toEqual([0, 30_000, 60_000, 90_000]);
  });
});

describe("closing", () => {
  it("during a wait ends the series at once", async () => {
    const { lifecycle, peer, openedAt } = await connected({ outcomes: ["ok", DOWN] });
    peer.end();
    await jest.advanceTimersByTimeAsync(500);
    await lifecycle.close();
    expect([lifecycle.state.kind, jest.getTimerCount()]).toEqual(["closed", 0]);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(openedAt).toHaveLength(2);
    await expect(lifecycle.connect()).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("during a connect ends it for who waits", async () => {
    const { lifecycle, states } = living({ outcomes: [new Promise(() => undefined)] });
    const waiting = expect(lifecycle.peer()).rejects.toMatchObject({ code: "CLOSED" });
    await lifecycle.close();
    await waiting;
    expect(states).toEqual(["connecting", "closed"]);
  });

  it("closes a connection that opens too late", async () => {
    const late = deferred<Peer>();
    const peer = fakePeer();
    const { lifecycle } = living({ open: () => late.promise });
    const waiting = expect(lifecycle.connect()).rejects.toMatchObject({ code: "CLOSED" });
    await settled();
    const closing = lifecycle.close();
    late.resolve(peer);
    await closing;
    await waiting;
    expect([lifecycle.state.kind, peer.closes()]).toEqual(["closed", 1]);
  });

  it("closes the connection once, also when called twice", async () => {
    const { lifecycle, peer } = await connected();
    await Promise.all([lifecycle.close(), lifecycle.close()]);
    expect([lifecycle.state.kind, peer.closes()]).toEqual(["closed", 1]);
  });
});

describe("reconnect", () => {
  it("closes the connection and opens another", async () => {
    const { lifecycle, peer, peers } = await connected();
    await lifecycle.reconnect();
    expect([peer.closes(), lifecycle.current]).toEqual([1, peers[1]]);
  });

  it("replaces a connect that hangs, and who waited gets the new connection", async () => {
    const { lifecycle, peers } = living({
      connectLimit: pLimit(2),
      outcomes: [new Promise(() => undefined), "ok"],
    });
    const waiting = lifecycle.peer();
    await settled();
    await lifecycle.reconnect();
    expect(await waiting).toBe(peers[0]);
    expect(peers).toHaveLength(1);
  });

  it("ends the wait of a series", async () => {
    const { lifecycle, peer, openedAt } = await connected({ outcomes: ["ok", DOWN] });
    peer.end();
    await jest.advanceTimersByTimeAsync(500);
    await lifecycle.reconnect();
    expect(openedAt).toEqual([0, 0, 500]);
  });

  it("closes the breaker", async () => {
    const { lifecycle, breaker } = await connected();
    for (let failure = 0; failure < 3; failure += 1) {
      const attempt = async () => ({ error: DOWN, isFailure: true });
      await breaker.execute(attempt, () => new Error("open")).catch(() => undefined);
    }
    expect(breaker.openUntilMs).toBeDefined();
    await lifecycle.reconnect();
    expect(breaker.openUntilMs).toBeUndefined();
  });
});

describe("a suspect connection", () => {
  const DEAD = new Error("socket hang up");

  it("that answers a ping stays", async () => {
    const { lifecycle, peer } = await connected();
    lifecycle.check(peer, DEAD);
    await lifecycle.checking;
    expect(peer.sent.map(({ method, timeoutMs }) => [method, timeoutMs])).toEqual([
      ["ping", 5_000],
    ]);
    expect([lifecycle.current, lifecycle.checking]).toEqual([peer, undefined]);
  });

  it("that does not is lost", async () => {
    const { lifecycle, peer } = await connected({
      peer: { answer: () => Promise.reject(DEAD) },
      settings: { reconnect: undefined },
    });
    lifecycle.check(peer, new Error("timed out"));
    await lifecycle.checking;
    expect(lifecycle.state).toMatchObject({
      kind: "failed",
      error: { message: expect.stringContaining("timed out") },
    });
  });

  it("is pinged once at a time", async () => {
    const pong = deferred<Record<string, unknown>>();
    const { lifecycle, peer } = await connected({ peer: { answer: () => pong.promise } });
    lifecycle.check(peer, DEAD);
    lifecycle.check(peer, DEAD);
    expect(peer.sent).toHaveLength(1);
    pong.resolve({});
    await lifecycle.checking;
    lifecycle.check(peer, DEAD);
    expect(peer.sent).toHaveLength(2);
  });

  it("is pinged for errors outside of requests at most every five seconds", async () => {
    const { peer, events } = await connected();
    for (let error = 0; error < 10; error += 1) {
      events[0]!.onTrouble(DEAD);
      await jest.advanceTimersByTimeAsync(1_000);
    }
    expect(peer.sent).toHaveLength(2);
  });
});

describe("a server that a person has to allow", () => {
  const REQUIRED = new McpPolicyError("CONSENT_REQUIRED", "ask first", {
    serverName: "s",
    reason: "ask first",
  });

  it("is not opened before, however long that takes", async () => {
    const consent = deferred();
    const { lifecycle, openedAt } = living({
      admit: () => consent.promise,
      settings: { connectTimeoutMs: 1_000 },
    });
    const connecting = lifecycle.connect();
    await jest.advanceTimersByTimeAsync(3_600_000);
    expect([lifecycle.state.kind, openedAt]).toEqual(["connecting", []]);
    consent.resolve();
    await connecting;
    expect(lifecycle.state.kind).toBe("connected");
  });

  it("is disabled without it, and connects when it is allowed", async () => {
    let isAllowed = false;
    const admit = (): Promise<void> => (isAllowed ? Promise.resolve() : Promise.reject(REQUIRED));
    const { lifecycle, openedAt } = living({ admit });
    await expect(lifecycle.connect()).rejects.toBe(REQUIRED);
    expect(lifecycle.state).toMatchObject({ kind: "disabled", error: REQUIRED });
    await expect(lifecycle.peer()).rejects.toBe(REQUIRED);
    isAllowed = true;
    lifecycle.allowed();
    await lifecycle.peer();
    expect([lifecycle.state.kind, openedAt.length]).toEqual(["connected", 1]);
  });

  it("can be closed while it waits", async () => {
    const { lifecycle, openedAt } = living({ admit: () => new Promise<never>(() => undefined) });
    const connecting = expect(lifecycle.connect()).rejects.toMatchObject({ code: "CLOSED" });
    await lifecycle.close();
    await connecting;
    expect(openedAt).toEqual([]);
  });

  it("ends when it is not allowed any more", async () => {
    const { lifecycle, peer } = await connected();
    lifecycle.disable(REQUIRED);
    await expect(lifecycle.peer()).rejects.toBe(REQUIRED);
    expect(peer.closes()).toBe(1);
    await lifecycle.reconnect();
    expect(lifecycle.state.kind).toBe("connected");
  });

  it("is not started by consent when its configuration switches it off", () => {
    const { lifecycle, openedAt } = living({ settings: { enabled: false } });
    lifecycle.allowed();
    expect([lifecycle.state.kind, openedAt]).toEqual(["disabled", []]);
  });
});

describe("a connection of another owner", () => {
  const OWNED: Setup = { isOwned: true, settings: { reconnect: undefined } };

  it("that is lost is not opened by connect or by use, only by reconnect", async () => {
    const { lifecycle, peer, peers } = await connected(OWNED);
    peer.end();
    await expect(lifecycle.connect()).rejects.toMatchObject({
      code: "SESSION_LOST",
      message: expect.stringContaining("Its owner can open it again"),
    });
    await jest.advanceTimersByTimeAsync(600_000);
    lifecycle.retryIfDue();
    await expect(lifecycle.peer()).rejects.toMatchObject({ code: "SESSION_LOST" });
    expect(peers).toHaveLength(1);
    await lifecycle.reconnect();
    expect(lifecycle.current).toBe(peers[1]);
  });

  it("that could not be opened is tried again by connect, not by use", async () => {
    const { lifecycle, openedAt } = living({ ...OWNED, outcomes: [DOWN] });
    await expect(lifecycle.connect()).rejects.toBe(DOWN);
    await jest.advanceTimersByTimeAsync(600_000);
    await expect(lifecycle.peer()).rejects.toBe(DOWN);
    expect(openedAt).toHaveLength(1);
    await lifecycle.connect();
    expect(lifecycle.state.kind).toBe("connected");
  });
});
