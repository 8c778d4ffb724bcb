import type { ConnectionState } from "../events.js";
import type { TransportSettings } from "../config/transport.js";
import type { Connection } from "./connection.js";

/** State of one server. JSON-safe, without secrets. */
export interface ServerStatus {
  readonly serverName: string;
  readonly state: ConnectionState;
  readonly transport: TransportSettings["kind"] | "wrapped";
  /** Number of its offered tools, when they are known. */
  readonly tools?: number;
  /** Why it is `failed`, `needs-auth` or `reconnecting`. */
  readonly error?: string;
  /** Attempts so far, of `reconnecting`. */
  readonly attempt?: number;
  /** When the next attempt is made, of `reconnecting`, as an ISO date. */
  readonly nextAttemptAt?: string;
  /** Until when it is left alone after several failures in a row, as an ISO date. */
  readonly unavailableUntil?: string;
  /** When it was connected or failed, as an ISO date. */
  readonly since?: string;
}

/** The public status of a server. */
export function statusOf(
  {
    settings: { serverName, transport },
    state,
    unavailableUntilMs,
  }: Pick<Connection, "settings" | "state" | "unavailableUntilMs">,
  toolCount: number | undefined,
): ServerStatus {
  const sinceMs = state.kind === "connected" ? state.connectedAtMs : "failedAtMs" in state ? state.failedAtMs : undefined;
  return {
    serverName,
    state: state.kind,
    transport: transport?.kind ?? "wrapped",
    ...(toolCount === undefined ? {} : { tools: toolCount }),
    ...("error" in state ? { error: state.error.message } : {}),
    ...(state.kind === "reconnecting" ? { attempt: state.attempt } : {}),
    ...(state.kind === "reconnecting" && state.nextAtMs !== undefined ? { nextAttemptAt: isoDate(state.nextAtMs) } : {}),
    ...(unavailableUntilMs === undefined ? {} : { unavailableUntil: isoDate(unavailableUntilMs) }),
    ...(sinceMs === undefined ? {} : { since: isoDate(sinceMs) }),
  };
}

function isoDate(ms: number): string {
  return new Date(ms).toISOString();
}
