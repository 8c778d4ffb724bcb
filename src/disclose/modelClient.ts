import type { ImagePlacement } from "../call/contentBlock.js";
import { PROFILES, type SchemaProfile } from "../catalog/schema/profiles.js";
import type { ProviderTool } from "./providerTools.js";

/** Everything the package knows of a model client. */
export interface ModelClient {
  /** Schemas and descriptions that its provider takes; `generic` for a client that is not known. */
  readonly profile: SchemaProfile;
  /** The provider's own tool search; `undefined` where none is known. */
  readonly search: ProviderTool | undefined;
  readonly images: ImagePlacement;
}

/* By the class name of a LangChain chat model, which survives bundling and subclasses of other packages. */
const PROFILE_NAMES: readonly (readonly [RegExp, SchemaProfile["name"]])[] = [
  [/anthropic|claude/i, "anthropic"],
  [/google|gemini|vertex/i, "google"],
  [/openai/i, "openai"],
];

/* The tool search of each provider that has one, as its client takes it. */
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
 * Reads off a LangChain chat model how tools, images and searches are sent to it.
 *
 * ChatAnthropic has a tool search, and ChatOpenAI with the Responses API.
 *
 * @see https://docs.claude.com/en/docs/agents-and-tools/tool-use/tool-search-tool
 */
export function modelClientOf(model: unknown): ModelClient {
  const client = (typeof model === "object" && model !== null ? model : {}) as ModelLike;
  const name = client.lc_id?.at(-1) ?? client.constructor?.name ?? "";
  const [, profileName = "generic"] = PROFILE_NAMES.find(([pattern]) => pattern.test(name)) ?? [];
  const takesImages = client.profile?.imageInputs !== false;
  const placed = profileName === "anthropic" ? "tool" : "human";
  return { profile: PROFILES[profileName], search: searchOf(name, client), images: takesImages ? placed : "none" };
}

function searchOf(name: string, { useResponsesApi, _defaultConfig: configured }: ModelLike): ProviderTool | undefined {
  const isConfigurable = name === "ConfigurableModel";
  const provider = isConfigurable ? (configured?.modelProvider ?? providerOf(String(configured?.model ?? ""))) : undefined;
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
