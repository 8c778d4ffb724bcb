import type { ConnectionState } from "../events.js";
import type { TransportSettings } from "../config/transport.js";
import type { Connection } from "./connection.js";

/** State of one server. JSON-safe, without secrets. */
export interface ServerStatus {
  readonly serverName: string;
  readonly state: ConnectionState;
  readonly transport: TransportSettings["kind"] | "wrapped";
  /** Number of offered tools, once they are listed. */
  readonly tools?: number;
  /** Why it is `failed`, `needs-auth`, `reconnecting` or `disabled`. */
  readonly error?: string;
  /** Attempts so far, while `reconnecting`. */
  readonly attempt?: number;
  /** ISO date of the next attempt, while `reconnecting`. */
  readonly nextAttemptAt?: string;
  /** ISO date until which the circuit breaker refuses requests. */
  readonly unavailableUntil?: string;
  /** ISO date at which it connected or failed. */
  readonly since?: string;
}

export function statusOf(
  {
    settings: { serverName, transport },
    state,
    unavailableUntilMs,
  }: Pick<Connection, "settings" | "state" | "unavailableUntilMs">,
  toolCount: number | undefined,
): ServerStatus {
  const sinceMs =
    state.kind === "connected"
      ? state.connectedAtMs
      : "failedAtMs" in state
        ? state.failedAtMs
        : undefined;
  return {
    serverName,
    state: state.kind,
    transport: transport?.kind ?? "wrapped",
    ...(toolCount === undefined ? {} : { tools: toolCount }),
    ...("error" in state ? { error: state.error.message } : {}),
    ...(state.kind === "reconnecting" ? { attempt: state.attempt } : {}),
    ...(state.kind === "reconnecting" && state.nextAtMs !== undefined
      ? { nextAttemptAt: isoDate(state.nextAtMs) }
      : {}),
    ...(unavailableUntilMs === undefined ? {} : { unavailableUntil: isoDate(unavailableUntilMs) }),
    ...(sinceMs === undefined ? {} : { since: isoDate(sinceMs) }),
  };
}

function isoDate(ms: number): string {
  return new Date(ms).toISOString();
}
