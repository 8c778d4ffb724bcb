import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  handleWhenResult,
  isBrokenCircuitError,
  type CircuitBreakerPolicy,
} from "cockatiel";

/** The result of an attempt, or its error and whether that counts as a failure of the server. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown; readonly isFailure: boolean };

/** A circuit breaker: after some consecutive failures it refuses attempts for a while, then lets one probe through. */
export class Breaker {
  readonly #failures: number;
  readonly #openMs: number;
  #policy!: CircuitBreakerPolicy;
  #openUntilMs = 0;

  constructor(failures: number, openMs: number) {
    this.#failures = failures;
    this.#openMs = openMs;
    this.reset();
  }

  /** When the next attempt may be made, in milliseconds since 1970; `undefined` unless the breaker is open. */
  get openUntilMs(): number | undefined {
    return this.#policy.state === CircuitState.Open && Date.now() < this.#openUntilMs ? this.#openUntilMs : undefined;
  }

  /**
   * Runs an attempt and returns its value.
   *
   * @param openError - Makes the error that is thrown while the breaker is open.
   * @throws that error, or the error of the outcome.
   */
  async execute<Value>(
    attempt: () => Promise<Outcome<Value>>,
    openError: (untilMs: number | undefined) => Error,
  ): Promise<Value> {
    const outcome = await this.#policy.execute(attempt).catch((error: unknown) => {
      throw isBrokenCircuitError(error) ? openError(this.openUntilMs) : error;
    });
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  reset(): void {
    const policy = handleWhenResult((outcome) => (outcome as Partial<{ isFailure: boolean }>).isFailure === true);
    this.#policy = circuitBreaker(policy, { halfOpenAfter: this.#openMs, breaker: new ConsecutiveBreaker(this.#failures) });
    this.#policy.onBreak(() => {
      this.#openUntilMs = Date.now() + this.#openMs;
    });
  }
}
