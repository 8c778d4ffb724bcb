interface Watch {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/**
 * One abort listener per signal, however many wait for it: Node warns from the eleventh listener
 * on.
 */
const watches = new WeakMap<AbortSignal, Watch>();

/** Calls back when the signal aborts. @returns A function that stops this. */
function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let watch = watches.get(signal);
  if (watch === undefined) {
    const callbacks = new Set<() => void>();
    watch = { callbacks, listener: () => callbacks.forEach((call) => call()) };
    watches.set(signal, watch);
    signal.addEventListener("abort", watch.listener, { once: true });
  }
  const { callbacks, listener } = watch;
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0 || watches.get(signal) !== watch) return;
    watches.delete(signal);
    signal.removeEventListener("abort", listener);
  };
}

/** Settles with the promise, or rejects with the abort reason when the signal aborts first. */
export function rejectOnAbort<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    const end = onAbort(signal, stop);
    promise.then(resolve, reject).finally(end);
  });
}

/** A new signal that aborts with another one until it is unlinked. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;
  readonly unlink: () => void;
}

/**
 * Links a new signal to a long-lived one, so that users of the new one leave no listeners on the
 * other.
 */
export function linkSignal(signal: AbortSignal): LinkedSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort(signal.reason);
  if (signal.aborted) abort();
  const unlink = signal.aborted ? () => undefined : onAbort(signal, abort);
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), unlink };
}

/**
 * Waits without keeping the process alive; rejects with the abort reason when the signal aborts.
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
  const waiting = new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      unlink?.();
      resolve();
    }, ms);
    timer.unref();
    const stop = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const unlink = signal === undefined ? undefined : onAbort(signal, stop);
  });
  return waiting.then(() => signal?.throwIfAborted());
}

/** Waits for a promise, a time or an abort, whichever comes first. */
export async function settleWithin(
  promise: Promise<unknown>,
  limitMs: number,
  signal?: AbortSignal,
): Promise<void> {
  if (signal?.aborted === true) return;
  let end: () => void = () => undefined;
  const limit = new Promise<void>((resolve) => {
    end = resolve;
  });
  const timer = setTimeout(end, limitMs);
  const unlink = signal === undefined ? undefined : onAbort(signal, end);
  await Promise.race([promise, limit]);
  clearTimeout(timer);
  unlink?.();
}

/**
 * Settles with the promise, or rejects after a time.
 * @param subject - Begins the error message, such as `resultStore`.
 */
export async function rejectAfter<Value>(
  promise: Promise<Value>,
  limitMs: number,
  subject: string,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`${subject} did not answer within ${limitMs} ms`)),
      limitMs,
    );
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}
