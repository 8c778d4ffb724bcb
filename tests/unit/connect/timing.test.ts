import { jest } from "@jest/globals";

import { sleep } from "../../../src/text/abort.js";
import { backoffMs } from "../../../src/connect/backoff.js";
import { Breaker } from "../../../src/connect/breaker.js";
import { ListWatch } from "../../../src/connect/lists/listWatch.js";
import { reconnectSeries, type ReconnectSeries } from "../../../src/connect/reconnect.js";
import { McpAuthRequiredError, McpConnectionError } from "../../../src/errors.js";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const refused = (): McpConnectionError => new McpConnectionError("CONNECT_FAILED", "refused");

describe("waits", () => {
  it("double from one second, half a second more or less, at most thirty", () => {
    const at = (random: number): number[] =>
      [1, 2, 3, 4, 5, 6, 9].map((number) => backoffMs(number, 1_000, () => random));
    expect(at(0.5)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(at(0)).toEqual([500, 1_500, 3_500, 7_500, 15_500, 30_000, 30_000]);
    expect(at(1)).toEqual([1_500, 2_500, 4_500, 8_500, 16_500, 30_000, 30_000]);
    expect(backoffMs(1, 10, () => 0)).toBe(5);
  });

  it("end when they are aborted, with the reason", async () => {
    const abort = new AbortController();
    const waiting = expect(sleep(60_000, abort.signal)).rejects.toThrow("closed");
    abort.abort(new Error("closed"));
    await waiting;
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe("a series of attempts", () => {
  function series(outcomes: (Error | "ok")[], more: Partial<ReconnectSeries> = {}) {
    const log: string[] = [];
    const startedAt = Date.now();
    const abort = new AbortController();
    const done = reconnectSeries({
      lost: refused(),
      waits: 5,
      delayMs: 1_000,
      barrenLosses: 0,
      random: () => 0.5,
      signal: abort.signal,
      attempt: async (number) => {
        log.push(`${Date.now() - startedAt}: attempt ${number}`);
        const outcome = outcomes[number - 1] ?? refused();
        if (outcome !== "ok") throw outcome;
      },
      onStep: (step) => {
        if (step.kind === "waiting") log.push(`wait ${step.waitMs} after ${step.attempt}`);
      },
      ...more,
    });
    return { log, done, abort };
  }

  it("tries at once, then after 1, 2, 4, 8 and 16 seconds, and gives up with the last error", async () => {
    const { log, done } = series([]);
    const failed = expect(done).rejects.toThrow("refused");
    await jest.advanceTimersByTimeAsync(60_000);
    await failed;
    expect(log.filter((line) => line.includes("attempt"))).toEqual([
      "0: attempt 1",
      "1000: attempt 2",
      "3000: attempt 3",
      "7000: attempt 4",
      "15000: attempt 5",
      "31000: attempt 6",
    ]);
  });

  it("ends with the first success", async () => {
    const { log, done } = series([refused(), "ok"]);
    await jest.advanceTimersByTimeAsync(60_000);
    await done;
    expect(log).toEqual(["0: attempt 1", "wait 1000 after 1", "1000: attempt 2"]);
  });

  it("stops when credentials are refused", async () => {
    const { log, done } = series([new McpAuthRequiredError("401")]);
    await expect(done).rejects.toThrow("401");
    expect(log).toEqual(["0: attempt 1"]);
  });

  it("continues the waits of connections that ended at once, and gives up after the last wait", async () => {
    const { log, done } = series(["ok"], { barrenLosses: 4 });
    await jest.advanceTimersByTimeAsync(60_000);
    await done;
    expect(log).toEqual(["wait 4000 after 0", "4000: attempt 1"]);
    await expect(series([], { barrenLosses: 7 }).done).rejects.toThrow("refused");
  });

  it("ends during a wait when it is aborted", async () => {
    const { log, done, abort } = series([]);
    const closed = expect(done).rejects.toThrow("closed");
    await jest.advanceTimersByTimeAsync(500);
    abort.abort(new Error("closed"));
    await closed;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(log).toHaveLength(2);
  });
});

describe("the breaker", () => {
  const fails = (): Promise<never> => Promise.reject(new Error("down"));
  const isOpen = (untilMs: number | undefined): Error => new Error(`open until ${untilMs}`);
  /** Only "down" counts as a failure of the server. */
  const run = (breaker: Breaker, attempt: () => Promise<unknown>): Promise<unknown> =>
    breaker.execute(
      () =>
        attempt().then(
          (value) => ({ value }),
          (error: unknown) => ({ error, isFailure: (error as Error).message === "down" }),
        ),
      isOpen,
    );

  it("opens after three failures in a row, and lets one probe through after its time", async () => {
    const breaker = new Breaker(3, 300_000);
    let attempts = 0;
    const guard = (attempt: () => Promise<unknown>): Promise<unknown> =>
      run(breaker, () => {
        attempts += 1;
        return attempt();
      });
    for (let call = 0; call < 3; call += 1) await expect(guard(fails)).rejects.toThrow("down");
    expect(breaker.openUntilMs).toBe(Date.now() + 300_000);
    for (let call = 0; call < 50; call += 1)
      await expect(guard(fails)).rejects.toThrow("open until");
    expect(attempts).toBe(3);

    jest.advanceTimersByTime(300_000);
    expect(breaker.openUntilMs).toBeUndefined();
    // The probe fails: open again, released.
    const probes = await Promise.allSettled([guard(fails), guard(fails), guard(fails)]);
    expect(probes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(attempts).toBe(4);
    expect(breaker.openUntilMs).toBe(Date.now() + 300_000);

    jest.advanceTimersByTime(300_000);
    expect(await guard(() => Promise.resolve("well"))).toBe("well");
    await expect(guard(fails)).rejects.toThrow("down");
    expect(breaker.openUntilMs).toBeUndefined();
  });

  it("treats errors that do not count as successes, including those of an abandoned probe", async () => {
    const breaker = new Breaker(2, 1_000);
    const other = (): Promise<never> => Promise.reject(new Error("not found"));
    for (const attempt of [fails, other, fails, other, fails])
      await expect(run(breaker, attempt)).rejects.toThrow();
    expect(breaker.openUntilMs).toBeUndefined();
    await expect(run(breaker, fails)).rejects.toThrow("down");
    expect(breaker.openUntilMs).toBeDefined();
    jest.advanceTimersByTime(1_000);
    await expect(run(breaker, other)).rejects.toThrow("not found");
    expect(await run(breaker, () => Promise.resolve(1))).toBe(1);
  });

  it("forgets all failures on reset", async () => {
    const breaker = new Breaker(1, 1_000);
    await expect(run(breaker, fails)).rejects.toThrow("down");
    breaker.reset();
    expect(breaker.openUntilMs).toBeUndefined();
    expect(await run(breaker, () => Promise.resolve(1))).toBe(1);
  });
});

describe("a list that is watched", () => {
  function watch(changes: boolean[] = []) {
    let lists = 0;
    const failures: unknown[] = [];
    const made = new ListWatch({
      list: async () => {
        lists += 1;
        return changes[lists - 1] ?? true;
      },
      canList: () => true,
      onFailed: (error) => failures.push(error),
    });
    return { watch: made, lists: () => lists, failures };
  }

  it("is listed once for 20 announcements in 10 ms, after the last one", async () => {
    const { watch: list, lists } = watch();
    for (let sent = 0; sent < 20; sent += 1) {
      list.announced();
      await jest.advanceTimersByTimeAsync(0.5);
    }
    await jest.advanceTimersByTimeAsync(1_000);
    expect(lists()).toBe(1);
  });

  it("is listed rarely when 100 changes a second are announced without end", async () => {
    const { watch: list, lists } = watch();
    for (let sent = 0; sent < 1_000; sent += 1) {
      list.announced();
      await jest.advanceTimersByTimeAsync(10);
    }
    expect(lists()).toBeLessThanOrEqual(12);
    expect(lists()).toBeGreaterThanOrEqual(2);
  });

  it("is listed once more when an announced change is not in the list yet", async () => {
    const { watch: list, lists } = watch([false, true]);
    list.announced();
    await jest.advanceTimersByTimeAsync(100);
    expect(lists()).toBe(1);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(lists()).toBe(2);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(lists()).toBe(2);
  });

  it("is listed once more when a listing is requested during another one", async () => {
    const { watch: list, lists } = watch();
    await Promise.all([list.refresh(), list.refresh(), list.refresh()]);
    expect(lists()).toBe(2);
  });

  it("is listed again when it is older than its time, and not after it was stopped", async () => {
    const { watch: list, lists } = watch();
    list.listed();
    list.refreshIfOlderThan(1_000);
    await jest.advanceTimersByTimeAsync(1_000);
    list.refreshIfOlderThan(1_000);
    await jest.advanceTimersByTimeAsync(1);
    expect(lists()).toBe(1);
    list.announced();
    list.stop();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(lists()).toBe(1);
  });
});
