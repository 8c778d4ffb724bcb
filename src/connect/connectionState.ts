import type { McpMiddlewareError } from "../errors.js";
import type { Peer } from "./peer.js";

/** An opening that is under way. */
export interface Opening {
  readonly abort: AbortController;
  /** Settles when the server is connected, or given up. */
  readonly done: Promise<void>;
}

/**
 * State of one connection; each kind carries only its own data.
 *
 * idle → connecting → connected → reconnecting → connected | failed; any → closed. `needs-auth` and `failed` are tried
 * again by use, `disabled` never; what a person has to allow becomes `disabled` with the reason.
 */
export type State =
  | { readonly kind: "idle" }
  | ({ readonly kind: "connecting"; readonly attempt: number } & Opening)
  | { readonly kind: "connected"; readonly peer: Peer; readonly connectedAtMs: number; readonly latencyMs: number }
  | ({
      readonly kind: "reconnecting";
      /** Why the last connection or attempt ended. */
      readonly error: McpMiddlewareError;
      /** Attempts that were begun. */
      readonly attempt: number;
      /** The attempt that is under way; `undefined` while the next one is waited for. */
      readonly trying: Promise<void> | undefined;
      /** When the next attempt begins, while it is waited for. */
      readonly nextAtMs: number | undefined;
    } & Opening)
  | {
      readonly kind: "needs-auth" | "failed";
      readonly error: McpMiddlewareError;
      readonly failedAtMs: number;
      readonly attempts: number;
    }
  /** With an error: a person has not allowed it, or not any more. */
  | { readonly kind: "disabled"; readonly error?: McpMiddlewareError }
  | { readonly kind: "closed" };
