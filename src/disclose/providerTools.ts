import type { GatedTool } from "../catalog/gatedTool.js";

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

/** A tool that the provider shows the model when its search finds it. */
export function deferredTool({ name, description, schema }: GatedTool): ProviderTool {
  return { name, description, schema, extras: { defer_loading: true } };
}
