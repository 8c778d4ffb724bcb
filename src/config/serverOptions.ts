import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import * as z from "zod";

import { globsSchema } from "../text/globs.js";
import { serverPolicyShape } from "./policyOptions.js";

const positiveMs = z.number().int().positive();
const positiveCount = z.number().int().positive();

const transportName = z.enum(["stdio", "http", "streamable_http", "streamable-http", "streamableHttp", "sse", "websocket", "ws"]);

const attempts = z.strictObject({
  /** Whether the server is opened again by itself after its connection was lost. */
  enabled: z.boolean().optional(),
  /** Waits between attempts; the first attempt is made at once. Default 5. */
  maxAttempts: positiveCount.optional(),
  /** Milliseconds of the first wait; each further one is twice as long, up to 30 s. Default 1,000. */
  delayMs: positiveMs.optional(),
});

/**
 * One entry of `mcpServers`: how a server is reached and how its tools are offered.
 *
 * Exactly one of `command` (a child process over stdio), `url` (streamable HTTP, SSE or WebSocket), `createTransport`
 * and `client` is given. Every option of
 * a server entry of `MultiServerMCPClient` is accepted; `docs/migrating.md` says what each does here. `${NAME}` and
 * `${NAME:-default}` in `command`, `args`, `env`, `cwd`, `url` and `headers` are filled in when the server is opened.
 */
export const serverEntrySchema = z.strictObject({
  /** How to reach the server. Default: `stdio` with `command`; `http` (then SSE, see `automaticSSEFallback`) with `url`. */
  transport: transportName.optional(),
  /** Same as `transport`, as some configuration files call it. */
  type: transportName.optional(),

  /** The program to start. */
  command: z.string().min(1).optional(),
  /** Its arguments. Default: none. */
  args: z.array(z.string()).optional(),
  /** Environment variables added to the small default environment (HOME, PATH, SHELL, TERM, USER, LOGNAME). */
  env: z.record(z.string(), z.string()).optional(),
  /** Names of variables of this process that the child also gets. Default: none. */
  inheritEnv: z.array(z.string()).optional(),
  /** Working directory of the child. Default: that of this process. */
  cwd: z.string().optional(),
  /** Accepted and without effect: MCP messages are UTF-8. */
  encoding: z.string().optional(),
  /** The child's stderr is always read and its tail kept for errors; `"inherit"` also copies it to this process's stderr. */
  stderr: z.enum(["inherit", "pipe", "ignore", "overlapped"]).optional(),
  /** Whether and how often a child that ended is started again by itself. Default: it is not. */
  restart: attempts.optional(),

  /** Where a remote server is. `http:` or `https:`; `ws:` or `wss:` for WebSocket. */
  url: z.string().min(1).optional(),
  /** HTTP headers of every request to the server. */
  headers: z.record(z.string(), z.string()).optional(),
  /** `auth.headers` is read as `headers`. */
  auth: z.strictObject({ headers: z.record(z.string(), z.string()) }).optional(),
  /** OAuth provider of the MCP SDK, handed to its transport. */
  authProvider: z
    .custom<OAuthClientProvider>((value) => typeof value === "object" && value !== null, "an OAuthClientProvider object")
    .optional(),
  /** Whether SSE is tried when streamable HTTP is refused with a 4xx status other than 401 and 403. Default true. */
  automaticSSEFallback: z.boolean().optional(),
  /** Whether and how often a remote server that was lost is opened again by itself. Default: it is. */
  reconnect: attempts.optional(),

  /** Makes a transport of your own for each opening, in memory for example. */
  createTransport: z
    .custom<() => Transport | Promise<Transport>>((value) => typeof value === "function", "a function")
    .optional(),
  /** A connected client of the MCP SDK that you have. It stays yours: it is never closed and never opened again. */
  client: z
    .custom<Client>((value) => typeof (value as Client | null)?.request === "function", "a Client of the MCP SDK")
    .optional(),

  /** `false`: the server is not opened, its state is `disabled`. Default true. */
  enabled: z.boolean().optional(),
  /** What the server is for, in a line. Shown in the listing and searched. */
  description: z.string().optional(),
  /** A group of servers, such as `"office"`; `search_mcp_tools` takes it in place of a server name. */
  category: z.string().optional(),
  /** Free labels, handed on in tool metadata and searched. */
  tags: z.array(z.string()).optional(),
  /** More words by which the server's tools are found. */
  keywords: z.array(z.string()).optional(),
  /** More words for single tools, by globs on raw names: `{ "create_*": ["open", "file"] }`. */
  toolKeywords: z.record(z.string().min(1), z.array(z.string())).optional(),
  /** Your own data, handed on unread as `serverMetadata` of the metadata of its tools. */
  metadata: z.record(z.string(), z.unknown()).optional(),

  /** `true`: the tools are deferred. `false`: they are bound in every model call. Default: decided by `autoDeferChars`. */
  defer: z.boolean().optional(),
  /** Globs on raw tool names that are bound in every model call even when the server is deferred. */
  alwaysLoad: globsSchema.optional(),
  /** Globs on raw tool names; only matching tools are offered. Default: all. */
  toolFilter: globsSchema.optional(),
  /** Globs on raw tool names that are not offered; beats `toolFilter`. */
  toolDeny: globsSchema.optional(),

  ...serverPolicyShape,

  /** Milliseconds for handshake and first listing together. */
  connectTimeoutMs: positiveMs.optional(),
  /** Milliseconds for a listing request. */
  requestTimeoutMs: positiveMs.optional(),
  /** Milliseconds a tool call may be silent; each progress notification starts them anew. */
  toolTimeoutMs: positiveMs.optional(),
  /** The adapter's name for `toolTimeoutMs`. */
  defaultToolTimeout: positiveMs.optional(),
  /** Milliseconds after which a tool call ends whatever progress it reports. */
  maxToolTimeoutMs: positiveMs.optional(),
  /** Tool calls in flight to this server at the same time; further ones wait. */
  maxConcurrentCalls: positiveCount.optional(),
  /** Characters of one result that reach the model. */
  maxResultChars: positiveCount.optional(),
  /** Globs on raw names of tools that may be called twice: a call whose connection was lost is made again. Default: none. */
  idempotent: globsSchema.optional(),
});

/** One entry of `mcpServers`, as the user writes it. */
export type McpServerEntry = z.input<typeof serverEntrySchema>;

/** Settings of a server of a wrapped `MultiServerMCPClient`: all of {@link McpServerEntry} but how it is reached. */
export const wrappedServerSchema = serverEntrySchema.pick({
  enabled: true,
  description: true,
  category: true,
  tags: true,
  keywords: true,
  toolKeywords: true,
  metadata: true,
  defer: true,
  alwaysLoad: true,
  toolFilter: true,
  toolDeny: true,
  permission: true,
  overrides: true,
  trustAnnotations: true,
  scopes: true,
  workspaces: true,
  connectTimeoutMs: true,
  requestTimeoutMs: true,
  toolTimeoutMs: true,
  maxToolTimeoutMs: true,
  maxConcurrentCalls: true,
  maxResultChars: true,
  idempotent: true,
});

/** Settings of one server in `McpHub.wrap(client, { servers })`. */
export type WrappedServerEntry = z.input<typeof wrappedServerSchema>;
