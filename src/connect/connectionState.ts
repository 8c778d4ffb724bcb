import type { McpMiddlewareError } from "../errors.js";
import type { Peer } from "./peer.js";

export interface Opening {
  readonly abort: AbortController;
  /** Settles when the server is connected or the connect has failed. */
  readonly done: Promise<void>;
}

/**
 * State of one connection. Use of the hub retries `needs-auth` and `failed`, never `disabled`;
 * consent errors become `disabled`. idle → connecting → connected → reconnecting → connected |
 * failed; any → closed
 */
export type State =
  | { readonly kind: "idle" }
  | ({ readonly kind: "connecting"; readonly attempt: number } & Opening)
  | {
      readonly kind: "connected";
      readonly peer: Peer;
      readonly connectedAtMs: number;
      readonly latencyMs: number;
    }
  | ({
      readonly kind: "reconnecting";
      readonly error: McpMiddlewareError;
      readonly attempt: number;
      /** The running attempt; `undefined` between attempts. */
      readonly trying: Promise<void> | undefined;
      /** Time of the next attempt, in milliseconds since 1970; `undefined` while one runs. */
      readonly nextAtMs: number | undefined;
    } & Opening)
  | {
      readonly kind: "needs-auth" | "failed";
      readonly error: McpMiddlewareError;
      readonly failedAtMs: number;
      readonly attempts: number;
    }
  /** The error is set when a person has not allowed the server. */
  | { readonly kind: "disabled"; readonly error?: McpMiddlewareError }
  | { readonly kind: "closed" };
