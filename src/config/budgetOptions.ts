import * as z from "zod";

/** Time limits of a hub, in whole milliseconds. */
export interface TimeoutOptions extends AgentTimeoutOptions {
  /** Handshake and first tool list of a server together. @default 30_000 */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * One request that is not a tool call: a page of a list, a prompt, a resource.
   * @default 60_000
   */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * How long a tool call may stay silent; each progress notification restarts the time.
   * @default 60_000
   */
  readonly toolTimeoutMs?: number | undefined;
  /** Longest time of a tool call, whatever progress it reports. @default 600_000 */
  readonly maxToolTimeoutMs?: number | undefined;
  /** Longest time that `close()` takes. @default 5_000 */
  readonly closeTimeoutMs?: number | undefined;
  /** Wait before a failed server is tried again while the hub is in use. @default 60_000 */
  readonly retryFailedAfterMs?: number | undefined;
  /** How long an open circuit breaker refuses requests before it lets one try. @default 300_000 */
  readonly breakerOpenMs?: number | undefined;
  /** Oldest tool list in use of a server that does not announce changes. @default 300_000 */
  readonly toolListTtlMs?: number | undefined;
}

/** Time limits that an agent can set for itself, in whole milliseconds. */
export interface AgentTimeoutOptions {
  /**
   * How long the first model call waits for servers that are still connecting. 0 to 60,000.
   * @default 1_000
   */
  readonly startupDeadlineMs?: number | undefined;
  /**
   * How long `search_mcp_tools` waits for servers that are still connecting. 0 to 60,000.
   * @default 5_000
   */
  readonly searchWaitMs?: number | undefined;
  /** Longest time to read the mentioned resources of one message. 0 to 600,000. @default 10_000 */
  readonly mentionDeadlineMs?: number | undefined;
}

/** Sizes, in UTF-16 characters, and counts of a hub: whole numbers of at least 1 unless stated. */
export interface LimitOptions extends AgentLimitOptions {
  /** Characters of one result that reach the model. @default 100_000 */
  readonly maxResultChars?: number | undefined;
  /** Characters of one result kept in the artifact of its `ToolMessage`. @default 1_000_000 */
  readonly maxArtifactChars?: number | undefined;
  /** Requests in flight to one server; further ones wait. @default 16 */
  readonly maxConcurrentCalls?: number | undefined;
  /** Pages read of one list. @default 200 */
  readonly maxListPages?: number | undefined;
  /**
   * Decoded bytes of one message of a server, on every transport; a larger one fails its call.
   * @default 10_485_760
   */
  readonly maxMessageBytes?: number | undefined;
  /** Consecutive transport failures that open the circuit breaker of a server. @default 3 */
  readonly breakerFailures?: number | undefined;
}

/** Sizes and counts that an agent can set for itself. */
export interface AgentLimitOptions {
  /**
   * Characters of the listing in the system prompt, tags and newlines included. At least 300.
   * @default 2_000
   */
  readonly listingBudgetChars?: number | undefined;
  /**
   * Servers without `defer` are always loaded while all visible definitions stay under this. 0
   * always defers.
   * @default 10_000
   */
  readonly autoDeferChars?: number | undefined;
  /** Promoted tools bound at the same time; the least recently used leave first. @default 40 */
  readonly maxPromoted?: number | undefined;
  /** Characters of the definitions of promoted tools bound at the same time. @default 100_000 */
  readonly maxPromotedChars?: number | undefined;
  /** Characters of all results of one step that reach the model. @default 300_000 */
  readonly maxStepResultChars?: number | undefined;
  /** Characters of one resource that reach the model, tags included. @default 50_000 */
  readonly maxResourceChars?: number | undefined;
  /** Characters of all resources shown in a turn. @default 200_000 */
  readonly maxTurnResourceChars?: number | undefined;
  /** Resources a thread keeps; the one mentioned first leaves first. @default 32 */
  readonly maxCachedResources?: number | undefined;
}

/** Whole milliseconds of at least 1. */
export const positiveMs = z.number().int().positive();
/** A whole number of at least 1. */
export const positiveCount = z.number().int().positive();

const agentTimeoutShape = {
  startupDeadlineMs: z.number().int().min(0).max(60_000).optional(),
  searchWaitMs: z.number().int().min(0).max(60_000).optional(),
  mentionDeadlineMs: z.number().int().min(0).max(600_000).optional(),
};

const agentLimitShape = {
  listingBudgetChars: z.number().int().min(300).optional(),
  autoDeferChars: z.number().int().min(0).optional(),
  maxPromoted: positiveCount.optional(),
  maxPromotedChars: positiveCount.optional(),
  maxStepResultChars: positiveCount.optional(),
  maxResourceChars: positiveCount.optional(),
  maxTurnResourceChars: positiveCount.optional(),
  maxCachedResources: positiveCount.optional(),
};

/** Option groups `timeouts` and `limits` of an agent. */
export const agentBudgetShape = {
  timeouts: z.strictObject(agentTimeoutShape).optional(),
  limits: z.strictObject(agentLimitShape).optional(),
};

/** Option groups `timeouts` and `limits` of a hub. */
export const hubBudgetShape = {
  timeouts: z
    .strictObject({
      ...agentTimeoutShape,
      connectTimeoutMs: positiveMs.optional(),
      requestTimeoutMs: positiveMs.optional(),
      toolTimeoutMs: positiveMs.optional(),
      maxToolTimeoutMs: positiveMs.optional(),
      closeTimeoutMs: positiveMs.optional(),
      retryFailedAfterMs: positiveMs.optional(),
      breakerOpenMs: positiveMs.optional(),
      toolListTtlMs: positiveMs.optional(),
    })
    .optional(),
  limits: z
    .strictObject({
      ...agentLimitShape,
      maxResultChars: positiveCount.optional(),
      maxArtifactChars: positiveCount.optional(),
      maxConcurrentCalls: positiveCount.optional(),
      maxListPages: positiveCount.optional(),
      maxMessageBytes: positiveCount.optional(),
      breakerFailures: positiveCount.optional(),
    })
    .optional(),
};

/** The options without keys that are `undefined`, which count as left out. */
export function given<Value extends object>(
  options: Value | undefined,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
  return Object.fromEntries(
    Object.entries(options ?? {}).filter(([, value]) => value !== undefined),
  ) as never;
}
