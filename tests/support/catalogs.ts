import { Catalog } from "../../src/catalog/catalog.js";
import { readTool, type RawTool } from "../../src/catalog/toolEntry.js";
import type { McpHubOptions } from "../../src/config/hubOptions.js";
import { resolveHubOptions } from "../../src/config/settings.js";
import type { View, ViewOptions } from "../../src/disclose/view.js";
import { Views } from "../../src/disclose/views.js";
import type { ConnectionState } from "../../src/events.js";
import type { McpRunContext } from "../../src/config/policyOptions.js";
import { Policy } from "../../src/policy/policy.js";

/** A tool in short: its name, or its definition. */
export type ToolInShort = string | { readonly name: string; readonly [key: string]: unknown };

/** A catalog without connections, and a view of it. */
export interface CatalogFixture {
  readonly catalog: Catalog;
  readonly view: View;
  readonly states: Map<string, ConnectionState>;
  readonly put: (
    serverName: string,
    tools: readonly ToolInShort[],
    more?: { instructions?: string; title?: string },
  ) => void;
}

/** Makes a catalog of servers; those without tools are still connecting. */
export function catalogOf(
  servers: Record<string, readonly ToolInShort[] | undefined>,
  options: Partial<McpHubOptions> & {
    readonly view?: ViewOptions;
    readonly context?: McpRunContext;
  } = {},
): CatalogFixture {
  const { view: viewOptions = {}, context = {}, mcpServers = {}, ...rest } = options;
  const entries = Object.fromEntries(
    Object.keys(servers).map((name) => [name, { command: "x", ...mcpServers[name] }]),
  );
  const settings = resolveHubOptions({ ...rest, mcpServers: entries });
  const catalog = new Catalog(settings);
  const states = new Map<string, ConnectionState>();
  const put: CatalogFixture["put"] = (serverName, tools, { instructions, title } = {}) => {
    catalog.setServer(serverName, { tools: tools.map(toRaw), instructions, serverInfo: { title } });
    states.set(serverName, "connected");
  };
  for (const [name, tools] of Object.entries(servers)) if (tools !== undefined) put(name, tools);
  const policy = new Policy(settings, settings.policy);
  const stateOf = (name: string): ConnectionState => states.get(name) ?? "connecting";
  const view = new Views(
    { catalog, servers: settings.servers, stateOf, policyOf: () => policy },
    viewOptions,
  ).of(context);
  return { catalog, view, states, put };
}

function toRaw(tool: ToolInShort): RawTool {
  const reading = readTool(
    typeof tool === "string"
      ? { name: tool, description: `Does ${tool.replaceAll("_", " ")}` }
      : tool,
  );
  if (reading.kind === "dropped") throw new Error(reading.problem);
  return reading.tool;
}
