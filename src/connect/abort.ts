/** Settles with the promise, or rejects when the signal aborts first. */
export function rejectOnAbort<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** A signal of its own that aborts with another one, until it is unlinked. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts it alone. */
  readonly abort: (reason: unknown) => void;
  /** Removes the listener from the other signal. */
  readonly unlink: () => void;
}

/** Links a new signal to one that may live long: whoever gets the new one cannot leave listeners on the other. */
export function linkSignal(signal: AbortSignal): LinkedSignal {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => signal.removeEventListener("abort", onAbort),
  };
}

/** Waits, without keeping the process alive. Rejects with the abort reason when the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
  const waiting = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    timer.unref();
    signal?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
  return waiting.then(() => signal?.throwIfAborted());
}

/** Waits for a promise, a time or an abort, whichever comes first. */
export async function within(promise: Promise<unknown>, limitMs: number, signal?: AbortSignal): Promise<void> {
  let end: () => void = () => undefined;
  const limit = new Promise<void>((resolve) => {
    end = resolve;
  });
  const timer = setTimeout(end, limitMs);
  signal?.addEventListener("abort", end, { once: true });
  await Promise.race([promise, limit]);
  clearTimeout(timer);
  signal?.removeEventListener("abort", end);
}
