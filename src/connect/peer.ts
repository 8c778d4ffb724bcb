import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

/** Name, title and version a server gives itself. Untrusted. */
export interface ServerInfo {
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly version?: string | undefined;
}

/** Progress of a request as its server reports it. `message` is untrusted. */
export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** The result of a request, unread and untrusted: an object. */
export type RawResult = Readonly<Record<string, unknown>>;

/** One request to a server. */
export interface PeerRequest {
  /** Method of the protocol, such as `tools/call`. */
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds the server may stay silent; with `maxTimeoutMs` each progress notification starts them again. */
  readonly timeoutMs: number;
  /** Milliseconds after which the request ends whatever progress is reported. */
  readonly maxTimeoutMs?: number | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** HTTP headers of this request alone; without effect on other transports. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** An open client with its server. The rest of the package knows no SDK: this is the seam. */
export interface Peer {
  readonly client: Client;
  /** Sends a request. Rejects with whatever the SDK throws; {@link classifyFailure} reads it. */
  readonly request: (request: PeerRequest) => Promise<RawResult>;
  /** Why the connection has ended; `undefined` while it has not. */
  readonly endReason: () => string | undefined;
  /** The last lines the server wrote to stderr, masked; empty where there is no stderr. */
  readonly stderrTail: () => string;
  /** Removes secrets from a text about this server. */
  readonly mask: (text: string) => string;
  /** Removes credentials from a result; `undefined` when none are known. */
  readonly maskContent: (<Value>(value: Value) => Value) | undefined;
  /** Removes credentials from the descriptions in a list. */
  readonly maskList: (<Value>(value: Value) => Value) | undefined;
  /** Whether changes of a list, or of single subscribed resources, reach us by notification. */
  readonly announces: (what: "tools" | "prompts" | "resources" | "subscriptions") => boolean;
  /** Whether the server keeps an MCP session for us, which it can lose. */
  readonly hasSession: () => boolean;
  /** Ends the connection. Never throws; safe to call again. */
  readonly close: () => Promise<void>;
}

/** Events of a peer. */
export interface PeerEvents {
  /** A notification came from the server. */
  readonly onNotification: (method: string, params: RawResult) => void;
  /** The connection ended by itself. */
  readonly onEnd: () => void;
  /** Something went wrong that may mean that the connection is gone. */
  readonly onTrouble: (error: Error) => void;
}

/** Opens a connection to one server; rejects when the signal aborts. */
export type OpenPeer = (signal: AbortSignal, events: PeerEvents) => Promise<Peer>;
