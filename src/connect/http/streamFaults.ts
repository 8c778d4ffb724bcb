import { saysTooLarge } from "../messageBudget.js";
import type { FetchEvents } from "./connectionFetch.js";

const PARSE_MS = 20;

/** Failures of a streamable HTTP connection that its transport does not report. */
export class StreamFaults implements FetchEvents {
  /** True once notifications no longer arrive. */
  isDeaf = false;
  /** True once the server has sent more requests than can be answered. */
  isFlooded = false;
  /** Called for a request that will never be answered. */
  onUnanswered: (requestId: string | number, reason?: string) => void = () => undefined;
  readonly #open = new Set<string | number>();
  /** Requests whose stream ended and may be resumed. */
  readonly #suspended = new Set<string | number>();

  onSent(requestId: string | number): void {
    this.#open.add(requestId);
  }

  answered(requestId: string | number): void {
    this.#open.delete(requestId);
    this.#suspended.delete(requestId);
  }

  onStreamEnd(requestId: string | number, isResumable: boolean, failure?: string): void {
    if (failure !== undefined && saysTooLarge(failure)) {
      this.#giveUp(requestId, failure);
      return;
    }
    // The last chunk may still be in the parser.
    setTimeout(() => {
      if (!this.#open.has(requestId)) return;
      if (isResumable) this.#suspended.add(requestId);
      else this.#giveUp(requestId);
    }, PARSE_MS).unref();
  }

  onResumeRefused(): void {
    for (const requestId of this.#suspended) this.#giveUp(requestId);
  }

  #giveUp(requestId: string | number, reason?: string): void {
    this.#suspended.delete(requestId);
    if (this.#open.delete(requestId)) this.onUnanswered(requestId, reason);
  }

  onStreamGivenUp(): void {
    this.isDeaf = true;
  }

  onFlood(): void {
    this.isFlooded = true;
  }
}
