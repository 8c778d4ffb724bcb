import { ReducedValue, StateSchema } from "@langchain/langgraph";
import * as z from "zod";

const promotionSchema = z.object({
  /** Content hash of the tool at promotion; a tool with another hash is not bound. */
  hash: z.string(),
  /** When it was first bound, as a counter over the thread's writes. */
  at: z.number().int(),
  /** Position among the tools of the same write. */
  order: z.number().int(),
  /** When it was last found or called, on the counter of `at`. */
  used: z.number().int(),
  /** True for a tool that is no longer promoted: removed from its server, or changed. */
  gone: z.boolean(),
});

/** Promotion of one tool. JSON. */
export type Promotion = z.output<typeof promotionSchema>;

const activationSchema = z.object({
  v: z.literal(1),
  promoted: z.record(z.string(), promotionSchema),
});

/** Promotions of a thread: public state key `mcpActivation`. JSON. */
export type McpActivation = z.output<typeof activationSchema>;

const noteSchema = z.object({
  /** Id of the message before it; `""` for the start of the thread. */
  after: z.string(),
  text: z.string(),
});

/**
 * A note about changed tools. Not a message of the thread: each request inserts it behind a
 * message.
 */
export type Note = z.output<typeof noteSchema>;

const sentServerSchema = z.object({
  /** Digest of the server's tools when the thread was last told about them. */
  digest: z.string(),
  /** Whether its tools are bound in every model call of this thread. */
  alwaysLoaded: z.boolean(),
  /** When its always loaded tools were first bound, on the counter of `Promotion.at`. */
  at: z.number().int(),
  /**
   * Always loaded tools in the order they were bound, while they are few; others are bound by
   * promotion.
   */
  names: z.array(z.string()).optional(),
});

const sentSchema = z.object({
  v: z.literal(1),
  /** Key of the agent's view; another key makes a new listing. */
  view: z.string(),
  /** The listing of this thread, unchanged in every model call. */
  listing: z.string(),
  /** Whether servers without their own `defer` are always loaded in this thread. */
  loadsUnset: z.boolean(),
  /** Servers that the listing calls still connecting. */
  pending: z.array(z.string()),
  /** By server; holds nothing per tool. */
  servers: z.record(z.string(), sentServerSchema),
  /** Our own bound tools, with when they were first bound. */
  synthetic: z.record(z.string(), z.number().int()),
  notes: z.array(noteSchema),
});

/** Disclosure to a thread: private state key `_mcpSent`. JSON, one writer. */
export type McpSent = z.output<typeof sentSchema>;

/** How to treat a call of an unbound tool, by tool call id. */
const unboundCallsSchema = z.record(
  z.string(),
  z.enum(["foreign", "repair", "suggest", "ambiguous", "deferred", "broken"]),
);

/** Private state key `_mcpUnbound`, replaced in each step. */
export type McpUnbound = z.output<typeof unboundCallsSchema>;

const signShape = {
  boundName: z.string(),
  /** Content hash of the tool; the answer is void for another hash. */
  toolHash: z.string(),
  /** Digest of the arguments to send. */
  digest: z.string(),
};

const askedSchema = z.record(
  z.string(),
  z.object({
    ...signShape,
    order: z.number().int(),
    request: z.object({
      operation: z.enum(["call", "invoke", "read", "list", "start"]),
      serverName: z.string(),
      target: z.string(),
      class: z.enum(["read", "write", "destructive"]),
      arguments: z.unknown(),
      reason: z.string(),
    }),
  }),
);

/**
 * A step's calls that wait for a person, by tool call id: private state key `_mcpAsked`, replaced
 * in each step. JSON.
 */
export type McpAsked = z.output<typeof askedSchema>;

const decisionsSchema = z.record(
  z.string(),
  z.object({
    ...signShape,
    /** `"refuse"`: the answer was unreadable, or nobody could be asked. */
    type: z.enum(["approve", "edit", "reject", "refuse"]),
    /** The person's words, or the reason of a refusal. */
    message: z.string().optional(),
    editedArguments: z.record(z.string(), z.unknown()).optional(),
    answeredBy: z.string().optional(),
  }),
);

/**
 * A person's answers, by tool call id: private state key `_mcpDecisions`, replaced in each step.
 * JSON.
 */
export type McpDecisions = z.output<typeof decisionsSchema>;

const wantedResourceSchema = z.object({ serverName: z.string(), uri: z.string() });

const typedSchema = z.object({
  v: z.literal(1),
  messageId: z.string().optional(),
  /** The prompt that the message invokes, with the arguments to send. */
  invocation: z
    .object({
      serverName: z.string(),
      promptName: z.string(),
      name: z.string(),
      arguments: z.record(z.string(), z.string()),
    })
    .optional(),
  mentioned: z.array(wantedResourceSchema),
  /** Number of mentions beyond the limit. */
  overflow: z.number().int(),
  wanted: z.array(wantedResourceSchema),
  /** Operations that need approval, by permission. */
  asked: askedSchema,
});

/** Typed input that waits for a person: private state key `_mcpTyped`; `null` without any. JSON. */
export type McpTyped = z.output<typeof typedSchema>;

const resourceSchema = z.object({
  serverName: z.string(),
  uri: z.string(),
  /**
   * Ids of the messages that mention it, oldest first. It is shown while one of them is in the
   * thread.
   */
  messageIds: z.array(z.string()),
  /** Its text in the prompt: `<MCP_RESOURCE …>` blocks. */
  block: z.string(),
  /** Precedes the block when it could not be read again. */
  failure: z.string().optional(),
  /** Images as `data:` URLs. */
  images: z.array(z.string()),
  mimeType: z.string().optional(),
  /** Whether only an error is shown. */
  isError: z.boolean(),
  /** Tells whether it changed since it was read. */
  mark: z.string(),
});

/** One resource that a thread mentions. JSON. */
export type ThreadResource = z.output<typeof resourceSchema>;

const resourcesSchema = z.object({
  v: z.literal(1),
  /** In order of first mention. */
  read: z.array(resourceSchema),
});

/** Resources that a thread mentions: private state key `_mcpResources`. JSON, one writer. */
export type McpResources = z.output<typeof resourcesSchema>;

const cachedResourceSchema = z.object({
  serverName: z.string(),
  uri: z.string(),
  mimeType: z.string().optional(),
  /** Characters in the prompt. */
  chars: z.number().int(),
  images: z.number().int(),
  isError: z.boolean(),
});

/**
 * A resource shown in a thread, for readers of the state: an element of the public key
 * `cachedMcpResources`. JSON.
 */
export type CachedMcpResource = z.output<typeof cachedResourceSchema>;

export const EMPTY_ACTIVATION: McpActivation = Object.freeze({ v: 1, promoted: Object.freeze({}) });

/**
 * Merges two writes of promotions, tool by tool. Higher `at` wins; at equal `at` present beats
 * gone, then lower `order`, then greater `hash`; `used` is the maximum. Commutative, associative
 * and idempotent, so parallel writers agree in any order.
 */
export function mergeActivation(current: McpActivation, next: McpActivation): McpActivation {
  const promoted: Record<string, Promotion> = { ...current.promoted };
  for (const [boundName, theirs] of Object.entries(next.promoted)) {
    const ours = Object.hasOwn(promoted, boundName) ? promoted[boundName] : undefined;
    promoted[boundName] = ours === undefined ? theirs : mergePromotion(ours, theirs);
  }
  return { v: 1, promoted: bounded(promoted) };
}

/** Entries of a thread: promotions that were used last, and of un-promoted tools the last ones. */
const MAX_PROMOTIONS = 1_000;
const MAX_GONE = 100;

/**
 * Bounds what tools with ever new names leave behind. The same for the same entries, in whatever
 * order they came.
 */
function bounded(promoted: Record<string, Promotion>): Record<string, Promotion> {
  const entries = Object.entries(promoted);
  if (entries.length <= MAX_GONE) return promoted;
  const newest = (isGone: boolean, most: number): [string, Promotion][] =>
    entries
      .filter(([, { gone }]) => gone === isGone)
      .sort(([nameA, a], [nameB, b]) => b.used - a.used || b.at - a.at || (nameA < nameB ? -1 : 1))
      .slice(0, most);
  const kept = new Set([...newest(false, MAX_PROMOTIONS), ...newest(true, MAX_GONE)]);
  return kept.size === entries.length
    ? promoted
    : Object.fromEntries(entries.filter((entry) => kept.has(entry)));
}

function mergePromotion(a: Promotion, b: Promotion): Promotion {
  const winner = isNewer(b, a) ? b : a;
  const used = Math.max(a.used, b.used);
  return winner.used === used ? winner : { ...winner, used };
}

function isNewer(a: Promotion, b: Promotion): boolean {
  if (a.at !== b.at) return a.at > b.at;
  if (a.gone !== b.gone) return b.gone;
  if (a.order !== b.order) return a.order < b.order;
  return a.hash > b.hash;
}

/** A thread's state, as this package reads it. */
export interface McpThreadState {
  readonly mcpActivation?: McpActivation | undefined;
  readonly _mcpSent?: McpSent | undefined;
  readonly _mcpUnbound?: McpUnbound | undefined;
  readonly _mcpAsked?: McpAsked | undefined;
  readonly _mcpDecisions?: McpDecisions | undefined;
  readonly _mcpTyped?: McpTyped | null | undefined;
  /** Programs that wait for a person, by server; `null` without any. */
  readonly _mcpConsents?: McpAsked | null | undefined;
  readonly _mcpResources?: McpResources | undefined;
  readonly cachedMcpResources?: readonly CachedMcpResource[] | undefined;
  readonly disabledMcpServers?: readonly string[] | undefined;
}

export type McpStateUpdate = {
  mcpActivation?: McpActivation;
  _mcpSent?: McpSent;
  _mcpUnbound?: McpUnbound;
  _mcpAsked?: McpAsked;
  _mcpDecisions?: McpDecisions;
  _mcpTyped?: McpTyped | null;
  _mcpConsents?: McpAsked | null;
  _mcpResources?: McpResources;
  cachedMcpResources?: CachedMcpResource[];
  disabledMcpServers?: string[];
};

/** State keys that only this package writes; removed from other tools' updates. */
export const PROTECTED_KEYS: readonly string[] = [
  "_mcpSent",
  "_mcpUnbound",
  "_mcpAsked",
  "_mcpDecisions",
  "_mcpTyped",
  "_mcpConsents",
  "_mcpResources",
  "disabledMcpServers",
  "cachedMcpResources",
];

function lastWrite<Value>(schema: z.ZodType<Value>): ReducedValue<Value, Value> {
  return new ReducedValue<Value, Value>(schema, {
    inputSchema: schema,
    reducer: (_current, next) => next,
  });
}

/**
 * State fields of a thread for `createAgent` and `StateGraph`. Callers cannot set keys that begin
 * with `_`.
 */
export const mcpStateSchema = new StateSchema({
  mcpActivation: new ReducedValue(activationSchema.default(EMPTY_ACTIVATION), {
    inputSchema: activationSchema.default(EMPTY_ACTIVATION),
    reducer: mergeActivation,
  }),
  // Last write wins: a middleware that calls the model twice in a step makes two.
  _mcpSent: lastWrite(sentSchema.optional()),
  _mcpUnbound: lastWrite(unboundCallsSchema.optional()),
  _mcpAsked: lastWrite(askedSchema.optional()),
  _mcpDecisions: lastWrite(decisionsSchema.optional()),
  _mcpTyped: lastWrite(typedSchema.nullish()),
  _mcpConsents: lastWrite(askedSchema.nullish()),
  _mcpResources: lastWrite(resourcesSchema.optional()),
  /** Attached resources, for user interfaces. Never read here; the prompt uses `_mcpResources`. */
  cachedMcpResources: lastWrite(z.array(cachedResourceSchema).optional()),
  /** Servers that this thread does not use. */
  disabledMcpServers: lastWrite(z.array(z.string()).optional()),
});
