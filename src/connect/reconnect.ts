import pRetry from "p-retry";

import type { ReconnectSettings } from "../config/settings.js";
import { McpAuthRequiredError, McpConfigError, McpPolicyError, type McpMiddlewareError } from "../errors.js";
import { sleep } from "../text/abort.js";
import { backoffMs } from "./backoff.js";

/** What a series of attempts is made of. */
export interface SeriesParts extends ReconnectSettings {
  /** Connections before this series that ended without having brought anything: waits are as long as behind them. */
  readonly barrenLosses: number;
  /** From 0 to 1, for waits. */
  readonly random: (() => number) | undefined;
  readonly signal: AbortSignal;
  /** One attempt. Rejects with an {@link McpMiddlewareError}. */
  readonly attempt: (number: number) => Promise<void>;
  /** Told of each attempt as it is begun. */
  readonly onTrying: (number: number, trying: Promise<void>) => void;
  /** Told of each wait. `number` is that of the attempt before it, 0 when there was none. */
  readonly onWaiting: (number: number, waitMs: number, error: McpMiddlewareError) => void;
}

/**
 * Attempts to open a connection again: the first at once, the next ones after growing waits.
 *
 * @param lost - Why it has to be opened again.
 * @throws {McpMiddlewareError} the error of the last attempt, and the abort reason when the signal aborts.
 */
export async function reconnectSeries(lost: McpMiddlewareError, parts: SeriesParts): Promise<void> {
  const { waits, delayMs, random, signal, attempt, onTrying, onWaiting } = parts;
  // A server that ends each connection at once is not opened again without end: its waits go on growing.
  const spent = Math.max(0, parts.barrenLosses - 1);
  const wait = async (number: number, before: number, error: McpMiddlewareError): Promise<void> => {
    const waitMs = backoffMs(number, delayMs, random);
    onWaiting(before, waitMs, error);
    await sleep(waitMs, signal);
  };
  if (spent > waits) throw lost;
  if (spent > 0) await wait(spent, 0, lost);
  const tryOnce = async (number: number): Promise<void> => {
    const trying = attempt(number);
    onTrying(number, trying);
    await trying;
  };
  await pRetry(tryOnce, {
    retries: waits - spent,
    // The waits are our own: these know no jitter around the middle.
    minTimeout: 0,
    factor: 1,
    signal,
    shouldRetry: ({ error }) => isWorthRetrying(error),
    onFailedAttempt: async ({ error, attemptNumber, retriesLeft }) => {
      if (retriesLeft > 0 && isWorthRetrying(error)) {
        await wait(spent + attemptNumber, attemptNumber, error as unknown as McpMiddlewareError);
      }
    },
  });
}

/** A wrong configuration, refused credentials and refused URLs stay what they are. */
function isWorthRetrying(error: unknown): boolean {
  return ![McpConfigError, McpAuthRequiredError, McpPolicyError].some((kind) => kind.isInstance(error));
}
