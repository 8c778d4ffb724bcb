import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import * as z from "zod";

import { consentSchema, toolFingerprintsSchema, transportsSchema, urlGuardSchema } from "./securityOptions.js";
import { keptStoreSchema, type KeptStore } from "./store.js";
import { policySchema, tierSchema } from "./policyOptions.js";
import { serverEntrySchema, wrappedServerSchema } from "./serverOptions.js";

const positiveMs = z.number().int().positive();
const positiveCount = z.number().int().positive();
const callback = z.custom<(...values: never[]) => unknown>((value) => typeof value === "function", "a function");

/** Options that the hub, a wrapped hub and (for its own agent) `mcpMiddleware` share. */
export const budgetShape = {
  /** Milliseconds the first model call of a thread waits for servers that are still connecting. 0 to 60,000. */
  startupDeadlineMs: z.number().int().min(0).max(60_000).optional(),
  /** Milliseconds `search_mcp_tools` waits for servers that are still connecting. 0 to 60,000. */
  searchWaitMs: z.number().int().min(0).max(60_000).optional(),
  /** Characters of the listing, tags and newlines included. At least 300. */
  listingBudgetChars: z.number().int().min(300).optional(),
  /** When all visible definitions together stay under this, servers without `defer` are always loaded. 0: always defer. */
  autoDeferChars: z.number().int().min(0).optional(),
  /** Promoted tools bound at the same time; the least recently used leave first. */
  maxPromoted: positiveCount.optional(),
  /** Characters of the definitions of promoted tools bound at the same time. */
  maxPromotedChars: positiveCount.optional(),
  /** Characters of all results of one step that reach the model. */
  maxStepResultChars: positiveCount.optional(),
  /** Milliseconds that reading the resources a message mentions may take. 0 to 600,000. */
  mentionDeadlineMs: z.number().int().min(0).max(600_000).optional(),
  /** Characters of one resource that reach the model. */
  maxResourceChars: positiveCount.optional(),
  /** Characters of all resources that are shown in a turn. */
  maxTurnResourceChars: positiveCount.optional(),
  /** Resources that a thread keeps; the one mentioned first leaves first. */
  maxCachedResources: positiveCount.optional(),
};

/** A tool that a search found. Texts are untrusted. */
export interface RerankCandidate {
  /** The bound name. */
  readonly name: string;
  readonly serverName: string;
  readonly toolName: string;
  readonly description: string;
}

/** Gives the bound names of candidates in the order that is wanted. */
export type Rerank = (query: string, candidates: readonly RerankCandidate[]) => readonly string[] | Promise<readonly string[]>;

/** Where results that are too large for the artifact are kept: a LangChain store, or what has its `mset`. */
export interface ResultStore {
  mset(entries: [string, unknown][]): Promise<void>;
}

/** Where last known catalogs are kept. */
export type SnapshotStore = KeptStore;

const sharedShape = {
  ...budgetShape,
  /** When servers are opened. Default `"background"`. */
  startup: z.enum(["background", "eager", "lazy"]).optional(),
  /** `defer` of every server that has none of its own. */
  defer: z.boolean().optional(),
  /** Globs on raw tool names of any server that are bound in every model call. */
  alwaysLoad: z.array(z.string().min(1)).optional(),
  /** Who may do what: rules, or a function that decides. Default: everything is allowed. */
  policy: policySchema.optional(),
  /** `permission` of every server that has none of its own. */
  permission: tierSchema.optional(),
  /** How bound names are made. `"mcp"`: `mcp__<server>__<tool>`; `"bare"`: the raw name; or a function. Default `"mcp"`. */
  names: z
    .union([
      z.enum(["mcp", "bare"]),
      z.custom<(serverName: string, toolName: string) => string>((value) => typeof value === "function", "a function"),
    ])
    .optional(),
  /** Searches also by meaning. Vectors are made in the background; until then, and when it fails, words alone decide. */
  embeddings: z
    .custom<EmbeddingsInterface>(
      (value) => typeof (value as EmbeddingsInterface | null)?.embedQuery === "function",
      "LangChain embeddings",
    )
    .optional(),
  /** Puts the tools that a search found in an order of its own; may leave some out. */
  rerank: z.custom<Rerank>((value) => typeof value === "function", "a function").optional(),
  /** Whether results are wrapped in `<mcp_response …>`. Default true. */
  envelope: z.boolean().optional(),
  /** `"silent"`: warnings that nobody listens to are not written to the console. Default `"console"`. */
  warnings: z.enum(["console", "silent"]).optional(),
  /** Milliseconds for handshake and first listing of a server together. */
  connectTimeoutMs: positiveMs.optional(),
  /** Milliseconds for a listing request. */
  requestTimeoutMs: positiveMs.optional(),
  /** Milliseconds a tool call may be silent; progress starts them anew. */
  toolTimeoutMs: positiveMs.optional(),
  /** Milliseconds after which a tool call ends whatever progress it reports. */
  maxToolTimeoutMs: positiveMs.optional(),
  /** Milliseconds that `close()` takes at the most. */
  closeTimeoutMs: positiveMs.optional(),
  /** Milliseconds after which a failed server is tried again while the hub is used. */
  retryFailedAfterMs: positiveMs.optional(),
  /** Tool calls in flight to one server at the same time. */
  maxConcurrentCalls: positiveCount.optional(),
  /** Characters of one result that reach the model. */
  maxResultChars: positiveCount.optional(),
  /** Characters of one result kept in the artifact. */
  maxArtifactChars: positiveCount.optional(),
  /** A LangChain store (`mset`) that gets results over `maxArtifactChars` whole. Default: none, they are lost. */
  resultStore: z
    .custom<ResultStore>((value) => typeof (value as ResultStore | null)?.mset === "function", "a LangChain store with mset()")
    .optional(),
  /** Transport failures in a row after which a server is left alone. */
  breakerFailures: positiveCount.optional(),
  /** Milliseconds it is left alone; then one call or connect may try. */
  breakerOpenMs: positiveMs.optional(),
  /**
   * Where the catalogs of servers are kept from one process to the next: a LangChain store, or the path of a file. A
   * server that is not opened yet is then listed as it was last known.
   */
  snapshotStore: keptStoreSchema.optional(),
  /** Milliseconds after which the tools of a server that does not announce changes are listed again. */
  toolListTtlMs: positiveMs.optional(),
  /** Pages of one listing that are read at the most. */
  maxListPages: positiveCount.optional(),
  /** What happens with tools whose text or arguments change. Default: the event `toolChanged` tells of it. */
  toolFingerprints: toolFingerprintsSchema.optional(),
  /** Which URLs of remote servers are followed. Of a wrapped client's servers the URLs are only warned about. */
  urlGuard: urlGuardSchema.optional(),
};

/** Options of {@link McpHub.wrap}: all of the hub but how servers are reached. */
export const wrapOptionsSchema = z.strictObject({
  ...sharedShape,
  /** Settings by server name. */
  servers: z.record(z.string(), wrappedServerSchema).optional(),
  /** As at the hub: a client's own hooks are not seen by a wrapper. */
  beforeToolCall: callback.optional(),
  /** As at the hub. */
  afterToolCall: callback.optional(),
});

/** Options of `McpHub.wrap(client, options)`. */
export type McpWrapOptions = z.input<typeof wrapOptionsSchema>;

/**
 * Options of `new McpHub(options)`. A superset of the options of `MultiServerMCPClient`; `docs/migrating.md` says
 * what each of those does here.
 */
export const hubOptionsSchema = z.strictObject({
  ...sharedShape,
  /** The servers by name. At least one. */
  mcpServers: z.record(z.string().min(1), serverEntrySchema),
  /** Looks up the `NAME` of a `${NAME}`; `undefined` means it is not known. Default: the environment. */
  secretResolver: z
    .custom<(name: string) => string | undefined | Promise<string | undefined>>(
      (value) => typeof value === "function",
      "a function",
    )
    .optional(),
  /** Kinds of transports that servers may have which are reached by configuration. Default: all. */
  transports: transportsSchema.optional(),
  /** Whether a person has to approve a stdio server before it is started first. Default: nobody is asked. */
  consent: consentSchema.optional(),
  /** The adapter's name for `toolTimeoutMs`. */
  defaultToolTimeout: positiveMs.optional(),
  /** `"throw"`: `connect()` throws when a server fails. A function is told of each failure. Default `"ignore"`. */
  onConnectionError: z
    .union([
      z.enum(["throw", "ignore"]),
      z.custom<(failure: { serverName: string; error: unknown }) => void>((value) => typeof value === "function", "a function"),
    ])
    .optional(),
  /** Told of log messages of servers. */
  onMessage: callback.optional(),
  /** Told of progress of tool calls. */
  onProgress: callback.optional(),
  /** Told of `notifications/initialized` of a server. */
  onInitialized: callback.optional(),
  /** Told of requests that a server cancels. */
  onCancelled: callback.optional(),
  /** Told when a server's prompts changed. */
  onPromptsListChanged: callback.optional(),
  /** Told when a server's resources changed. */
  onResourcesListChanged: callback.optional(),
  /** Told when a subscribed resource changed. */
  onResourcesUpdated: callback.optional(),
  /** Told when a server says that roots changed. */
  onRootsListChanged: callback.optional(),
  /** Told when a server's tools changed; the hub has then already begun to list them again. */
  onToolsListChanged: callback.optional(),
  /** Called inside the gate with a copy of the arguments; may return `{ args }` to replace them. */
  beforeToolCall: callback.optional(),
  /** Called inside the gate with the result; may return `{ result }` to replace its text. */
  afterToolCall: callback.optional(),
  /** Accepted and without effect. */
  throwOnLoadError: z.boolean().optional(),
  /** Accepted and without effect: `names` decides. */
  prefixToolNameWithServerName: z.boolean().optional(),
  /** Accepted and without effect: `names` decides. */
  additionalToolNamePrefix: z.string().optional(),
  /** Accepted and without effect. */
  useStandardContentBlocks: z.boolean().optional(),
});

/** Options of `new McpHub(options)`. */
export type McpHubOptions = z.input<typeof hubOptionsSchema>;
