import type { ReconnectSettings } from "../config/settings.js";
import {
  McpAuthRequiredError,
  McpConfigError,
  McpPolicyError,
  type McpMiddlewareError,
} from "../errors.js";
import { sleep } from "../text/abort.js";
import { backoffMs } from "./backoff.js";

/** Progress of a series: an attempt began, or the wait for the next one. */
export type ReconnectStep =
  | { readonly kind: "trying"; readonly attempt: number; readonly trying: Promise<void> }
  | {
      readonly kind: "waiting";
      readonly attempt: number;
      readonly waitMs: number;
      readonly error: McpMiddlewareError;
    };

export interface ReconnectSeries extends ReconnectSettings {
  readonly lost: McpMiddlewareError;
  /**
   * Consecutive connections that ended without a successful request: the waits go on from there.
   */
  readonly barrenLosses: number;
  readonly signal: AbortSignal;
  /** Makes one attempt. Rejects with an {@link McpMiddlewareError}. */
  readonly attempt: (attempt: number) => Promise<void>;
  readonly onStep: (step: ReconnectStep) => void;
  /** Random number from 0 to 1, for the jitter. */
  readonly random?: (() => number) | undefined;
}

/**
 * Reconnects: the first attempt at once, the next ones after waits that keep growing while
 * connections end at once.
 * @throws {McpMiddlewareError} the error of the last attempt; the abort reason when the signal
 * aborts.
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

/** A wrong configuration, refused credentials and refused URLs do not change by a retry. */
function isWorthRetrying(error: unknown): boolean {
  return ![McpConfigError, McpAuthRequiredError, McpPolicyError].some((kind) =>
    kind.isInstance(error),
  );
}
