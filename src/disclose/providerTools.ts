import type { McpTool } from "../call/mcpTool.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { View } from "./view.js";

/** A tool of a request in the provider's own format. */
export type ProviderTool = Readonly<Record<string, unknown>>;

export interface ProviderToolsInput {
  /** The provider's search; `undefined` when it has none or it is not wanted. */
  readonly search: ProviderTool | undefined;
  readonly view: View;
  readonly boundEntries: ReadonlySet<ToolEntry>;
  /** Names in the request that are not ours. */
  readonly foreignNames: ReadonlySet<string>;
  readonly maxTools: number;
  readonly toolOf: (entry: ToolEntry) => McpTool;
}

/**
 * Lists the tools that are not bound, up to `maxTools`, for the provider's own search.
 * @returns `isSearchNeeded`: true when only our own search finds everything.
 */
export function toolsForProvider({
  search,
  view,
  boundEntries,
  foreignNames,
  maxTools,
  toolOf,
}: ProviderToolsInput): {
  readonly providerTools: ProviderTool[];
  readonly isSearchNeeded: boolean;
} {
  if (search === undefined) return { providerTools: [], isSearchNeeded: true };
  const deferred: ProviderTool[] = [];
  let isWhole = view.serverNames.every((serverName) => view.server(serverName) !== undefined);
  for (const entry of view.servers().flatMap(({ tools }) => tools)) {
    if (boundEntries.has(entry) || foreignNames.has(entry.boundName) || !view.mayShow(entry))
      continue;
    if (deferred.length === maxTools) {
      isWhole = false;
      break;
    }
    deferred.push(deferredTool(toolOf(entry)));
  }
  return {
    providerTools: deferred.length === 0 ? [] : [...deferred, search],
    isSearchNeeded: !isWhole || deferred.length === 0,
  };
}

/** A tool that the provider shows the model once its search finds it. */
function deferredTool({ name, description, schema }: McpTool): ProviderTool {
  return { name, description, schema, extras: { defer_loading: true } };
}
