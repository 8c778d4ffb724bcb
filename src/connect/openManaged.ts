import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SseError, SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

import { checkUrl, type ServerSettings, type TransportSettings } from "../config/settings.js";
import { expandVariables, maskSecrets, type SecretResolver } from "../config/variables.js";
import { McpAuthRequiredError, McpConnectionError, McpMiddlewareError, messageOf } from "../errors.js";
import type { OpenSession, Session, SessionEvents } from "./session.js";
import { StdioTransport } from "./stdioTransport.js";

/** What the client says about itself in `initialize`. */
export const CLIENT_INFO = { name: "langchain-mcp-middleware", version: "0.1.0" } as const;

const TERMINATE_SESSION_MS = 1_000;
const EXIT_WAIT_MS = 200;
const MAX_STDERR_LINES = 8;
/* An error page of a web server can be long. */
const MAX_REASON_CHARS = 500;

type Remote = Extract<TransportSettings, { kind: "http" | "sse" }>;

/**
 * How a managed server is opened: variables filled in, transport made, handshake done.
 *
 * A session that cannot be opened leaves nothing behind: its process and sockets are gone before the error is thrown.
 *
 * @throws {McpConfigError} for a missing variable or a wrong URL.
 * @throws {McpAuthRequiredError} when the server answers 401 or asks for OAuth.
 * @throws {McpConnectionError} `CONNECT_FAILED` with the reason and the last stderr lines.
 */
export function openManaged(settings: ServerSettings, resolver: SecretResolver): OpenSession {
  const { serverName } = settings;
  return async (signal, events) => {
    const { authProvider, ...plain } = { authProvider: undefined, ...settings.transport! };
    const expanded = await rejectOnAbort(expandVariables(plain, resolver, serverName), signal);
    const transport = { ...expanded.value, ...(authProvider === undefined ? {} : { authProvider }) } as TransportSettings;
    const secrets = [...expanded.secrets, ...literalSecrets(transport)];
    if (transport.kind === "stdio") {
      return openClient(serverName, new StdioTransport(transport), secrets, signal, events);
    }
    return openRemote(serverName, transport, secrets, signal, events);
  };
}

async function openRemote(
  serverName: string,
  remote: Remote,
  secrets: readonly string[],
  signal: AbortSignal,
  events: SessionEvents,
): Promise<Session> {
  const url = checkUrl(serverName, remote.url);
  const attempt = (transport: Transport): Promise<Session> => openClient(serverName, transport, secrets, signal, events);
  if (remote.kind === "sse") return attempt(sseTransport(url, remote));
  try {
    return await attempt(httpTransport(url, remote));
  } catch (error) {
    if (!remote.sseFallback || !mayBeSse(error)) throw error;
    for (const candidate of sseUrls(url)) {
      try {
        return await attempt(sseTransport(candidate, remote));
      } catch (sseError) {
        if (McpAuthRequiredError.isInstance(sseError)) throw sseError;
        // The first error says more: it is about the URL that was configured.
      }
    }
    throw error;
  }
}

function httpTransport(url: URL, { headers, authProvider }: Remote): Transport {
  return new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    ...(authProvider === undefined ? {} : { authProvider }),
  });
}

function sseTransport(url: URL, { headers, authProvider }: Remote): Transport {
  // Deprecated in the protocol and still what some servers speak.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return new SSEClientTransport(url, {
    requestInit: { headers: { ...headers } },
    ...(authProvider === undefined ? {} : { authProvider }),
  });
}

/** A server that knows only SSE refuses the POST of streamable HTTP with a 4xx; 401 and 403 are about credentials. */
function mayBeSse(error: unknown): boolean {
  const cause = McpConnectionError.isInstance(error) ? error.cause : undefined;
  const code = cause instanceof StreamableHTTPError ? cause.code : undefined;
  return code !== undefined && code >= 400 && code < 500 && code !== 401 && code !== 403;
}

/** The URL as given, then with a last path segment `mcp` replaced by `sse`. */
function sseUrls(url: URL): URL[] {
  const other = new URL(url);
  other.pathname = url.pathname.replace(/(^|\/)mcp\/?$/, "$1sse");
  return other.href === url.href ? [url] : [url, other];
}

async function openClient(
  serverName: string,
  transport: Transport,
  secrets: readonly string[],
  signal: AbortSignal,
  events: SessionEvents,
): Promise<Session> {
  const client = new Client(CLIENT_INFO);
  const session = makeSession(client, transport, secrets);
  let isOpen = false;
  client.onclose = () => {
    if (isOpen) events.onEnd();
  };
  // The client keeps these for itself; this handler is called before its own.
  transport.onmessage = (message) => {
    if ("method" in message && message.method === "notifications/cancelled") {
      events.onNotification(message.method, message.params ?? {});
    }
  };
  client.fallbackNotificationHandler = async ({ method, params }) => {
    events.onNotification(method, params ?? {});
  };
  try {
    await rejectOnAbort(client.connect(transport, { signal, timeout: 2 ** 31 - 1 }), signal);
    isOpen = true;
    return session;
  } catch (error) {
    const stdio = transport instanceof StdioTransport ? transport : undefined;
    // Written to as it ended: its exit, which says more, is about to come.
    if (!signal.aborted) await stdio?.settled(EXIT_WAIT_MS);
    const reason = connectError(serverName, error, transport, session);
    await session.close();
    throw reason;
  }
}

function makeSession(client: Client, transport: Transport, secrets: readonly string[]): Session {
  const mask = (text: string): string => maskSecrets(text, secrets);
  const stdio = transport instanceof StdioTransport ? transport : undefined;
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    if (transport instanceof StreamableHTTPClientTransport && transport.sessionId !== undefined) {
      await withinMs(transport.terminateSession(), TERMINATE_SESSION_MS);
    }
    // The client lets go of its transport when a handshake fails, so both are closed.
    await Promise.allSettled([client.close(), transport.close()]);
  };
  return {
    client,
    mask,
    endReason: () => (client.transport === undefined ? (stdio?.endReason ?? "the connection was closed") : undefined),
    announcesChanges: () => client.getServerCapabilities()?.tools?.listChanged === true,
    stderrTail: () => lastLines(mask(stdio?.stderrTail ?? "")),
    close: () => (closing ??= close()),
  };
}

function connectError(serverName: string, error: unknown, transport: Transport, session: Session): McpMiddlewareError {
  const stdio = transport instanceof StdioTransport ? transport : undefined;
  const tail = session.stderrTail();
  const stray =
    stdio === undefined || stdio.strayLines === 0
      ? ""
      : ` It wrote ${stdio.strayLines} lines to stdout that are no MCP messages.`;
  const detail = stray + (tail === "" ? "" : ` Its last lines on stderr: ${tail}`);
  if (McpConnectionError.isInstance(error))
    return new McpConnectionError(error.code, error.message + detail, { serverName, cause: error });
  if (McpMiddlewareError.isInstance(error)) return error;
  const details = { serverName, cause: error };
  if (isUnauthorized(error)) {
    return new McpAuthRequiredError(
      `Server "${serverName}" asks for credentials (401). Give "headers" or an "authProvider" that it accepts.`,
      details,
    );
  }
  const code: unknown = (error as NodeJS.ErrnoException | undefined)?.code;
  const reason =
    stdio === undefined
      ? describeCause(error)
      : code === "ENOENT"
        ? `${messageOf(error)}. Check that "command" is a program on the PATH (arguments go into "args"), and that "cwd" exists`
        : (stdio.endReason ?? describeCause(error));
  return new McpConnectionError(
    "CONNECT_FAILED",
    session.mask(`Server "${serverName}" could not be opened: ${reason}.${detail}`),
    details,
  );
}

/** What went wrong in words: with the HTTP status, and with the cause of a failed `fetch`, which says only "fetch failed". */
function describeCause(error: unknown): string {
  const cause = typeof error === "object" && error !== null && "cause" in error ? error.cause : undefined;
  const isHttp = error instanceof StreamableHTTPError || error instanceof SseError;
  const status = isHttp && error.code !== undefined && error.code >= 100 ? `HTTP ${error.code}: ` : "";
  const reason = cause === undefined || cause === null ? "" : ` (${messageOf(cause)})`;
  const text = messageOf(error).replace(/\s*<(?:!doctype|html)[\s\S]*/i, " an HTML page; check the path of the URL");
  return (status + text + reason).slice(0, MAX_REASON_CHARS).trim();
}

/** True for the ways in which the SDK says that credentials are missing or refused. */
export function isUnauthorized(error: unknown): boolean {
  if (error instanceof UnauthorizedError) return true;
  return (error instanceof StreamableHTTPError || error instanceof SseError) && error.code === 401;
}

/** Names of variables and query parameters whose values are secret wherever they come from. */
const SECRET_NAME = /key|token|secret|pass|pwd|auth|credential|cookie|session/i;

/** Secrets that are written out in the configuration: headers, passwords in URLs, values of variables named so. */
function literalSecrets(transport: TransportSettings): string[] {
  if (transport.kind === "stdio") {
    const inEnv = Object.entries(transport.env).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []));
    const inArgs = transport.args.flatMap((arg) => {
      const [, name, value] = /^--?([\w-]+)=(.+)$/.exec(arg) ?? [];
      return name !== undefined && value !== undefined && SECRET_NAME.test(name) ? [value] : [];
    });
    return [...inEnv, ...inArgs];
  }
  const headers = Object.values(transport.headers).flatMap((value) => [value, value.replace(/^\S+ /, "")]);
  if (!URL.canParse(transport.url)) return headers;
  const { password, searchParams } = new URL(transport.url);
  const inQuery = [...searchParams].flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []));
  return [...headers, ...(password === "" ? [] : [password, decodeURIComponent(password)]), ...inQuery];
}

/** A JavaScript stack frame says where, not what; it must not push out the line that says what. */
const STACK_FRAME = /^\s+at .*:\d+:\d+\)?\s*$/;

function lastLines(text: string): string {
  const lines = text
    .trim()
    .split("\n")
    .filter((line) => line.trim() !== "" && !STACK_FRAME.test(line));
  return lines.slice(-MAX_STDERR_LINES).join("\n");
}

async function withinMs(promise: Promise<unknown>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([promise.catch(() => undefined), limit]);
  clearTimeout(timer);
}

/** Settles with the promise, or rejects when the signal aborts first. */
export function rejectOnAbort<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
