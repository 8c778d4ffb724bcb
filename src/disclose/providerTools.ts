import type { McpTool } from "../call/mcpTool.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { View } from "./view.js";

/** An entry of a request's tool list that a provider runs itself. */
export type ProviderTool = Readonly<Record<string, unknown>>;

/* The search of the providers that have one, as their clients take it. */
const SEARCHES = {
  anthropic: { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" },
  openai: { type: "tool_search" },
} as const;

interface ModelLike {
  readonly lc_id?: readonly string[];
  readonly constructor?: { readonly name?: string };
  readonly useResponsesApi?: unknown;
  readonly _defaultConfig?: {
    readonly model?: unknown;
    readonly modelProvider?: unknown;
    readonly useResponsesApi?: unknown;
  };
}

/**
 * The tool search of the provider behind a model client; `undefined` where there is none that is known.
 *
 * ChatAnthropic has one, ChatOpenAI with the Responses API.
 *
 * @see https://docs.claude.com/en/docs/agents-and-tools/tool-use/tool-search-tool
 */
export function providerSearchOf(model: unknown): ProviderTool | undefined {
  if (typeof model !== "object" || model === null) return undefined;
  const { lc_id: id, constructor, useResponsesApi, _defaultConfig: configured } = model as ModelLike;
  const name = id?.at(-1) ?? constructor?.name ?? "";
  const provider =
    name === "ConfigurableModel" ? (configured?.modelProvider ?? providerOf(String(configured?.model ?? ""))) : undefined;
  if (name === "ChatAnthropic" || provider === "anthropic") return SEARCHES.anthropic;
  const isOpenAi =
    name === "ChatOpenAI" ? useResponsesApi === true : provider === "openai" && configured?.useResponsesApi === true;
  return isOpenAi ? SEARCHES.openai : undefined;
}

/** The provider that LangChain takes a model's name for. */
function providerOf(model: string): string | undefined {
  if (model.startsWith("claude")) return "anthropic";
  return /^(gpt-|chatgpt|o\d)/.test(model) ? "openai" : undefined;
}

/** What {@link toolsForProvider} goes by. */
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
