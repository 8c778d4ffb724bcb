import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  handleAll,
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

/**
 * Leaves a server alone that failed several times in a row.
 *
 * While it is open nothing is attempted; after `openMs` one attempt probes, and whatever becomes of it, the breaker
 * closes or opens again: a probe never stays pending longer than the attempt itself.
 */
export class Breaker {
  readonly #settings: BreakerSettings;
  readonly #openError: (untilMs: number | undefined) => Error;
  #policy!: CircuitBreakerPolicy;
  #openUntilMs = 0;
  /** No failure since the last success. */
  #isClean = true;

  /** @param openError - Makes the error that stands in for an attempt while the breaker is open. */
  constructor(settings: BreakerSettings, openError: (untilMs: number | undefined) => Error) {
    this.#settings = settings;
    this.#openError = openError;
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
   * @throws the error made for it while the breaker is open, and whatever the attempt throws.
   */
  guard<Value>(attempt: () => Promise<Value>, countsAsFailure: (error: unknown) => boolean): Promise<Value> {
    if (this.#isClean) return this.#guardClean(attempt, countsAsFailure);
    const { openUntilMs } = this;
    if (openUntilMs !== undefined) return Promise.reject(this.#openError(openUntilMs));
    return this.#guard(attempt, countsAsFailure);
  }

  async #guard<Value>(attempt: () => Promise<Value>, countsAsFailure: (error: unknown) => boolean): Promise<Value> {
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
      throw isBrokenCircuitError(error) ? this.#openError(this.openUntilMs) : error;
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
    this.#policy = circuitBreaker(handleAll, { halfOpenAfter: openMs, breaker: new ConsecutiveBreaker(failures) });
    this.#policy.onBreak(() => {
      this.#openUntilMs = Date.now() + openMs;
    });
  }
}
