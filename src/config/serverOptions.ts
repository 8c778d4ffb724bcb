import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import * as z from "zod";

import { globsSchema } from "../text/globs.js";
import { positiveCount, positiveMs } from "./budgetOptions.js";
import { serverPolicyShape, type ServerPolicyOptions } from "./policyOptions.js";

const transportName = z.enum([
  "stdio",
  "http",
  "streamable_http",
  "streamable-http",
  "streamableHttp",
  "sse",
  "websocket",
  "ws",
]);

/** Whether and how often a lost connection reconnects. */
export interface ReconnectOptions {
  /** Whether the server reconnects by itself. */
  readonly enabled?: boolean | undefined;
  /** Waits between attempts; the first attempt is made at once. @default 5 */
  readonly maxAttempts?: number | undefined;
  /**
   * Milliseconds of the first wait; each further one is twice as long, up to 30 s.
   * @default 1_000
   */
  readonly delayMs?: number | undefined;
}

/**
 * Settings of one server in `McpHub.wrap(client, { servers })`: {@link McpServerEntry} without how
 * to reach it.
 */
export interface WrappedServerEntry extends ServerPolicyOptions {
  /** `false`: the server never connects; its state is `disabled`. @default true */
  readonly enabled?: boolean | undefined;
  /** Purpose of the server in one line; shown in the listing and searched. */
  readonly description?: string | undefined;
  /**
   * A group of servers, such as `"office"`; `search_mcp_tools` takes it in place of a server name.
   */
  readonly category?: string | undefined;
  /** Free labels; passed on in tool metadata and searched. */
  readonly tags?: readonly string[] | undefined;
  /** More words by which the server's tools are found. */
  readonly keywords?: readonly string[] | undefined;
  /** More words for single tools, by globs on raw names: `{ "create_*": ["open", "file"] }`. */
  readonly toolKeywords?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Your own data; passed on unread as `serverMetadata` in the metadata of the server's tools. */
  readonly metadata?: Record<string, unknown> | undefined;
  /**
   * `true`: the tools are deferred. `false`: they are bound in every model call.
   * @default decided by `limits.autoDeferChars`
   */
  readonly defer?: boolean | undefined;
  /**
   * Globs on raw tool names that are bound in every model call even when the server is deferred.
   * @default none
   */
  readonly alwaysLoad?: readonly string[] | undefined;
  /** Globs on raw tool names; only matching tools are offered. @default all */
  readonly toolFilter?: readonly string[] | undefined;
  /** Globs on raw tool names that are not offered; beats `toolFilter`. @default none */
  readonly toolDeny?: readonly string[] | undefined;
  /** Milliseconds for handshake and first tool list together. @default that of the hub */
  readonly connectTimeoutMs?: number | undefined;
  /** Milliseconds for one request that is not a tool call. @default that of the hub */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * Milliseconds a tool call may stay silent; each progress notification restarts the time.
   * @default that of the hub
   */
  readonly toolTimeoutMs?: number | undefined;
  /**
   * Milliseconds after which a tool call ends, whatever progress it reports.
   * @default that of the hub
   */
  readonly maxToolTimeoutMs?: number | undefined;
  /** Requests in flight to this server; further ones wait. @default that of the hub */
  readonly maxConcurrentCalls?: number | undefined;
  /** Characters of one result that reach the model. @default that of the hub */
  readonly maxResultChars?: number | undefined;
  /**
   * Globs on raw names of tools that may run twice: their calls are repeated when the connection is
   * lost.
   * @default none
   */
  readonly idempotent?: readonly string[] | undefined;
}

/**
 * One entry of `mcpServers`: how to reach a server and how its tools are offered. Give exactly one
 * of `command` (a child process over stdio), `url` (streamable HTTP, SSE or WebSocket),
 * `createTransport` and `client`. `${NAME}` and `${NAME:-default}` in `command`, `args`, `env`,
 * `cwd`, `url` and `headers` are filled in on connecting.
 */
export interface McpServerEntry extends WrappedServerEntry {
  /** How to reach the server. @default `"stdio"` with `command`; `"http"`, then SSE, with `url` */
  readonly transport?: z.input<typeof transportName> | undefined;
  /** Another name of `transport`, from configuration files. */
  readonly type?: z.input<typeof transportName> | undefined;
  /** The program to start. */
  readonly command?: string | undefined;
  /** Its arguments. @default none */
  readonly args?: readonly string[] | undefined;
  /**
   * Environment variables added to the small default environment (HOME, PATH, SHELL, TERM, USER,
   * LOGNAME).
   */
  readonly env?: Record<string, string> | undefined;
  /** Names of variables of this process that the child gets as well. @default none */
  readonly inheritEnv?: readonly string[] | undefined;
  /** Working directory of the child. @default that of this process */
  readonly cwd?: string | undefined;
  /** Accepted without effect: MCP messages are UTF-8. */
  readonly encoding?: string | undefined;
  /**
   * `"inherit"` copies the child's stderr to this process's stderr; errors show its last lines in
   * any case.
   * @default "pipe"
   */
  readonly stderr?: "inherit" | "pipe" | "ignore" | "overlapped" | undefined;
  /** Whether and how often to reconnect, with a new child, after the child ended. @default not */
  readonly restart?: ReconnectOptions | undefined;
  /** Where a remote server is: `http:` or `https:`; `ws:` or `wss:` for WebSocket. */
  readonly url?: string | undefined;
  /** HTTP headers of every request to the server. */
  readonly headers?: Record<string, string> | undefined;
  /** `auth.headers` is read as `headers`. */
  readonly auth?: { readonly headers: Record<string, string> } | undefined;
  /** OAuth provider of the MCP SDK, passed to its transport. */
  readonly authProvider?: OAuthClientProvider | undefined;
  /**
   * Whether SSE is tried when streamable HTTP is refused with a 4xx status other than 401 and 403.
   * @default true
   */
  readonly automaticSSEFallback?: boolean | undefined;
  /** Whether and how often to reconnect to a lost remote server. @default it does */
  readonly reconnect?: ReconnectOptions | undefined;
  /** Makes your own transport for each connection, such as an in-memory one. */
  readonly createTransport?: (() => Transport | Promise<Transport>) | undefined;
  /** A connected client of the MCP SDK. It stays yours: it is never closed and never reconnects. */
  readonly client?: Client | undefined;
  /** The adapter's name for `toolTimeoutMs`. */
  readonly defaultToolTimeout?: number | undefined;
}

const wrappedShape = {
  enabled: z.boolean().optional(),
  description: z.string().optional(),
  category: z.string().optional(),
  tags: z.array(z.string()).optional(),
  keywords: z.array(z.string()).optional(),
  toolKeywords: z.record(z.string().min(1), z.array(z.string())).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  defer: z.boolean().optional(),
  alwaysLoad: globsSchema.optional(),
  toolFilter: globsSchema.optional(),
  toolDeny: globsSchema.optional(),
  ...serverPolicyShape,
  connectTimeoutMs: positiveMs.optional(),
  requestTimeoutMs: positiveMs.optional(),
  toolTimeoutMs: positiveMs.optional(),
  maxToolTimeoutMs: positiveMs.optional(),
  maxConcurrentCalls: positiveCount.optional(),
  maxResultChars: positiveCount.optional(),
  idempotent: globsSchema.optional(),
};

const reconnectSchema = z.strictObject({
  enabled: z.boolean().optional(),
  maxAttempts: positiveCount.optional(),
  delayMs: positiveMs.optional(),
});

/** Checks {@link WrappedServerEntry}. */
export const wrappedServerSchema = z.strictObject(wrappedShape);

/** Checks {@link McpServerEntry}. */
export const serverEntrySchema = z.strictObject({
  ...wrappedShape,
  transport: transportName.optional(),
  type: transportName.optional(),
  command: z.string().min(1).optional(),
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string()).optional(),
  inheritEnv: z.array(z.string()).optional(),
  cwd: z.string().optional(),
  encoding: z.string().optional(),
  stderr: z.enum(["inherit", "pipe", "ignore", "overlapped"]).optional(),
  restart: reconnectSchema.optional(),
  url: z.string().min(1).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  auth: z.strictObject({ headers: z.record(z.string(), z.string()) }).optional(),
  authProvider: z
    .custom<OAuthClientProvider>(
      (value) => typeof value === "object" && value !== null,
      "an OAuthClientProvider object",
    )
    .optional(),
  automaticSSEFallback: z.boolean().optional(),
  reconnect: reconnectSchema.optional(),
  createTransport: z
    .custom<() => Transport | Promise<Transport>>(
      (value) => typeof value === "function",
      "a function",
    )
    .optional(),
  client: z
    .custom<Client>(
      (value) => typeof (value as Client | null)?.request === "function",
      "a Client of the MCP SDK",
    )
    .optional(),
  defaultToolTimeout: positiveMs.optional(),
});
