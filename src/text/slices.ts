/** Longest time at a stretch, in milliseconds, before other work has its turn. */
const SLICE_MS = 20;

/** Long work as a generator: each `yield` is a place where it may pause. */
export type Steps<Result> = Generator<void, Result, void>;

/** Does long work with pauses, in which all else goes on. */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  let startedAt = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (performance.now() - startedAt < SLICE_MS) continue;
    await nextTurn();
    startedAt = performance.now();
  }
}

/** Resolves at the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Does the same work without a pause. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/**
 * Notices when a stream takes all the time: its pieces may come one after another without a turn
 * of the event loop.
 */
export class TurnClock {
  #startedAt: number | undefined;

  /** Begins to count; a turn of the event loop ends it. */
  begin(): void {
    if (this.#startedAt !== undefined) return;
    this.#startedAt = performance.now();
    setImmediate(() => {
      this.#startedAt = undefined;
    });
  }

  /** True when the pieces since the last turn have taken too long. */
  get isOver(): boolean {
    return this.#startedAt !== undefined && performance.now() - this.#startedAt > SLICE_MS;
  }

  /** Pauses a stream until the next turn, when its pieces have taken too long. */
  restIfOver(stream: { pause(): unknown; resume(): unknown }): void {
    if (!this.isOver) return;
    stream.pause();
    setImmediate(() => stream.resume());
  }
}
