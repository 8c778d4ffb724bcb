import type { ServerSettings } from "../config/settings.js";
import type { ConnectionState } from "../events.js";
import type { State } from "./connection.js";

/** State of one server. JSON-safe, without secrets. */
export interface ServerStatus {
  readonly serverName: string;
  readonly state: ConnectionState;
  readonly transport: "stdio" | "http" | "sse" | "wrapped";
  /** Number of its offered tools, when they are known. */
  readonly tools?: number;
  /** Why it is `failed` or `needs-auth`. */
  readonly error?: string;
  /** When it was connected or failed, as an ISO date. */
  readonly since?: string;
}

/** The public status of a server. */
export function statusOf({ serverName, transport }: ServerSettings, state: State, toolCount: number | undefined): ServerStatus {
  const sinceMs = state.kind === "connected" ? state.connectedAtMs : "failedAtMs" in state ? state.failedAtMs : undefined;
  return {
    serverName,
    state: state.kind,
    transport: transport?.kind ?? "wrapped",
    ...(toolCount === undefined ? {} : { tools: toolCount }),
    ...("error" in state ? { error: state.error.message } : {}),
    ...(sinceMs === undefined ? {} : { since: new Date(sinceMs).toISOString() }),
  };
}
