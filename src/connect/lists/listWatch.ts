import { backoffMs } from "../backoff.js";

export interface WatchedList {
  /** Lists again; true if anything changed. */
  list(): Promise<boolean>;
  canList(): boolean;
  /** Called when a background listing fails; the last good list stays. */
  onFailed(error: unknown): void;
}

const DEBOUNCE_MS = 16;
/** Longest pause between listings of a server that announces changes without end. */
const MAX_PAUSE_MS = 5_000;
const MAX_COST_PAUSE_MS = 60_000;
const QUIET_MS = 1_000;
/** A server may announce a change before its list shows it: listed once more after this time. */
const SECOND_LOOK_MS = 500;
/** Retries after a failed listing, with growing waits; after them only age triggers one. */
const MAX_RETRIES = 5;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Keeps a list fresh: lists again when it is announced, requested or old, one listing at a time.
 */
export class ListWatch {
  readonly #list: WatchedList;
  #listedAtMs = NEVER;
  #refreshing: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStale = false;
  #pauseMs = DEBOUNCE_MS;
  /** Milliseconds that the last listing took. */
  #costMs = 0;
  #failures = 0;

  constructor(list: WatchedList) {
    this.#list = list;
  }

  get isOutdated(): boolean {
    return this.#failures > 0;
  }

  /** True for a list of that age or older, or never listed. */
  isOlderThan(ttlMs: number): boolean {
    return Date.now() - this.#listedAtMs >= ttlMs;
  }

  expire(): void {
    this.#listedAtMs = NEVER;
  }

  /** Records a listing that was made elsewhere. */
  listed(): void {
    this.#listedAtMs = Date.now();
    this.#failures = 0;
  }

  /** Plans a listing for an announced change: one after a burst, few during an endless stream. */
  announced(): void {
    if (this.#timer !== undefined) return;
    const isQuiet = Date.now() - this.#listedAtMs > QUIET_MS + this.#pauseMs;
    // A listing that costs much is made rarely: it must not take more than a tenth of the time.
    const costMs = Math.min(MAX_COST_PAUSE_MS, this.#costMs * 10);
    this.#pauseMs = isQuiet
      ? DEBOUNCE_MS
      : Math.max(costMs, Math.min(MAX_PAUSE_MS, this.#pauseMs * 2));
    this.#later(this.#pauseMs, true);
  }

  /**
   * Lists again, or joins a running listing and repeats it.
   * @returns Whether anything changed.
   * @throws when listing fails.
   */
  async refresh(): Promise<boolean> {
    if (this.#refreshing !== undefined) {
      this.#isStale = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#untilFresh();
    try {
      return await this.#refreshing;
    } finally {
      this.#refreshing = undefined;
    }
  }

  /** Lists again in the background if the list is older. */
  refreshIfOlderThan(ttlMs: number): void {
    if (this.#refreshing !== undefined || !this.isOlderThan(ttlMs)) return;
    this.refresh().catch((error: unknown) => this.#list.onFailed(error));
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #later(ms: number, looksAgain: boolean): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#list.canList()) return;
      this.refresh().then(
        (isChanged) => {
          if (!isChanged && looksAgain && this.#timer === undefined && this.#list.canList())
            this.#later(SECOND_LOOK_MS, false);
        },
        (error: unknown) => {
          this.#list.onFailed(error);
          this.#failures += 1;
          if (this.#failures <= MAX_RETRIES && this.#timer === undefined)
            this.#later(backoffMs(this.#failures), false);
        },
      );
    }, ms);
    this.#timer.unref();
  }

  async #untilFresh(): Promise<boolean> {
    let isChanged = false;
    do {
      this.#isStale = false;
      const startedAtMs = Date.now();
      isChanged = (await this.#list.list()) || isChanged;
      this.#costMs = Date.now() - startedAtMs;
      this.listed();
    } while (this.#isStale);
    return isChanged;
  }
}
