import { rejectAfter } from "../../text/abort.js";

/** How long a search waits for a model, in milliseconds. */
const MODEL_WAIT_MS = 5_000;
/** How long a model that failed or stayed silent is left alone, in milliseconds. */
export const RETRY_MS = 30_000;

/** A model that a search can do without: it is waited for a short time, and left alone for a while after silence. */
export class OptionalModel {
  #silentAtMs = Number.NEGATIVE_INFINITY;

  /** True for a while after the model did not answer in time: asking again would only make the next search wait, too. */
  get isLeftAlone(): boolean {
    return Date.now() - this.#silentAtMs < RETRY_MS;
  }

  /**
   * Asks the model.
   *
   * @param what - Its name in the error.
   * @throws what the model throws, and an error when it does not answer in time.
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
