import type { McpTool, McpToolParts } from "./mcpTool.js";
import { PROFILES, type SchemaProfile } from "../catalog/schema/profiles.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { ServerSettings } from "../config/settings.js";
import { boundTool, runCall } from "./boundTool.js";
import type { Gate } from "./gate.js";
import type { Caller } from "./permits.js";

/** The LangChain tools of a hub, made when they are bound, not for the whole catalog. */
export class McpTools {
  readonly #servers: ReadonlyMap<string, ServerSettings>;
  readonly #gate: Gate;
  readonly #made = new WeakMap<ToolEntry, Map<string, McpTool>>();

  constructor(servers: ReadonlyMap<string, ServerSettings>, gate: Gate) {
    this.#servers = servers;
    this.#gate = gate;
  }

  /** The tool of an entry; the same object for the same entry and profile. */
  of(entry: ToolEntry, profile: SchemaProfile = PROFILES.generic): McpTool {
    let made = this.#made.get(entry);
    if (made === undefined) this.#made.set(entry, (made = new Map<string, McpTool>()));
    let tool = made.get(profile.name);
    if (tool === undefined) {
      tool = boundTool(entry, this.#servers.get(entry.serverName)!, this.#gate, profile);
      made.set(profile.name, tool);
    }
    return tool;
  }

  /** Runs calls of an entry, for the run they are made in, or for someone, with what a person has said. */
  runner(entry: ToolEntry, caller?: Caller): McpToolParts["run"] {
    return runCall(entry, this.#gate, caller);
  }

  /** The tool of an entry whose calls are made for someone, with what a person has said. */
  for(entry: ToolEntry, caller: Caller): McpTool {
    return this.of(entry).running(this.runner(entry, caller));
  }
}
