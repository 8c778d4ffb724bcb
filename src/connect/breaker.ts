import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  handleWhen,
  isBrokenCircuitError,
  type CircuitBreakerPolicy,
} from "cockatiel";

/** How a breaker opens and closes. */
export interface BreakerSettings {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** Milliseconds it stays open; then one attempt may try. */
  readonly openMs: number;
}

/** Thrown in place of an attempt while the breaker is open. */
export class BreakerOpen extends Error {
  override readonly name = "BreakerOpen";
}

/**
 * Leaves a server alone that failed several times in a row.
 *
 * While it is open nothing is attempted; after `openMs` one attempt probes, and whatever becomes of it, the breaker
 * closes or opens again: a probe never stays pending longer than the attempt itself.
 */
export class Breaker {
  readonly #settings: BreakerSettings;
  #policy!: CircuitBreakerPolicy;
  #openUntilMs = 0;
  /** No failure since the last success. */
  #isClean = true;

  constructor(settings: BreakerSettings) {
    this.#settings = settings;
    this.reset();
  }

  /** When the next attempt may be made, in milliseconds since 1970; `undefined` while the breaker is not open. */
  get openUntilMs(): number | undefined {
    return this.#policy.state === CircuitState.Open && Date.now() < this.#openUntilMs ? this.#openUntilMs : undefined;
  }

  /**
   * Makes an attempt.
   *
   * @param countsAsFailure - Other errors are successes: the server was there.
   * @throws {BreakerOpen} in place of it while the breaker is open, and whatever the attempt throws.
   */
  async guard<Value>(attempt: () => Promise<Value>, countsAsFailure: (error: unknown) => boolean): Promise<Value> {
    if (this.openUntilMs !== undefined) throw new BreakerOpen();
    if (this.#isClean) return this.#guardClean(attempt, countsAsFailure);
    // An error that says nothing about the connection is a success to the breaker, so it is carried past it.
    const guarded = this.#policy.execute(async () => {
      try {
        return { value: await attempt() };
      } catch (error) {
        if (countsAsFailure(error)) throw error;
        return { error };
      }
    });
    const outcome = await guarded.catch((error: unknown) => {
      // One that waited for a probe which failed.
      throw isBrokenCircuitError(error) ? new BreakerOpen() : error;
    });
    this.#isClean = true;
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** As long as nothing failed there is nothing to write down of a success. */
  async #guardClean<Value>(attempt: () => Promise<Value>, countsAsFailure: (error: unknown) => boolean): Promise<Value> {
    try {
      return await attempt();
    } catch (error) {
      if (countsAsFailure(error)) {
        this.#isClean = false;
        await this.#policy.execute(() => Promise.reject(error as Error)).catch(() => undefined);
      }
      throw error;
    }
  }

  /** Forgets all failures. */
  reset(): void {
    const { failures, openMs } = this.#settings;
    this.#isClean = true;
    this.#policy = circuitBreaker(
      handleWhen(() => true),
      { halfOpenAfter: openMs, breaker: new ConsecutiveBreaker(failures) },
    );
    this.#policy.onBreak(() => {
      this.#openUntilMs = Date.now() + openMs;
    });
  }
}
