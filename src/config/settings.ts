import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import type * as z from "zod";

import { McpConfigError } from "../errors.js";
import { DEFAULTS } from "./defaults.js";
import { matchGlobs } from "../text/globs.js";
import {
  consentSettings,
  toolFingerprintSettings,
  urlGuardSettings,
  type ConsentSettings,
  type ToolFingerprintSettings,
  type UrlGuardSettings,
} from "./securityOptions.js";
import {
  hubOptionsSchema,
  wrapOptionsSchema,
  type McpHubOptions,
  type McpWrapOptions,
  type Rerank,
  type ResultStore,
  type SnapshotStore,
} from "./hubOptions.js";
import { nearest } from "../text/nearest.js";
import type { PolicyOptions } from "./policyOptions.js";
import { serverPolicySettings, canAsk, type ServerPolicySettings } from "./policySettings.js";
import { parseOptions } from "./parseOptions.js";
import type { serverEntrySchema, McpServerEntry, WrappedServerEntry } from "./serverOptions.js";
import { transportSettings, type TransportSettings } from "./transport.js";
import { environmentResolver, type SecretResolver } from "./variables.js";

/** One server's complete settings. */
export interface ServerSettings {
  readonly serverName: string;
  /** `undefined` for a server of a wrapped client: its owner opens it. */
  readonly transport: TransportSettings | undefined;
  readonly enabled: boolean;
  readonly description: string | undefined;
  readonly category: string | undefined;
  readonly tags: readonly string[];
  readonly keywords: readonly string[];
  readonly toolKeywords: Readonly<Record<string, readonly string[]>>;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly defer: boolean | undefined;
  readonly isAlwaysLoaded: (toolName: string) => boolean;
  readonly isOffered: (toolName: string) => boolean;
  readonly govern: ServerPolicySettings;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly toolTimeoutMs: number;
  readonly maxToolTimeoutMs: number;
  readonly maxConcurrentCalls: number;
  readonly maxResultChars: number;
  /** How a lost connection is opened again by itself; `undefined`: not at all. */
  readonly reconnect: ReconnectSettings | undefined;
  /** Whether a call of the tool may be made twice. */
  readonly isIdempotent: (toolName: string) => boolean;
}

/** How a lost connection is opened again by itself. */
export interface ReconnectSettings {
  /** Waits between attempts at the most; the first attempt is made at once. */
  readonly waits: number;
  /** Milliseconds of the first wait. */
  readonly delayMs: number;
}

/** Budgets of one agent: the hub's, or what its middleware says instead. */
export interface Budgets {
  readonly startupDeadlineMs: number;
  readonly searchWaitMs: number;
  readonly listingBudgetChars: number;
  readonly autoDeferChars: number;
  readonly maxPromoted: number;
  readonly maxPromotedChars: number;
  readonly maxStepResultChars: number;
  readonly mentionDeadlineMs: number;
  readonly maxResourceChars: number;
  readonly maxTurnResourceChars: number;
  readonly maxCachedResources: number;
}

/** Callbacks of the adapter's configuration. */
export type AdapterCallbacks = Partial<
  Pick<
    z.output<typeof hubOptionsSchema>,
    | "onMessage"
    | "onProgress"
    | "onInitialized"
    | "onCancelled"
    | "onPromptsListChanged"
    | "onResourcesListChanged"
    | "onResourcesUpdated"
    | "onRootsListChanged"
    | "onToolsListChanged"
    | "beforeToolCall"
    | "afterToolCall"
  >
>;

/** A hub's complete settings. */
export interface HubSettings {
  readonly servers: ReadonlyMap<string, ServerSettings>;
  /** The rules the hub was made with. */
  readonly policy: PolicyOptions | undefined;
  /** Whether anything was written that can ask or deny. */
  readonly canAsk: boolean;
  readonly startup: "background" | "eager" | "lazy";
  readonly names: "mcp" | "bare" | ((serverName: string, toolName: string) => string);
  readonly envelope: boolean;
  readonly embeddings: EmbeddingsInterface | undefined;
  readonly rerank: Rerank | undefined;
  readonly warnings: "console" | "silent";
  readonly budgets: Budgets;
  readonly closeTimeoutMs: number;
  readonly retryFailedAfterMs: number;
  readonly breakerFailures: number;
  readonly breakerOpenMs: number;
  /** A store, or the path of a file. */
  readonly snapshotStore: SnapshotStore | string | undefined;
  readonly maxArtifactChars: number;
  readonly resultStore: ResultStore | undefined;
  readonly toolListTtlMs: number;
  readonly maxListPages: number;
  readonly urlGuard: UrlGuardSettings;
  readonly toolFingerprints: ToolFingerprintSettings;
  /** `undefined`: programs are started unasked. */
  readonly consent: ConsentSettings | undefined;
  readonly secretResolver: SecretResolver;
  readonly onConnectionError: "throw" | "ignore" | ((failure: { serverName: string; error: unknown }) => void);
  readonly callbacks: AdapterCallbacks;
  /** Options that were written and do nothing, with the reason. Warned about once. */
  readonly withoutEffect: readonly { readonly option: string; readonly reason: string }[];
}

const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  throwOnLoadError: "a tool that cannot be loaded is left out with a warning, the rest stays",
  prefixToolNameWithServerName: "the option `names` decides how tools are named",
  additionalToolNamePrefix: "the option `names` decides how tools are named",
  useStandardContentBlocks: "results are put into the form that the model client takes",
};

const OUTPUT_HANDLING =
  '"outputHandling" is not supported: text goes to the model and everything else stays in the artifact of the ToolMessage. Remove it and read `message.artifact`';

/**
 * Checks and completes the options of `new McpHub(options)`.
 *
 * @throws {McpConfigError} for unknown or wrong options, and for options that contradict each other.
 */
export function resolveHubOptions(options: McpHubOptions | Record<string, McpServerEntry>): HubSettings {
  const written = withServers(options);
  refuseOutputHandling(written);
  // The schema would drop it without a word.
  if (Object.hasOwn(written.mcpServers ?? {}, "__proto__")) {
    throw new McpConfigError('McpHub options: a server cannot be called "__proto__". Rename it.');
  }
  refuseLostOverrides(written.mcpServers);
  const parsed = parseOptions(hubOptionsSchema, written, "McpHub options");
  const names = Object.keys(parsed.mcpServers);
  if (names.length === 0) {
    throw new McpConfigError('McpHub options: "mcpServers" is empty. Give at least one server.');
  }
  const servers = new Map<string, ServerSettings>();
  for (const [serverName, entry] of Object.entries(parsed.mcpServers)) {
    servers.set(serverName, serverSettings(serverName, entry, transportSettings(serverName, entry, parsed.transports), parsed));
  }
  return {
    ...sharedSettings(parsed),
    // Who has to be asked about a program is asked by the same hook.
    canAsk: canAsk(parsed, Object.values(parsed.mcpServers)) || parsed.consent !== undefined,
    consent: consentSettings(parsed.consent),
    servers,
    secretResolver: parsed.secretResolver ?? environmentResolver,
    onConnectionError: parsed.onConnectionError ?? "ignore",
    callbacks: parsed,
    withoutEffect: [
      ...Object.entries(WITHOUT_EFFECT)
        .filter(([option]) => parsed[option as keyof typeof parsed] !== undefined)
        .map(([option, reason]) => ({ option, reason })),
      ...Object.entries(parsed.mcpServers)
        .filter(([, { encoding }]) => encoding !== undefined)
        .map(([serverName]) => ({ option: `mcpServers.${serverName}.encoding`, reason: "MCP messages are UTF-8" })),
    ],
  };
}

/**
 * Checks and completes the options of `McpHub.wrap(client, options)`.
 *
 * @param owned - The servers of the wrapped client, as its configuration has them.
 * @param defaultToolTimeout - That of its configuration; it counts where the options say nothing.
 * @throws {McpConfigError} for unknown or wrong options, and for a server the client does not have.
 */
export function resolveWrapOptions(
  options: McpWrapOptions,
  owned: Readonly<Record<string, unknown>>,
  defaultToolTimeout?: unknown,
): HubSettings {
  refuseLostOverrides(options.servers);
  const parsed = parseOptions(wrapOptionsSchema, options, "McpHub.wrap options");
  const serverNames = Object.keys(owned);
  for (const serverName of Object.keys(parsed.servers ?? {})) {
    if (!serverNames.includes(serverName)) {
      throw new McpConfigError(
        `McpHub.wrap options: "servers.${serverName}" is not a server of the client. It has: ${serverNames.join(", ")}.`,
        { serverName },
      );
    }
  }
  const servers = new Map<string, ServerSettings>();
  for (const serverName of serverNames) {
    const timeouts = [
      parsed.toolTimeoutMs,
      (owned[serverName] as { readonly defaultToolTimeout?: unknown } | null)?.defaultToolTimeout,
      defaultToolTimeout,
    ];
    const timeout = timeouts.find((value): value is number => typeof value === "number");
    const entry = { ...(timeout === undefined ? {} : { defaultToolTimeout: timeout }), ...parsed.servers?.[serverName] };
    servers.set(serverName, serverSettings(serverName, entry, undefined, parsed));
  }
  return {
    ...sharedSettings(parsed),
    canAsk: canAsk(parsed, Object.values(parsed.servers ?? {})),
    consent: undefined,
    servers,
    secretResolver: environmentResolver,
    onConnectionError: "ignore",
    callbacks: parsed,
    withoutEffect: [],
  };
}

/** Completes the budgets an agent's middleware gives with those of its hub. */
export function resolveBudgets(own: Partial<{ [Key in keyof Budgets]: Budgets[Key] | undefined }>, base: Budgets): Budgets {
  return {
    startupDeadlineMs: own.startupDeadlineMs ?? base.startupDeadlineMs,
    searchWaitMs: own.searchWaitMs ?? base.searchWaitMs,
    listingBudgetChars: own.listingBudgetChars ?? base.listingBudgetChars,
    autoDeferChars: own.autoDeferChars ?? base.autoDeferChars,
    maxPromoted: own.maxPromoted ?? base.maxPromoted,
    maxPromotedChars: own.maxPromotedChars ?? base.maxPromotedChars,
    maxStepResultChars: own.maxStepResultChars ?? base.maxStepResultChars,
    mentionDeadlineMs: own.mentionDeadlineMs ?? base.mentionDeadlineMs,
    maxResourceChars: own.maxResourceChars ?? base.maxResourceChars,
    maxTurnResourceChars: own.maxTurnResourceChars ?? base.maxTurnResourceChars,
    maxCachedResources: own.maxCachedResources ?? base.maxCachedResources,
  };
}

/** Accepts the bare record of servers that `MultiServerMCPClient` takes, too. */
function withServers(options: McpHubOptions | Record<string, McpServerEntry>): McpHubOptions {
  if (typeof options !== "object" || options === null) {
    throw new McpConfigError("McpHub options must be an object such as { mcpServers: { … } }.");
  }
  if ("mcpServers" in options) return options as McpHubOptions;
  const entries = Object.entries(options) as [string, unknown][];
  const isServer = (entry: unknown): boolean =>
    typeof entry === "object" && entry !== null && ("command" in entry || "url" in entry);
  if (entries.length > 0 && entries.every(([, entry]) => isServer(entry))) return { mcpServers: options };
  const misspelt = entries.map(([key]) => key).find((key) => key === "servers" || nearest(key, ["mcpServers"]) !== undefined);
  const odd = entries.find(([, entry]) => !isServer(entry))?.[0];
  const hint =
    misspelt !== undefined
      ? `"${misspelt}" was given; did you mean "mcpServers"?`
      : odd !== undefined && entries.some(([, entry]) => isServer(entry))
        ? `A bare record of servers needs "command" or "url" in every entry; "${odd}" has neither.`
        : 'Give the servers by name: { mcpServers: { name: { command: "…" } } }.';
  throw new McpConfigError(`McpHub options: "mcpServers" is missing. ${hint}`);
}

/** The schema would drop such a key without a word, and with it what it denies. */
function refuseLostOverrides(servers: Readonly<Record<string, WrappedServerEntry>> | undefined): void {
  for (const [serverName, entry] of Object.entries(servers ?? {})) {
    const { overrides } = entry ?? {};
    if (typeof overrides !== "object" || overrides === null || !Object.hasOwn(overrides, "__proto__")) continue;
    throw new McpConfigError(
      `Server "${serverName}": "overrides" cannot have the key "__proto__". Write a rule: "mcp:call:${serverName}:__proto__".`,
      { serverName },
    );
  }
}

function refuseOutputHandling(options: McpHubOptions): void {
  if ((options as Record<string, unknown>)["outputHandling"] !== undefined) {
    throw new McpConfigError(`McpHub options: ${OUTPUT_HANDLING}.`);
  }
  for (const [serverName, entry] of Object.entries(options.mcpServers ?? {})) {
    if ((entry as Record<string, unknown> | null)?.["outputHandling"] !== undefined) {
      throw new McpConfigError(`Server "${serverName}": ${OUTPUT_HANDLING}.`, { serverName });
    }
  }
}

type SharedOptions = z.output<typeof hubOptionsSchema> | z.output<typeof wrapOptionsSchema>;

function serverSettings(
  serverName: string,
  entry: WrappedServerEntry & Pick<z.output<typeof serverEntrySchema>, "restart" | "reconnect" | "defaultToolTimeout">,
  transport: TransportSettings | undefined,
  hub: SharedOptions,
): ServerSettings {
  const matchesAlways = matchGlobs([...(entry.alwaysLoad ?? []), ...(hub.alwaysLoad ?? [])]);
  const matchesFilter = entry.toolFilter === undefined ? () => true : matchGlobs(entry.toolFilter);
  const matchesDeny = matchGlobs(entry.toolDeny);
  const hubToolTimeoutMs = hub.toolTimeoutMs ?? ("defaultToolTimeout" in hub ? hub.defaultToolTimeout : undefined);
  return {
    serverName,
    transport,
    enabled: entry.enabled ?? true,
    description: entry.description,
    category: entry.category,
    tags: entry.tags ?? [],
    keywords: entry.keywords ?? [],
    toolKeywords: entry.toolKeywords ?? {},
    metadata: entry.metadata,
    defer: entry.defer ?? hub.defer,
    isAlwaysLoaded: matchesAlways,
    isOffered: (toolName) => matchesFilter(toolName) && !matchesDeny(toolName),
    govern: serverPolicySettings(entry, hub.permission),
    connectTimeoutMs: entry.connectTimeoutMs ?? hub.connectTimeoutMs ?? DEFAULTS.connectTimeoutMs,
    requestTimeoutMs: entry.requestTimeoutMs ?? hub.requestTimeoutMs ?? DEFAULTS.requestTimeoutMs,
    toolTimeoutMs: entry.toolTimeoutMs ?? entry.defaultToolTimeout ?? hubToolTimeoutMs ?? DEFAULTS.toolTimeoutMs,
    maxToolTimeoutMs: entry.maxToolTimeoutMs ?? hub.maxToolTimeoutMs ?? DEFAULTS.maxToolTimeoutMs,
    maxConcurrentCalls: entry.maxConcurrentCalls ?? hub.maxConcurrentCalls ?? DEFAULTS.maxConcurrentCalls,
    maxResultChars: entry.maxResultChars ?? hub.maxResultChars ?? DEFAULTS.maxResultChars,
    reconnect: reconnectSettings(entry, transport),
    isIdempotent: matchGlobs(entry.idempotent),
  };
}

/** A remote server is opened again unless `reconnect` says no; a child only when `restart` says so. */
function reconnectSettings(
  { restart, reconnect }: Pick<z.output<typeof serverEntrySchema>, "restart" | "reconnect">,
  transport: TransportSettings | undefined,
): ReconnectSettings | undefined {
  if (transport === undefined || transport.kind === "client") return undefined;
  const written = transport.kind === "stdio" ? restart : reconnect;
  if (!(written?.enabled ?? transport.kind !== "stdio")) return undefined;
  return { waits: written?.maxAttempts ?? DEFAULTS.reconnectWaits, delayMs: written?.delayMs ?? DEFAULTS.reconnectDelayMs };
}

function sharedSettings(options: SharedOptions) {
  return {
    startup: options.startup ?? ("background" as const),
    names: options.names ?? ("mcp" as const),
    policy: options.policy,
    envelope: options.envelope ?? true,
    embeddings: options.embeddings,
    rerank: options.rerank,
    warnings: options.warnings ?? ("console" as const),
    budgets: resolveBudgets(options, DEFAULTS),
    closeTimeoutMs: options.closeTimeoutMs ?? DEFAULTS.closeTimeoutMs,
    retryFailedAfterMs: options.retryFailedAfterMs ?? DEFAULTS.retryFailedAfterMs,
    breakerFailures: options.breakerFailures ?? DEFAULTS.breakerFailures,
    breakerOpenMs: options.breakerOpenMs ?? DEFAULTS.breakerOpenMs,
    snapshotStore: options.snapshotStore,
    maxArtifactChars: options.maxArtifactChars ?? DEFAULTS.maxArtifactChars,
    resultStore: options.resultStore,
    toolListTtlMs: options.toolListTtlMs ?? DEFAULTS.toolListTtlMs,
    maxListPages: options.maxListPages ?? DEFAULTS.maxListPages,
    urlGuard: urlGuardSettings(options.urlGuard),
    toolFingerprints: toolFingerprintSettings(options.toolFingerprints),
  };
}
