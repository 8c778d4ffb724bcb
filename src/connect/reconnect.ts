import type { ReconnectSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConfigError, McpPolicyError, type McpMiddlewareError } from "../errors.js";
import { sleep } from "../text/abort.js";
import { backoffMs } from "./backoff.js";

/** A step of a series: an attempt was begun, or the next one is waited for. */
export type ReconnectStep =
  | { readonly kind: "trying"; readonly attempt: number; readonly trying: Promise<void> }
  | { readonly kind: "waiting"; readonly attempt: number; readonly waitMs: number; readonly error: McpMiddlewareError };

/** A series of attempts to connect again. */
export interface ReconnectSeries extends ReconnectSettings {
  /** Why the connection was lost. */
  readonly lost: McpMiddlewareError;
  /** Consecutive connections before this one that ended without a successful request: waits go on from there. */
  readonly barrenLosses: number;
  readonly signal: AbortSignal;
  /** One attempt. Rejects with an {@link McpMiddlewareError}. */
  readonly attempt: (attempt: number) => Promise<void>;
  readonly onStep: (step: ReconnectStep) => void;
  /** From 0 to 1, for the jitter of waits. */
  readonly random?: (() => number) | undefined;
}

/**
 * Attempts to connect again: the first at once, the next ones after growing waits.
 *
 * A server that ends each connection at once is not reconnected without end: its waits keep growing.
 *
 * @throws {McpMiddlewareError} the error of the last attempt, and the abort reason when the signal aborts.
 */
export async function reconnectSeries(series: ReconnectSeries): Promise<void> {
  const { lost, waits, delayMs, signal, onStep, random } = series;
  const spent = Math.max(0, series.barrenLosses - 1);
  if (spent > waits) throw lost;
  let error = lost;
  for (let attempt = 1; attempt <= waits - spent + 1; attempt += 1) {
    const wait = spent + attempt - 1;
    if (wait > 0) {
      const waitMs = backoffMs(wait, delayMs, random);
      onStep({ kind: "waiting", attempt: attempt - 1, waitMs, error });
      await sleep(waitMs, signal);
    }
    try {
      const trying = series.attempt(attempt);
      onStep({ kind: "trying", attempt, trying });
      return await trying;
    } catch (failed) {
      signal.throwIfAborted();
      if (!isWorthRetrying(failed)) throw failed;
      error = failed as McpMiddlewareError;
    }
  }
  throw error;
}

/** A wrong configuration, refused credentials and refused URLs stay the same. */
function isWorthRetrying(error: unknown): boolean {
  return ![McpConfigError, McpAuthRequiredError, McpPolicyError].some((kind) => kind.isInstance(error));
}
