/**
 * Every default of the package. Durations are in milliseconds (`Ms`), sizes in UTF-16 characters (`Chars`).
 */
export const DEFAULTS = Object.freeze({
  connectTimeoutMs: 30_000,
  startupDeadlineMs: 1_000,
  searchWaitMs: 5_000,
  requestTimeoutMs: 60_000,
  toolTimeoutMs: 60_000,
  maxToolTimeoutMs: 600_000,
  closeTimeoutMs: 5_000,
  retryFailedAfterMs: 60_000,
  maxConcurrentCalls: 16,
  maxConcurrentStdioConnects: 3,
  maxConcurrentRemoteConnects: 20,
  listingBudgetChars: 2_000,
  autoDeferChars: 10_000,
  maxPromoted: 40,
  maxPromotedChars: 100_000,
  maxResultChars: 100_000,
  maxHopResultChars: 300_000,
  maxArtifactChars: 1_000_000,
  largePinnedServerChars: 50_000,
  toolListTtlMs: 300_000,
  maxListPages: 200,
});
