import type { McpTool } from "../call/mcpTool.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { View } from "./view.js";

/** An entry of a request's tool list that a provider runs itself. */
export type ProviderTool = Readonly<Record<string, unknown>>;

/** Input of {@link toolsForProvider}. */
export interface ProviderToolsInput {
  /** The provider's search; `undefined` where it has none, or it is not wanted. */
  readonly search: ProviderTool | undefined;
  readonly view: View;
  /** Tools that are bound anyway. */
  readonly boundEntries: ReadonlySet<ToolEntry>;
  /** Names of tools that are in the request and not ours. */
  readonly foreignNames: ReadonlySet<string>;
  readonly maxTools: number;
  readonly toolOf: (entry: ToolEntry) => McpTool;
}

/**
 * What a provider with a search of its own is sent besides: all that is not bound, as far as it takes that many.
 *
 * @returns `isSearchNeeded`: whether our own search finds what the provider's cannot.
 */
export function toolsForProvider({ search, view, boundEntries, foreignNames, maxTools, toolOf }: ProviderToolsInput): {
  readonly providerTools: ProviderTool[];
  readonly isSearchNeeded: boolean;
} {
  if (search === undefined) return { providerTools: [], isSearchNeeded: true };
  const deferred: ProviderTool[] = [];
  let isWhole = view.serverNames.every((serverName) => view.server(serverName) !== undefined);
  for (const entry of view.servers().flatMap(({ tools }) => tools)) {
    if (boundEntries.has(entry) || foreignNames.has(entry.boundName) || !view.mayShow(entry)) continue;
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

/** A tool that the provider shows the model when its search finds it. */
function deferredTool({ name, description, schema }: McpTool): ProviderTool {
  return { name, description, schema, extras: { defer_loading: true } };
}
