import type * as z from "zod";

import { McpConfigError } from "../errors.js";
import { matchGlobs } from "../text/globs.js";
import { isRecord } from "../text/isRecord.js";
import { nearest } from "../text/nearest.js";
import { given } from "./budgetOptions.js";
import { DEFAULTS, type Budgets } from "./defaults.js";
import { notesOf } from "./fileNotes.js";
import {
  hubOptionsSchema,
  wrapOptionsSchema,
  type McpHubOptions,
  type McpWrapOptions,
  type SearchOptions,
} from "./hubOptions.js";
import { parseOptions } from "./parseOptions.js";
import { canAsk, serverPolicySettings, type ServerPolicySettings } from "./policyOptions.js";
import { securitySettings, type SecuritySettings } from "./securityOptions.js";
import type { serverEntrySchema, wrappedServerSchema } from "./serverOptions.js";
import { transportSettings, type TransportSettings } from "./transport.js";

type HubInput = z.output<typeof hubOptionsSchema>;
type WrapInput = z.output<typeof wrapOptionsSchema>;
type WrappedInput = z.output<typeof wrappedServerSchema>;
type EntryInput = z.output<typeof serverEntrySchema>;

/** Complete settings of one server. */
export interface ServerSettings extends Pick<
  Budgets,
  | "connectTimeoutMs"
  | "requestTimeoutMs"
  | "toolTimeoutMs"
  | "maxToolTimeoutMs"
  | "maxConcurrentCalls"
  | "maxResultChars"
> {
  readonly serverName: string;
  /** `undefined` for a server of a wrapped client: its owner connects it. */
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
  readonly policy: ServerPolicySettings;
  /** `undefined`: a lost connection stays lost. */
  readonly reconnect: ReconnectSettings | undefined;
  readonly isIdempotent: (toolName: string) => boolean;
}

/** How a lost connection reconnects. */
export interface ReconnectSettings {
  readonly waits: number;
  readonly delayMs: number;
}

/** Hooks and callbacks of the adapter's options. */
export type AdapterCallbacks = Pick<
  HubInput,
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
>;

/** Complete settings of a hub. */
export interface HubSettings extends SecuritySettings {
  readonly servers: ReadonlyMap<string, ServerSettings>;
  readonly policy: HubInput["policy"];
  readonly canAsk: boolean;
  readonly startup: "background" | "eager" | "lazy";
  readonly names: "mcp" | "bare" | ((serverName: string, toolName: string) => string);
  readonly envelope: boolean;
  readonly search: SearchOptions;
  readonly warnings: "console" | "silent";
  readonly budgets: Budgets;
  readonly snapshotStore: HubInput["snapshotStore"];
  readonly resultStore: HubInput["resultStore"];
  readonly onConnectionError: NonNullable<HubInput["onConnectionError"]>;
  readonly callbacks: AdapterCallbacks;
  /** Given options that do nothing, with the reason; warned about once. */
  readonly withoutEffect: readonly { readonly option: string; readonly reason: string }[];
  /** Sentences about what was left out of configuration files. */
  readonly fileNotes: readonly string[];
}

const WITHOUT_EFFECT = {
  throwOnLoadError: "a tool that cannot be loaded is left out with a warning, the rest stays",
  prefixToolNameWithServerName: "the option `names` decides how tools are named",
  additionalToolNamePrefix: "the option `names` decides how tools are named",
  useStandardContentBlocks: "results are put into the form that the model client takes",
} as const;

const OUTPUT_HANDLING =
  '"outputHandling" is not supported: text goes to the model and everything else stays in the artifact of the ToolMessage. Remove it and read `message.artifact`';

/**
 * Checks and completes the options of `new McpHub(options)`.
 * @throws {McpConfigError} for wrong or contradicting options.
 */
export function resolveHubOptions(options: McpHubOptions): HubSettings {
  refuseMissingServers(options);
  refuseOutputHandling("McpHub options", options);
  for (const [serverName, entry] of Object.entries(options.mcpServers))
    refuseOutputHandling(`Server "${serverName}"`, entry);
  refuseLostKeys(options.mcpServers);
  const parsed = parseOptions(hubOptionsSchema, options, "McpHub options");
  const entries = Object.entries(parsed.mcpServers);
  if (entries.length === 0)
    throw new McpConfigError('McpHub options: "mcpServers" is empty. Give at least one server.');
  const toolTimeoutMs = parsed.timeouts?.toolTimeoutMs ?? parsed.defaultToolTimeout;
  const budgets = { ...budgetsOf(parsed), ...given({ toolTimeoutMs }) };
  const { transports } = parsed.security ?? {};
  const servers = entries.map(([serverName, entry]) =>
    serverSettings(
      serverName,
      entry,
      transportSettings(serverName, entry, transports),
      parsed,
      budgets,
    ),
  );
  const optionsWithoutEffect = Object.entries(WITHOUT_EFFECT).filter(
    ([option]) => parsed[option as keyof HubInput] !== undefined,
  );
  const encodings = entries.filter(([, { encoding }]) => encoding !== undefined);
  return {
    ...hubSettings(parsed, budgets, servers),
    // Consent to a program is asked by the same hook.
    canAsk:
      canAsk(parsed, Object.values(parsed.mcpServers)) || parsed.security?.consent !== undefined,
    onConnectionError: parsed.onConnectionError ?? "ignore",
    fileNotes: notesOf(options.mcpServers),
    withoutEffect: [
      ...optionsWithoutEffect.map(([option, reason]) => ({ option, reason })),
      ...encodings.map(([name]) => ({
        option: `mcpServers.${name}.encoding`,
        reason: "MCP messages are UTF-8",
      })),
    ],
  };
}

/**
 * Checks and completes the options of `McpHub.wrap(client, options)`; `owned` and
 * `defaultToolTimeout` are the client's own.
 * @throws {McpConfigError} for wrong options, and for a server the client does not have.
 */
export function resolveWrapOptions(
  options: McpWrapOptions,
  owned: Readonly<Record<string, unknown>>,
  defaultToolTimeout?: unknown,
): HubSettings {
  refuseLostKeys(options.servers);
  const parsed = parseOptions(wrapOptionsSchema, options, "McpHub.wrap options");
  const serverNames = Object.keys(owned);
  const unknown = Object.keys(parsed.servers ?? {}).find(
    (serverName) => !serverNames.includes(serverName),
  );
  if (unknown !== undefined) {
    throw new McpConfigError(
      `McpHub.wrap options: "servers.${unknown}" is not a server of the client. It has: ${serverNames.join(", ")}.`,
      { serverName: unknown },
    );
  }
  const budgets = budgetsOf(parsed);
  const servers = serverNames.map((serverName) => {
    const entry = owned[serverName];
    const timeouts = [
      parsed.timeouts?.toolTimeoutMs,
      isRecord(entry) ? entry["defaultToolTimeout"] : undefined,
      defaultToolTimeout,
    ];
    const toolTimeoutMs = timeouts.find((value): value is number => typeof value === "number");
    return serverSettings(
      serverName,
      { ...given({ toolTimeoutMs }), ...parsed.servers?.[serverName] },
      undefined,
      parsed,
      budgets,
    );
  });
  return {
    ...hubSettings(parsed, budgets, servers),
    canAsk: canAsk(parsed, Object.values(parsed.servers ?? {})),
    onConnectionError: "ignore",
    withoutEffect: [],
    fileNotes: [],
  };
}

/** Time limits, sizes and counts: the given options over the defaults. */
export function budgetsOf(
  options: Pick<HubInput, "timeouts" | "limits">,
  defaults: Budgets = DEFAULTS,
): Budgets {
  return { ...defaults, ...given(options.timeouts), ...given(options.limits) };
}

function hubSettings(
  parsed: HubInput | WrapInput,
  budgets: Budgets,
  servers: readonly ServerSettings[],
) {
  return {
    ...securitySettings(parsed.security),
    servers: new Map(servers.map((server) => [server.serverName, server])),
    policy: parsed.policy,
    startup: parsed.startup ?? ("background" as const),
    names: parsed.names ?? ("mcp" as const),
    envelope: parsed.envelope ?? true,
    search: given(parsed.search),
    warnings: parsed.warnings ?? ("console" as const),
    budgets,
    snapshotStore: parsed.snapshotStore,
    resultStore: parsed.resultStore,
    callbacks: parsed,
  };
}

function serverSettings(
  serverName: string,
  entry: WrappedInput & Pick<EntryInput, "restart" | "reconnect" | "defaultToolTimeout">,
  transport: TransportSettings | undefined,
  hub: HubInput | WrapInput,
  budgets: Budgets,
): ServerSettings {
  const {
    connectTimeoutMs,
    requestTimeoutMs,
    maxToolTimeoutMs,
    maxConcurrentCalls,
    maxResultChars,
  } = entry;
  const toolTimeoutMs = entry.toolTimeoutMs ?? entry.defaultToolTimeout;
  const own = {
    connectTimeoutMs,
    requestTimeoutMs,
    toolTimeoutMs,
    maxToolTimeoutMs,
    maxConcurrentCalls,
    maxResultChars,
  };
  const matchesFilter = entry.toolFilter === undefined ? () => true : matchGlobs(entry.toolFilter);
  const matchesDeny = matchGlobs(entry.toolDeny);
  return {
    ...budgets,
    ...given(own),
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
    isAlwaysLoaded: matchGlobs([...(entry.alwaysLoad ?? []), ...(hub.alwaysLoad ?? [])]),
    isOffered: (toolName) => matchesFilter(toolName) && !matchesDeny(toolName),
    policy: serverPolicySettings(entry, hub.tier),
    reconnect: reconnectSettings(entry, transport),
    isIdempotent: matchGlobs(entry.idempotent),
  };
}

/**
 * A remote server reconnects unless `reconnect` says no, a child process only if `restart` says so.
 */
function reconnectSettings(
  { restart, reconnect }: Pick<EntryInput, "restart" | "reconnect">,
  transport: TransportSettings | undefined,
): ReconnectSettings | undefined {
  if (transport === undefined || transport.kind === "client") return undefined;
  const written = transport.kind === "stdio" ? restart : reconnect;
  if (!(written?.enabled ?? transport.kind !== "stdio")) return undefined;
  return {
    waits: written?.maxAttempts ?? DEFAULTS.reconnectWaits,
    delayMs: written?.delayMs ?? DEFAULTS.reconnectDelayMs,
  };
}

function refuseMissingServers(options: McpHubOptions): void {
  if (!isRecord(options))
    throw new McpConfigError("McpHub options must be an object such as { mcpServers: { … } }.");
  if (options.mcpServers !== undefined) return;
  const entries: [string, unknown][] = Object.entries(options);
  const misspelt = entries
    .map(([key]) => key)
    .find((key) => key === "servers" || nearest(key, ["mcpServers"]) !== undefined);
  const isBare = entries.some(
    ([, entry]) => isRecord(entry) && ("command" in entry || "url" in entry),
  );
  const hint =
    misspelt !== undefined
      ? `"${misspelt}" was given; did you mean "mcpServers"?`
      : isBare
        ? "For a bare record of servers, write McpHub.fromServers(servers)."
        : 'Give the servers by name: { mcpServers: { name: { command: "…" } } }.';
  throw new McpConfigError(`McpHub options: "mcpServers" is missing. ${hint}`);
}

/** Refuses `__proto__` as a key, which a schema drops silently together with what it denies. */
function refuseLostKeys(servers: Readonly<Record<string, unknown>> | undefined): void {
  if (Object.hasOwn(servers ?? {}, "__proto__")) {
    throw new McpConfigError('McpHub options: a server cannot be called "__proto__". Rename it.');
  }
  for (const [serverName, entry] of Object.entries(servers ?? {})) {
    const overrides = isRecord(entry) ? entry["overrides"] : undefined;
    if (!isRecord(overrides) || !Object.hasOwn(overrides, "__proto__")) continue;
    throw new McpConfigError(
      `Server "${serverName}": "overrides" cannot have the key "__proto__". Write a rule: "mcp:call:${serverName}:__proto__".`,
      { serverName },
    );
  }
}

function refuseOutputHandling(subject: string, options: unknown): void {
  if (isRecord(options) && options["outputHandling"] !== undefined)
    throw new McpConfigError(`${subject}: ${OUTPUT_HANDLING}.`);
}
