import type { ImagePlacement } from "../call/contentBlock.js";
import { PROFILES, type SchemaProfile } from "../catalog/schema/profiles.js";
import type { ProviderTool } from "./providerTools.js";

/** How a model client takes tools, searches and images. */
export interface ModelClient {
  /** Form of schemas and descriptions; `generic` for an unknown client. */
  readonly profile: SchemaProfile;
  /** The provider's own tool search; `undefined` when none is known. */
  readonly search: ProviderTool | undefined;
  readonly images: ImagePlacement;
}

/* Matches the class names of LangChain chat models, which survive bundling and subclassing. */
const PROFILE_NAMES: readonly (readonly [RegExp, SchemaProfile["name"]])[] = [
  [/anthropic|claude/i, "anthropic"],
  [/google|gemini|vertex/i, "google"],
  [/openai/i, "openai"],
];

/* Each provider's tool search, in the form that its client takes. */
const SEARCHES = {
  anthropic: { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" },
  openai: { type: "tool_search" },
} as const;

interface ModelLike {
  readonly lc_id?: readonly string[];
  readonly constructor?: { readonly name?: string };
  readonly profile?: { readonly imageInputs?: boolean };
  readonly useResponsesApi?: unknown;
  readonly _defaultConfig?: {
    readonly model?: unknown;
    readonly modelProvider?: unknown;
    readonly useResponsesApi?: unknown;
  };
}

/**
 * Reads how a chat model takes tools, images and searches. ChatAnthropic and ChatOpenAI (Responses
 * API) have a tool search.
 * @see https://docs.claude.com/en/docs/agents-and-tools/tool-use/tool-search-tool
 */
export function modelClientOf(model: unknown): ModelClient {
  const client = (typeof model === "object" && model !== null ? model : {}) as ModelLike;
  const name = client.lc_id?.at(-1) ?? client.constructor?.name ?? "";
  const [, profileName = "generic"] = PROFILE_NAMES.find(([pattern]) => pattern.test(name)) ?? [];
  const takesImages = client.profile?.imageInputs !== false;
  const placed = profileName === "anthropic" ? "tool" : "human";
  return {
    profile: PROFILES[profileName],
    search: searchOf(name, client),
    images: takesImages ? placed : "none",
  };
}

function searchOf(
  name: string,
  { useResponsesApi, _defaultConfig: configured }: ModelLike,
): ProviderTool | undefined {
  const isConfigurable = name === "ConfigurableModel";
  const provider = isConfigurable
    ? (configured?.modelProvider ?? providerOf(String(configured?.model ?? "")))
    : undefined;
  if (name === "ChatAnthropic" || provider === "anthropic") return SEARCHES.anthropic;
  const isOpenAi =
    name === "ChatOpenAI"
      ? useResponsesApi === true
      : provider === "openai" && configured?.useResponsesApi === true;
  return isOpenAi ? SEARCHES.openai : undefined;
}

/** The provider that LangChain infers from a model name. */
function providerOf(model: string): string | undefined {
  if (model.startsWith("claude")) return "anthropic";
  return /^(gpt-|chatgpt|o\d)/.test(model) ? "openai" : undefined;
}
