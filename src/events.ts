import { EventEmitter } from "node:events";

import { McpConfigError, messageOf } from "./errors.js";

/** State of a server's connection, in `hub.status()` and events. */
export type ConnectionState =
  | "idle"
  | "connecting"
  | "connected"
  | "reconnecting"
  | "needs-auth"
  | "failed"
  | "disabled"
  | "closed";

/** The run that an event belongs to, if any. */
export interface RunOrigin {
  /** `configurable.thread_id` of the run. */
  readonly threadId?: string | undefined;
  readonly runId?: string | undefined;
}

/** Codes of the `warning` event; each has a line in `docs/reference/events.md`. */
export type WarningCode =
  | "OPTION_WITHOUT_EFFECT"
  | "CONFIG_KEYS_LEFT_OUT"
  | "LARGE_ALWAYS_LOADED_SERVER"
  | "NO_TOOL_OFFERED"
  | "TOOL_MENDED"
  | "TOOL_DROPPED"
  | "LIST_CUT"
  | "REFRESH_FAILED"
  | "CONNECT_FAILED"
  | "WRAPPED_CLIENT_THROWS"
  | "RESULT_NOT_STORED"
  | "URL_NOT_GUARDED"
  | "SNAPSHOTS_FAILED"
  | "CONSENTS_FAILED"
  | "TOOL_FINGERPRINTS_FAILED"
  | "SEARCH_MODEL_FAILED"
  | "TIER_WITHOUT_CLASSES"
  | "RULE_WITHOUT_SERVER"
  | "NOBODY_TO_ASK"
  | "ANSWER_UNREADABLE"
  | "LISTENER_FAILED"
  | "CALLBACK_FAILED";

/** Payloads of `hub.on(event, listener)`, by event name. JSON-safe, without secrets. */
export interface McpEvents {
  /** A connection changed its state. */
  connection: {
    readonly serverName: string;
    readonly state: ConnectionState;
    /** Number of the attempt, from 1, when `connecting`; attempts so far when `reconnecting`. */
    readonly attempt?: number;
    /** Milliseconds until the next attempt, when `reconnecting`. */
    readonly backoffMs?: number;
    /** Milliseconds the connect took, when `connected`. */
    readonly latencyMs?: number;
    /** Why, when `failed`, `needs-auth`, `reconnecting` or `disabled`. */
    readonly error?: string;
  };
  /**
   * Raw names of tools or prompts, URIs or URI templates changed. Lists other than tools are
   * watched once listed.
   */
  catalog: {
    readonly serverName: string;
    readonly kind: "tools" | "prompts" | "resources" | "resourceTemplates";
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly changed: readonly string[];
  };
  /**
   * A tool changed since it was first seen. `before` and `after`: the server's untrusted texts, at
   * most 8,000 characters each.
   */
  toolChanged: {
    readonly serverName: string;
    readonly toolName: string;
    readonly fields: readonly ("title" | "description" | "arguments" | "annotations")[];
    readonly before: Readonly<
      Record<"title" | "description" | "arguments" | "annotations", string>
    >;
    readonly after: Readonly<Record<"title" | "description" | "arguments" | "annotations", string>>;
  };
  /** A search ran. `matches` are bound names, best first. */
  search: RunOrigin & {
    readonly query: string;
    readonly matches: readonly string[];
    readonly latencyMs: number;
  };
  /** A tool call ended. `chars` is the length of the text for the model. */
  call: RunOrigin & {
    readonly serverName: string;
    readonly toolName: string;
    readonly toolCallId?: string | undefined;
    readonly latencyMs: number;
    readonly status: "success" | "error";
    readonly chars: number;
  };
  /** The policy decided about an operation, or a person answered. */
  policy: RunOrigin & {
    /** Permission as in rules: `mcp:call:<server>:<tool>` and so on. */
    readonly permission: string;
    readonly operation: "call" | "invoke" | "read" | "list";
    readonly serverName: string;
    /** Tool, prompt or URI. */
    readonly target: string;
    readonly class: "read" | "write" | "destructive";
    readonly decision: "allow" | "ask" | "deny";
    readonly reason: string;
    /** The rule, tier, override or function. */
    readonly decidedBy: string;
    readonly toolCallId?: string | undefined;
    /**
     * Set when an `ask` was answered; `"refuse"`: nobody could be asked, or the answer was
     * unreadable.
     */
    readonly answer?: "approve" | "edit" | "reject" | "refuse" | undefined;
    readonly answeredBy?: string | undefined;
    /** `context.user` of the run. */
    readonly user?: unknown;
    readonly argumentsDigest: string;
    /** Set with `audit: "arguments"`. */
    readonly arguments?: unknown;
  };
  /** A server reported progress of a call. */
  progress: RunOrigin & {
    readonly serverName: string;
    readonly toolName: string;
    readonly toolCallId?: string | undefined;
    readonly progress: number;
    readonly total?: number | undefined;
    readonly message?: string | undefined;
  };
  /** A server sent a log message. */
  log: {
    readonly serverName: string;
    readonly level: string;
    readonly logger?: string | undefined;
    readonly data: unknown;
  };
  /** A subscribed resource changed. */
  resourceUpdated: { readonly serverName: string; readonly uri: string };
  /**
   * A model call is about to be made: characters of the tool definitions withheld and bound, and of
   * the listing.
   */
  context: RunOrigin & {
    readonly withheldChars: number;
    readonly boundChars: number;
    readonly listingChars: number;
  };
  /** Something is wrong that does not stop the work. */
  warning: {
    readonly code: WarningCode;
    readonly serverName?: string | undefined;
    readonly message: string;
  };
}

export const EVENT_NAMES: readonly McpEventName[] = [
  "connection",
  "catalog",
  "toolChanged",
  "search",
  "call",
  "policy",
  "progress",
  "log",
  "resourceUpdated",
  "context",
  "warning",
];

/** Name of an event of {@link McpEvents}. */
export type McpEventName = keyof McpEvents;

/**
 * The events of a hub. A throwing listener becomes a warning; a warning without listeners is
 * printed once per code and server.
 */
export class HubEvents {
  readonly #emitter = new EventEmitter().setMaxListeners(0);
  readonly #printed = new Set<string>();
  readonly #warnings: "console" | "silent";

  constructor(warnings: "console" | "silent") {
    this.#warnings = warnings;
  }

  /** Calls `listener` at each event of that name. Returns a function that removes it. */
  on<Name extends McpEventName>(
    name: Name,
    listener: (payload: McpEvents[Name]) => void,
  ): () => void {
    if (!EVENT_NAMES.includes(name)) {
      const guess = EVENT_NAMES.find((known) => known.startsWith(name.slice(0, 4)));
      const hint = guess === undefined ? "" : ` Did you mean "${guess}"?`;
      throw new McpConfigError(
        `There is no event "${name}".${hint} Events: ${EVENT_NAMES.join(", ")}.`,
      );
    }
    if (typeof listener !== "function")
      throw new McpConfigError(`hub.on("${name}", listener) needs a function as listener.`);
    const guarded = (payload: McpEvents[Name]): void =>
      settle(
        () => listener(payload),
        (error) => {
          if (name !== "warning")
            this.warn("LISTENER_FAILED", `A listener of "${name}" failed: ${messageOf(error)}`);
        },
      );
    this.#emitter.on(name, guarded);
    return () => this.#emitter.off(name, guarded);
  }

  emit<Name extends McpEventName>(name: Name, payload: McpEvents[Name]): void {
    this.#emitter.emit(name, payload);
  }

  /** True when someone listens, so that costly payloads are made only then. */
  has(name: McpEventName): boolean {
    return this.#emitter.listenerCount(name) > 0;
  }

  /** Calls a callback of the configuration; its error, also a rejection, becomes a warning. */
  guard(callbackName: string, serverName: string, callback: () => unknown): void {
    settle(callback, (error) =>
      this.warn("CALLBACK_FAILED", `${callbackName} failed: ${messageOf(error)}`, serverName),
    );
  }

  /** Emits a `warning`, or prints it once when nobody listens. */
  warn(code: WarningCode, message: string, serverName?: string): void {
    if (this.has("warning")) {
      this.emit("warning", { code, serverName, message });
      return;
    }
    const key = `${code}\n${serverName ?? ""}`;
    if (this.#warnings === "silent" || this.#printed.has(key)) return;
    this.#printed.add(key);
    console.warn(`[langchain-mcp-middleware] ${code}: ${message}`);
  }
}

/** Runs a sync or async callback and reports its failure. */
function settle(callback: () => unknown, onError: (error: unknown) => void): void {
  try {
    Promise.resolve(callback()).catch(onError);
  } catch (error) {
    onError(error);
  }
}
