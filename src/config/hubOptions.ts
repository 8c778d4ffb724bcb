import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import * as z from "zod";

import {
  hubBudgetShape,
  positiveMs,
  type LimitOptions,
  type TimeoutOptions,
} from "./budgetOptions.js";
import { policySchema, tierSchema, type PolicyOptions, type PolicyTier } from "./policyOptions.js";
import {
  securitySchema,
  wrapSecuritySchema,
  type SecurityOptions,
  type WrapSecurityOptions,
} from "./securityOptions.js";
import {
  serverEntrySchema,
  wrappedServerSchema,
  type McpServerEntry,
  type WrappedServerEntry,
} from "./serverOptions.js";
import { keptStoreSchema, type KeptStore } from "./store.js";

/** A tool that a search found. Its texts are untrusted. */
export interface RerankCandidate {
  /** The bound name. */
  readonly name: string;
  readonly serverName: string;
  readonly toolName: string;
  readonly description: string;
}

/** Returns the bound names of candidates in the wanted order; may leave some out. */
export type Rerank = (
  query: string,
  candidates: readonly RerankCandidate[],
) => readonly string[] | Promise<readonly string[]>;

/** How tools are searched. */
export interface SearchOptions {
  /**
   * Searches by meaning as well. Until vectors are made in the background, and when that fails,
   * words alone decide.
   */
  readonly embeddings?: EmbeddingsInterface | undefined;
  /** Reorders the tools that a search found; may leave some out. */
  readonly rerank?: Rerank | undefined;
}

/**
 * Keeps results that are too large for the artifact: a LangChain store, or anything with its
 * `mset`.
 */
export interface ResultStore {
  mset(entries: [string, unknown][]): Promise<void>;
}

/** Keeps last known catalogs: a LangChain store, or anything with its `mget` and `mset`. */
export type SnapshotStore = KeptStore;

/** Options of every hub, with its own servers or with a wrapped client. */
export interface SharedHubOptions {
  /**
   * Who may do what: rules `{ deny, ask, allow, default, decide, audit }`, or a function that
   * decides.
   * @default everything is allowed
   */
  readonly policy?: PolicyOptions | undefined;
  /** Tier of servers that set none. @default "open" */
  readonly tier?: PolicyTier | undefined;
  /**
   * `"background"`: servers connect at `connect()` or first use. `"eager"`: the first model call
   * waits for all. `"lazy"`: a server connects when a search or a call needs it.
   * @default "background"
   */
  readonly startup?: "background" | "eager" | "lazy" | undefined;
  /** `defer` of servers that set none. @default decided by `limits.autoDeferChars` */
  readonly defer?: boolean | undefined;
  /**
   * Globs on raw tool names of any server; matching tools are bound in every model call.
   * @default none
   */
  readonly alwaysLoad?: readonly string[] | undefined;
  /**
   * How bound names are made: `"mcp"` (`mcp__<server>__<tool>`), `"bare"` (the raw name) or a
   * function; always made legal and unique.
   * @default "mcp"
   */
  readonly names?: "mcp" | "bare" | ((serverName: string, toolName: string) => string) | undefined;
  /** Wraps results in `<mcp_response …>`, which marks them as untrusted. @default true */
  readonly envelope?: boolean | undefined;
  /** `"silent"`: warnings without a listener are not written to the console. @default "console" */
  readonly warnings?: "console" | "silent" | undefined;
  /** Time limits, in milliseconds. */
  readonly timeouts?: TimeoutOptions | undefined;
  /** Sizes and counts. */
  readonly limits?: LimitOptions | undefined;
  /** How tools are searched. @default by words alone */
  readonly search?: SearchOptions | undefined;
  /**
   * Keeps catalogs from one process to the next, so that a server is listed before it connects: a
   * LangChain store (`mget`, `mset`) or the path of a file.
   * @default none
   */
  readonly snapshotStore?: SnapshotStore | string | undefined;
  /**
   * A LangChain store (`mset`) that gets results over `limits.maxArtifactChars` whole.
   * @default none, they are lost
   */
  readonly resultStore?: ResultStore | undefined;
  /**
   * Called before a tool call that is not denied, with a copy of the arguments; `{ args }` replaces
   * them and is decided again, `{ headers }` are sent with this call. The adapter's hook.
   */
  readonly beforeToolCall?: ((...values: never[]) => unknown) | undefined;
  /**
   * Called with the result of a tool call; a text, `[content, artifact]`, a `ToolMessage` or `{
   * result }` replaces the text. The adapter's hook.
   */
  readonly afterToolCall?: ((...values: never[]) => unknown) | undefined;
}

/** Options of `McpHub.wrap(client, options)`: those of a hub except how to reach servers. */
export interface McpWrapOptions extends SharedHubOptions {
  /** Settings by server name. */
  readonly servers?: Record<string, WrappedServerEntry> | undefined;
  /** Which URLs are warned about, and how changed tools are handled. */
  readonly security?: WrapSecurityOptions | undefined;
}

/**
 * Options of `MultiServerMCPClient` that keep their meaning here; `docs/migrating.md` explains
 * each.
 */
export interface AdapterOptions {
  /** The adapter's name for `timeouts.toolTimeoutMs`. */
  readonly defaultToolTimeout?: number | undefined;
  /**
   * `"throw"`: `connect()` throws when a server fails. A function gets each failure.
   * @default "ignore"
   */
  readonly onConnectionError?:
    "throw" | "ignore" | ((failure: { serverName: string; error: unknown }) => void) | undefined;
  /** Called with log messages of servers; also event `log`. */
  readonly onMessage?: ((...values: never[]) => unknown) | undefined;
  /** Called with progress of tool calls; also event `progress`. */
  readonly onProgress?: ((...values: never[]) => unknown) | undefined;
  /** Called when `notifications/initialized` arrives from a server. */
  readonly onInitialized?: ((...values: never[]) => unknown) | undefined;
  /** Called when a server cancels a request. */
  readonly onCancelled?: ((...values: never[]) => unknown) | undefined;
  /** Called when a server's prompts changed. */
  readonly onPromptsListChanged?: ((...values: never[]) => unknown) | undefined;
  /** Called when a server's resources changed. */
  readonly onResourcesListChanged?: ((...values: never[]) => unknown) | undefined;
  /** Called when a subscribed resource changed; also event `resourceUpdated`. */
  readonly onResourcesUpdated?: ((...values: never[]) => unknown) | undefined;
  /** Called when a server says that roots changed. */
  readonly onRootsListChanged?: ((...values: never[]) => unknown) | undefined;
  /** Called when a server's tools changed; event `catalog` follows with the new tool list. */
  readonly onToolsListChanged?: ((...values: never[]) => unknown) | undefined;
  /**
   * Accepted without effect, with a warning: a tool that cannot be loaded is left out, the others
   * stay.
   */
  readonly throwOnLoadError?: boolean | undefined;
  /** Accepted without effect, with a warning: `names` decides. */
  readonly prefixToolNameWithServerName?: boolean | undefined;
  /** Accepted without effect, with a warning: `names` decides. */
  readonly additionalToolNamePrefix?: string | undefined;
  /** Accepted without effect, with a warning: results take the form that the model client takes. */
  readonly useStandardContentBlocks?: boolean | undefined;
}

/**
 * Options of `new McpHub(options)`: a superset of those of `MultiServerMCPClient`. A server's
 * setting wins over the hub's.
 */
export interface McpHubOptions extends SharedHubOptions, AdapterOptions {
  /** The servers by name. At least one. */
  readonly mcpServers: Record<string, McpServerEntry>;
  /**
   * Which programs and URLs are trusted, where secrets come from, and how changed tools are
   * handled.
   */
  readonly security?: SecurityOptions | undefined;
}

const callback = z
  .custom<(...values: never[]) => unknown>((value) => typeof value === "function", "a function")
  .optional();

const sharedShape = {
  policy: policySchema.optional(),
  tier: tierSchema.optional(),
  startup: z.enum(["background", "eager", "lazy"]).optional(),
  defer: z.boolean().optional(),
  alwaysLoad: z.array(z.string().min(1)).optional(),
  names: z
    .union([
      z.enum(["mcp", "bare"]),
      z.custom<(serverName: string, toolName: string) => string>(
        (value) => typeof value === "function",
        "a function",
      ),
    ])
    .optional(),
  envelope: z.boolean().optional(),
  warnings: z.enum(["console", "silent"]).optional(),
  ...hubBudgetShape,
  search: z
    .strictObject({
      embeddings: z
        .custom<EmbeddingsInterface>(
          (value) => typeof (value as EmbeddingsInterface | null)?.embedQuery === "function",
          "LangChain embeddings",
        )
        .optional(),
      rerank: z.custom<Rerank>((value) => typeof value === "function", "a function").optional(),
    })
    .optional(),
  snapshotStore: keptStoreSchema.optional(),
  resultStore: z
    .custom<ResultStore>(
      (value) => typeof (value as ResultStore | null)?.mset === "function",
      "a LangChain store with mset()",
    )
    .optional(),
  beforeToolCall: callback,
  afterToolCall: callback,
};

/** Checks {@link McpWrapOptions}. */
export const wrapOptionsSchema = z.strictObject({
  ...sharedShape,
  servers: z.record(z.string(), wrappedServerSchema).optional(),
  security: wrapSecuritySchema.optional(),
});

/** Checks {@link McpHubOptions}. */
export const hubOptionsSchema = z.strictObject({
  ...sharedShape,
  mcpServers: z.record(z.string().min(1), serverEntrySchema),
  security: securitySchema.optional(),
  defaultToolTimeout: positiveMs.optional(),
  onConnectionError: z
    .union([
      z.enum(["throw", "ignore"]),
      z.custom<(failure: { serverName: string; error: unknown }) => void>(
        (value) => typeof value === "function",
        "a function",
      ),
    ])
    .optional(),
  onMessage: callback,
  onProgress: callback,
  onInitialized: callback,
  onCancelled: callback,
  onPromptsListChanged: callback,
  onResourcesListChanged: callback,
  onResourcesUpdated: callback,
  onRootsListChanged: callback,
  onToolsListChanged: callback,
  throwOnLoadError: z.boolean().optional(),
  prefixToolNameWithServerName: z.boolean().optional(),
  additionalToolNamePrefix: z.string().optional(),
  useStandardContentBlocks: z.boolean().optional(),
});
