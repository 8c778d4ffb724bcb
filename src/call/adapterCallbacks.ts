import type { AdapterCallbacks } from "../config/settings.js";
import type { HubEvents } from "../events.js";

type CallbackName = Exclude<keyof AdapterCallbacks, "beforeToolCall" | "afterToolCall" | "onProgress">;

/** Which callback of the adapter's configuration hears of a notification, and whether it gets the parameters first. */
const CALLBACKS: Readonly<Record<string, readonly [name: CallbackName, takesParams: boolean]>> = {
  "notifications/message": ["onMessage", true],
  "notifications/initialized": ["onInitialized", false],
  "notifications/cancelled": ["onCancelled", true],
  "notifications/prompts/list_changed": ["onPromptsListChanged", false],
  "notifications/resources/list_changed": ["onResourcesListChanged", false],
  "notifications/resources/updated": ["onResourcesUpdated", true],
  "notifications/roots/list_changed": ["onRootsListChanged", false],
  "notifications/tools/list_changed": ["onToolsListChanged", false],
};

/** Tells the callback of the adapter's configuration that is meant for a notification, in the adapter's shape. */
export function tellCallbacks(
  callbacks: AdapterCallbacks,
  serverName: string,
  method: string,
  params: Readonly<Record<string, unknown>>,
  events: HubEvents,
): void {
  const found = Object.hasOwn(CALLBACKS, method) ? CALLBACKS[method] : undefined;
  if (found === undefined) return;
  const [name, takesParams] = found;
  const callback = callbacks[name] as ((...values: unknown[]) => unknown) | undefined;
  if (callback === undefined) return;
  const source = { server: serverName };
  events.guard(name, serverName, () => (takesParams ? callback(params, source) : callback(source)));
}
