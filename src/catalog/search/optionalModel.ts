import { rejectAfter } from "../../text/abort.js";

const MODEL_WAIT_MS = 5_000;
/** Pause after a model failed or timed out. */
export const RETRY_MS = 30_000;

/** A model that a search can do without: waits 5 s for an answer, and pauses after a timeout. */
export class OptionalModel {
  #silentAtMs = Number.NEGATIVE_INFINITY;

  /** True for 30 s after a timeout: asking again would only delay the next search. */
  get isLeftAlone(): boolean {
    return Date.now() - this.#silentAtMs < RETRY_MS;
  }

  /**
   * Asks the model, called `what` in the error.
   * @throws the model's error, or one when it does not answer in time.
   */
  async ask<Answer>(what: string, question: () => Answer | Promise<Answer>): Promise<Answer> {
    const askedAtMs = Date.now();
    try {
      return await rejectAfter(Promise.resolve(question()), MODEL_WAIT_MS, what);
    } catch (error) {
      if (Date.now() - askedAtMs >= MODEL_WAIT_MS) this.#silentAtMs = Date.now();
      throw error;
    }
  }
}
