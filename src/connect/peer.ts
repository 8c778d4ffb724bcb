import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

/** Name, title and version from the handshake. Untrusted. */
export interface ServerInfo {
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly version?: string | undefined;
}

/** Progress of a request. `message` is untrusted. */
export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** Unparsed result of a request. Untrusted. */
export type RawResult = Readonly<Record<string, unknown>>;

export interface PeerRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds without an answer; with `maxTimeoutMs`, each progress notification restarts them.
   */
  readonly timeoutMs: number;
  /** Milliseconds in total, whatever progress is reported. */
  readonly maxTimeoutMs?: number | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** HTTP headers of this request alone; other transports ignore them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** An open client with its server; hides the SDK from the rest of the package. */
export interface Peer {
  readonly client: Client;
  /** Sends a request. Rejects with the SDK's error; see {@link classifyFailure}. */
  readonly request: (request: PeerRequest) => Promise<RawResult>;
  /** Why the connection ended; `undefined` while it is open. */
  readonly endReason: () => string | undefined;
  /** The last lines on stderr, masked; `""` without stderr. */
  readonly stderrTail: () => string;
  readonly mask: (text: string) => string;
  /** Masks credentials in a result; `undefined` when none are known. */
  readonly maskContent: (<Value>(value: Value) => Value) | undefined;
  /** Masks credentials in the descriptions of a list. */
  readonly maskList: (<Value>(value: Value) => Value) | undefined;
  /** Whether the server notifies us of changes of a list, or of subscribed resources. */
  readonly announces: (what: "tools" | "prompts" | "resources" | "subscriptions") => boolean;
  /** Whether there is an MCP session, which the server can lose. */
  readonly hasSession: () => boolean;
  /** Closes the connection. Never throws; safe to call again. */
  readonly close: () => Promise<void>;
}

export interface PeerEvents {
  readonly onNotification: (method: string, params: RawResult) => void;
  /** The connection ended without `close()`. */
  readonly onEnd: () => void;
  /** An error that may mean that the connection is gone. */
  readonly onTrouble: (error: Error) => void;
}

export type OpenPeer = (signal: AbortSignal, events: PeerEvents) => Promise<Peer>;
