import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

/** Name, title and version a server gives itself. Untrusted. */
export interface ServerInfo {
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly version?: string | undefined;
}

/** An open connection to one server. */
export interface Session {
  readonly client: Client;
  /** Why the session has ended; `undefined` while it has not. */
  readonly endReason: () => string | undefined;
  /** What the server last wrote to stderr, masked; empty where there is no stderr. */
  readonly stderrTail: () => string;
  /** Removes what must not be shown from a text about this server. */
  readonly mask: (text: string) => string;
  /** Takes credentials out of what the server sent; `undefined` when none are known. */
  readonly maskContent: (<Value>(value: Value) => Value) | undefined;
  /** The same for what the server lists, in texts for readers alone. */
  readonly maskListing: (<Value>(value: Value) => Value) | undefined;
  /** Whether changes of a list, or of single resources that are subscribed to, reach us by notification. */
  readonly announces: (what: "tools" | "prompts" | "resources" | "subscriptions") => boolean;
  /** Whether the server keeps a session for us that it can forget. */
  readonly isOfSession: () => boolean;
  /** Ends the session. Never throws; safe to call again. */
  readonly close: () => Promise<void>;
}

/** What a session tells its connection. */
export interface SessionEvents {
  /** A notification came from the server. */
  readonly onNotification: (method: string, params: Readonly<Record<string, unknown>>) => void;
  /** The session ended by itself. */
  readonly onEnd: () => void;
  /** Something went wrong that may mean that the connection is gone. */
  readonly onTrouble: (error: Error) => void;
}

/** Opens a session with one server; rejects when the signal aborts. */
export type OpenSession = (signal: AbortSignal, events: SessionEvents) => Promise<Session>;
