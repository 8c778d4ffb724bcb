import { ReducedValue, StateSchema } from "@langchain/langgraph";
import * as z from "zod";

/** One promoted tool of a thread. */
const promotionSchema = z.object({
  /** Content hash of the tool when it was promoted; another one means another tool, which is not bound. */
  hash: z.string(),
  /** When it was bound first, counted over all writes of the thread. */
  at: z.number().int(),
  /** Position among the tools of the same write. */
  order: z.number().int(),
  /** When it was found or called last, on the same count as `at`. */
  used: z.number().int(),
  /** True for a tool that was un-promoted: removed from its server, or changed. */
  gone: z.boolean(),
});

/** Promotion of one tool. JSON. */
export type Promotion = z.output<typeof promotionSchema>;

const activationSchema = z.object({
  v: z.literal(1),
  /** Promotions by bound name. */
  promoted: z.record(z.string(), promotionSchema),
});

/** Promotions of a thread: public state key `mcpActivation`. JSON. */
export type McpActivation = z.output<typeof activationSchema>;

const noteSchema = z.object({
  /** Id of the message it follows; `""` puts it before all messages. */
  after: z.string(),
  text: z.string(),
});

/** A note about changed tools. Not a message of the thread: put into each request behind the message it follows. */
export type Note = z.output<typeof noteSchema>;

const sentServerSchema = z.object({
  /** Digest of the server's tools when the thread was last told about them. */
  digest: z.string(),
  /** Whether its tools are bound in every model call of this thread. */
  alwaysLoaded: z.boolean(),
  /** When its always loaded tools were bound first, on the count of `Promotion.at`. */
  at: z.number().int(),
  /** Its always loaded tools in the order they were bound, while they are few; others are bound by promotion. */
  names: z.array(z.string()).optional(),
});

const sentSchema = z.object({
  v: z.literal(1),
  /** Key of what the agent may see; another one makes the listing anew. */
  view: z.string(),
  /** The listing as this thread was shown it, sent unchanged in every model call. */
  listing: z.string(),
  /** Whether servers without `defer` of their own are always loaded in this thread. */
  loadsUnset: z.boolean(),
  /** Servers that the listing named as still connecting. */
  pending: z.array(z.string()),
  /** What the thread was told, by server. Nothing per tool. */
  servers: z.record(z.string(), sentServerSchema),
  /** Our own tools that are bound in this thread, with when they were bound first. */
  synthetic: z.record(z.string(), z.number().int()),
  notes: z.array(noteSchema),
});

/** What a thread was shown: private state key `_mcpSent`. JSON, one writer. */
export type McpSent = z.output<typeof sentSchema>;

/** How a call of a tool that was not bound is to be taken, by tool call id. */
const unboundCallsSchema = z.record(z.string(), z.enum(["foreign", "repair", "suggest", "ambiguous", "deferred"]));

/** Private state key `_mcpUnbound`, replaced each step. */
export type McpUnbound = z.output<typeof unboundCallsSchema>;

const signShape = {
  boundName: z.string(),
  /** Content hash of the tool: an answer is for the tool as it was asked about. */
  toolHash: z.string(),
  /** Digest of the arguments that would be sent. */
  digest: z.string(),
};

const askedSchema = z.record(
  z.string(),
  z.object({
    ...signShape,
    /** Position among the calls of the step. */
    order: z.number().int(),
    request: z.object({
      operation: z.enum(["call", "invoke", "read", "list", "start"]),
      serverName: z.string(),
      /** Tool, prompt, URI or command. */
      target: z.string(),
      class: z.enum(["read", "write", "destructive"]),
      arguments: z.unknown(),
      reason: z.string(),
    }),
  }),
);

/** The calls of a step that wait for a person, by tool call id: private state key `_mcpAsked`, replaced each step. JSON. */
export type McpAsked = z.output<typeof askedSchema>;

const decisionsSchema = z.record(
  z.string(),
  z.object({
    ...signShape,
    /** `"refuse"`: the answer could not be read, or nobody could be asked. */
    type: z.enum(["approve", "edit", "reject", "refuse"]),
    /** A person's words, or why it was refused. */
    message: z.string().optional(),
    editedArguments: z.record(z.string(), z.unknown()).optional(),
    answeredBy: z.string().optional(),
  }),
);

/** What a person answered, by tool call id: private state key `_mcpDecisions`, replaced each step. JSON. */
export type McpDecisions = z.output<typeof decisionsSchema>;

const wantedResourceSchema = z.object({ serverName: z.string(), uri: z.string() });

const typedSchema = z.object({
  v: z.literal(1),
  /** Id of the message. */
  messageId: z.string().optional(),
  /** The prompt that it invokes, with what would be sent. */
  invocation: z
    .object({ serverName: z.string(), promptName: z.string(), name: z.string(), arguments: z.record(z.string(), z.string()) })
    .optional(),
  /** The resources it names. */
  mentioned: z.array(wantedResourceSchema),
  /** How many more it names than can be kept. */
  overflow: z.number().int(),
  /** The resources that have to be read. */
  wanted: z.array(wantedResourceSchema),
  /** What of this a person has to be asked, by permission. */
  asked: askedSchema,
});

/** What a person typed that waits for an answer: private state key `_mcpTyped`; `null` when nothing does. JSON. */
export type McpTyped = z.output<typeof typedSchema>;

const resourceSchema = z.object({
  serverName: z.string(),
  uri: z.string(),
  /** Ids of the messages that name it, the first one first. It is shown while one of them is in the thread. */
  messageIds: z.array(z.string()),
  /** Its text as it stands in a prompt: `<MCP_RESOURCE …>` blocks. */
  block: z.string(),
  /** A block that stands before it when it could not be read again. */
  failure: z.string().optional(),
  /** Its images, as `data:` URLs. */
  images: z.array(z.string()),
  mimeType: z.string().optional(),
  /** Whether it is shown as an error alone. */
  isError: z.boolean(),
  /** Tells whether it changed since it was read. */
  mark: z.string(),
});

/** One resource that a thread mentions. JSON. */
export type ThreadResource = z.output<typeof resourceSchema>;

const resourcesSchema = z.object({
  v: z.literal(1),
  /** In the order of first mention. */
  read: z.array(resourceSchema),
});

/** The resources that a thread mentions: private state key `_mcpResources`. JSON, one writer. */
export type McpResources = z.output<typeof resourcesSchema>;

const cachedResourceSchema = z.object({
  serverName: z.string(),
  uri: z.string(),
  mimeType: z.string().optional(),
  /** Characters it takes in the prompt. */
  chars: z.number().int(),
  /** Number of its images. */
  images: z.number().int(),
  isError: z.boolean(),
});

/** A resource that is shown in a thread, for readers of the state: an element of the public key `cachedMcpResources`. JSON. */
export type CachedMcpResource = z.output<typeof cachedResourceSchema>;

/** No promotions. */
export const EMPTY_ACTIVATION: McpActivation = Object.freeze({ v: 1, promoted: Object.freeze({}) });

/**
 * Merges two writes of promotions, tool by tool.
 *
 * Higher `at` wins; at equal `at` present beats gone, then the lower `order`, then the greater `hash`; `used` is the
 * greater of both. Commutative, associative and idempotent, so parallel writers agree in any order.
 */
export function mergeActivation(current: McpActivation, next: McpActivation): McpActivation {
  const promoted: Record<string, Promotion> = { ...current.promoted };
  for (const [boundName, theirs] of Object.entries(next.promoted)) {
    const ours = Object.hasOwn(promoted, boundName) ? promoted[boundName] : undefined;
    promoted[boundName] = ours === undefined ? theirs : mergePromotion(ours, theirs);
  }
  return { v: 1, promoted };
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

/** The state of a thread as the functions of this package read it. */
export interface McpThreadState {
  readonly mcpActivation?: McpActivation | undefined;
  readonly _mcpSent?: McpSent | undefined;
  readonly _mcpUnbound?: McpUnbound | undefined;
  readonly _mcpAsked?: McpAsked | undefined;
  readonly _mcpDecisions?: McpDecisions | undefined;
  readonly _mcpTyped?: McpTyped | null | undefined;
  /** Programs that wait for a person, by server; `null` when none does. */
  readonly _mcpConsents?: McpAsked | null | undefined;
  readonly _mcpResources?: McpResources | undefined;
  readonly cachedMcpResources?: readonly CachedMcpResource[] | undefined;
  readonly disabledMcpServers?: readonly string[] | undefined;
}

/** A change of the state of a thread. */
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

/** State keys that only this package writes; they are taken out of what other tools return. */
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
  return new ReducedValue<Value, Value>(schema, { inputSchema: schema, reducer: (_current, next) => next });
}

/** State fields of a thread for `createAgent` and `StateGraph`. Keys that begin with `_` cannot be set by a caller. */
export const mcpStateSchema = new StateSchema({
  mcpActivation: new ReducedValue(activationSchema.default(EMPTY_ACTIVATION), {
    inputSchema: activationSchema.default(EMPTY_ACTIVATION),
    reducer: mergeActivation,
  }),
  // The later write wins: a middleware that calls the model twice in one step makes two.
  _mcpSent: lastWrite(sentSchema.optional()),
  _mcpUnbound: lastWrite(unboundCallsSchema.optional()),
  _mcpAsked: lastWrite(askedSchema.optional()),
  _mcpDecisions: lastWrite(decisionsSchema.optional()),
  _mcpTyped: lastWrite(typedSchema.nullish()),
  _mcpConsents: lastWrite(askedSchema.nullish()),
  _mcpResources: lastWrite(resourcesSchema.optional()),
  /** What is attached, for user interfaces. Never read here: what enters the prompt is in `_mcpResources`. */
  cachedMcpResources: lastWrite(z.array(cachedResourceSchema).optional()),
  /** Names of servers that this thread does not use. */
  disabledMcpServers: lastWrite(z.array(z.string()).optional()),
});
