/** Default time limits, in milliseconds (option group `timeouts`). */
export const DEFAULT_TIMEOUTS = Object.freeze({
  connectTimeoutMs: 30_000,
  startupDeadlineMs: 1_000,
  searchWaitMs: 5_000,
  requestTimeoutMs: 60_000,
  toolTimeoutMs: 60_000,
  maxToolTimeoutMs: 600_000,
  mentionDeadlineMs: 10_000,
  closeTimeoutMs: 5_000,
  retryFailedAfterMs: 60_000,
  breakerOpenMs: 300_000,
  toolListTtlMs: 300_000,
});

/** Default sizes, in UTF-16 characters (`…Chars`), and counts (option group `limits`). */
export const DEFAULT_LIMITS = Object.freeze({
  listingBudgetChars: 2_000,
  autoDeferChars: 10_000,
  maxPromoted: 40,
  maxPromotedChars: 100_000,
  maxResultChars: 100_000,
  maxStepResultChars: 300_000,
  maxArtifactChars: 1_000_000,
  maxResourceChars: 50_000,
  maxTurnResourceChars: 200_000,
  maxCachedResources: 32,
  maxConcurrentCalls: 16,
  maxListPages: 200,
  maxMessageBytes: 10 * 1024 * 1024,
  breakerFailures: 3,
});

/**
 * Every default of the package. Durations are in milliseconds (`Ms`), sizes in UTF-16 characters
 * (`Chars`).
 */
export const DEFAULTS = Object.freeze({
  ...DEFAULT_TIMEOUTS,
  ...DEFAULT_LIMITS,
  reconnectWaits: 5,
  reconnectDelayMs: 1_000,
  maxConcurrentStdioConnects: 3,
  maxConcurrentRemoteConnects: 20,
  maxProviderTools: 1_000,
  largeAlwaysLoadedChars: 50_000,
});

/** Time limits, sizes and counts in force. */
export type Budgets = {
  readonly [Key in keyof typeof DEFAULT_TIMEOUTS | keyof typeof DEFAULT_LIMITS]: number;
};
