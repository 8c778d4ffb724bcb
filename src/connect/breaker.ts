import type { CircuitBreakerPolicy } from "cockatiel";

/** The result of an attempt, or its error and whether that counts as a failure of the server. */
export type Outcome<Value> =
  { readonly value: Value } | { readonly error: unknown; readonly isFailure: boolean };

/**
 * A circuit breaker: after some consecutive failures it refuses attempts for a while, then lets one
 * probe through.
 */
export class Breaker {
  readonly #failures: number;
  readonly #openMs: number;
  /** Made with the first attempt: `cockatiel` is loaded when it is needed. */
  #policy: CircuitBreakerPolicy | undefined;
  #openUntilMs = 0;

  constructor(failures: number, openMs: number) {
    this.#failures = failures;
    this.#openMs = openMs;
  }

  /**
   * When the next attempt may be made, in milliseconds since 1970; `undefined` unless the breaker
   * is open.
   */
  get openUntilMs(): number | undefined {
    return Date.now() < this.#openUntilMs ? this.#openUntilMs : undefined;
  }

  /**
   * Runs an attempt.
   * @throws `openError()` while the breaker is open, or the error of the outcome.
   */
  async execute<Value>(
    attempt: () => Promise<Outcome<Value>>,
    openError: (untilMs: number | undefined) => Error,
  ): Promise<Value> {
    const policy = this.#policy ?? (await this.#makePolicy());
    const outcome = await policy.execute(attempt).catch((error: unknown) => {
      throw error instanceof Error && "isBrokenCircuitError" in error
        ? openError(this.openUntilMs)
        : error;
    });
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** Forgets all failures. */
  reset(): void {
    this.#policy = undefined;
    this.#openUntilMs = 0;
  }

  async #makePolicy(): Promise<CircuitBreakerPolicy> {
    const { circuitBreaker, ConsecutiveBreaker, handleWhenResult } = await import("cockatiel");
    if (this.#policy !== undefined) return this.#policy;
    const failed = handleWhenResult(
      (outcome) => (outcome as Partial<{ isFailure: boolean }>).isFailure === true,
    );
    const policy = circuitBreaker(failed, {
      halfOpenAfter: this.#openMs,
      breaker: new ConsecutiveBreaker(this.#failures),
    });
    policy.onBreak(() => (this.#openUntilMs = Date.now() + this.#openMs));
    policy.onReset(() => (this.#openUntilMs = 0));
    return (this.#policy = policy);
  }
}
