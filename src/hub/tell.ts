import type { AdapterCallbacks, HubSettings } from "../config/settings.js";
import type { State } from "../connect/connectionState.js";
import type { RawResult } from "../connect/peer.js";
import type { HubEvents } from "../events.js";

/** The adapter's callback per notification, and whether it gets the parameters first. */
const CALLBACKS: Readonly<
  Record<string, readonly [name: keyof AdapterCallbacks, takesParams: boolean]>
> = {
  "notifications/message": ["onMessage", true],
  "notifications/initialized": ["onInitialized", false],
  "notifications/cancelled": ["onCancelled", true],
  "notifications/prompts/list_changed": ["onPromptsListChanged", false],
  "notifications/resources/list_changed": ["onResourcesListChanged", false],
  "notifications/resources/updated": ["onResourcesUpdated", true],
  "notifications/roots/list_changed": ["onRootsListChanged", false],
  "notifications/tools/list_changed": ["onToolsListChanged", false],
};

/**
 * Reports a notification by the events `log` and `resourceUpdated`, and by the adapter's callback.
 */
export function tellNotification(
  callbacks: AdapterCallbacks,
  serverName: string,
  method: string,
  params: RawResult,
  events: HubEvents,
): void {
  if (method === "notifications/message") {
    const { level, logger, data } = params;
    events.emit("log", {
      serverName,
      level: String(level),
      logger: typeof logger === "string" ? logger : undefined,
      data,
    });
  }
  if (method === "notifications/resources/updated" && typeof params["uri"] === "string") {
    events.emit("resourceUpdated", { serverName, uri: params["uri"] });
  }
  const [name, takesParams] =
    (Object.hasOwn(CALLBACKS, method) ? CALLBACKS[method] : undefined) ?? [];
  const callback = name && (callbacks[name] as ((...values: unknown[]) => unknown) | undefined);
  const source = { server: serverName };
  if (callback !== undefined)
    events.guard(name!, serverName, () =>
      takesParams ? callback(params, source) : callback(source),
    );
}

/**
 * Reports a connection's state by event; a failure also by a warning and by `onConnectionError`.
 */
export function tellState(
  { onConnectionError }: HubSettings,
  serverName: string,
  state: State,
  events: HubEvents,
): void {
  events.emit("connection", {
    serverName,
    state: state.kind,
    ...("attempt" in state ? { attempt: state.attempt } : {}),
    ...(state.kind === "reconnecting" && state.nextAtMs !== undefined
      ? { backoffMs: state.nextAtMs - Date.now() }
      : {}),
    ...(state.kind === "connected" ? { latencyMs: state.latencyMs } : {}),
    ...("error" in state ? { error: state.error.message } : {}),
  });
  if (!("error" in state) || state.kind === "reconnecting") return;
  const { error } = state;
  events.warn("CONNECT_FAILED", error.message, serverName);
  if (typeof onConnectionError === "function") {
    events.guard("onConnectionError", serverName, () => onConnectionError({ serverName, error }));
  }
}
