import { LRUCache } from "lru-cache";

import type { Catalog } from "../catalog/catalog.js";
import { matchGlobs } from "../text/globs.js";
import type { McpRunContext } from "../config/policyOptions.js";
import type { ServerSettings } from "../config/settings.js";
import type { Policy } from "../policy/policy.js";
import {
  SharedView,
  View,
  type SeenTool,
  type Sight,
  type StateOf,
  type ViewOptions,
} from "./view.js";

/** Number of cached sights per agent. Any other costs a pass over the catalog. */
const MAX_SIGHTS = 32;

export interface ViewsParts {
  readonly catalog: Catalog;
  readonly servers: ReadonlyMap<string, ServerSettings>;
  readonly stateOf: StateOf;
  readonly policyOf: () => Policy;
}

/** The views of one agent. They depend on the run's context and on the current policy. */
export class Views {
  /** Servers that the agent may use in some run, in configuration order. */
  readonly serverNames: readonly string[];
  readonly #parts: ViewsParts;
  readonly #optionsKey: string;
  readonly #matchesTool: ((name: string) => boolean) | undefined;
  readonly #shared = new LRUCache<string, SharedView>({ max: MAX_SIGHTS });

  constructor(parts: ViewsParts, { servers, tools }: ViewOptions) {
    this.#parts = parts;
    this.serverNames = [...parts.servers.values()]
      .filter(
        ({ serverName, enabled }) =>
          enabled && (servers === undefined || servers.includes(serverName)),
      )
      .map(({ serverName }) => serverName);
    this.#matchesTool = tools === undefined ? undefined : matchGlobs(tools);
    this.#optionsKey = JSON.stringify([servers ?? null, tools ?? null]);
  }

  /** The view of a run. `disabled` names servers that its thread does not use. */
  of(context: McpRunContext, disabled: readonly string[] = []): View {
    const policy = this.#parts.policyOf();
    const audience = policy.audienceOf(context);
    const isOff = new Set(disabled);
    const off =
      disabled.length === 0
        ? disabled
        : this.serverNames.filter((serverName) => isOff.has(serverName));
    const key = `${policy.key}/${audience.key}${off.length === 0 ? "" : JSON.stringify(off)}`;
    let shared = this.#shared.get(key);
    if (shared === undefined) {
      const { catalog, servers, stateOf } = this.#parts;
      const permitted = this.serverNames.filter((serverName) =>
        policy.isServerVisible(serverName, audience),
      );
      const sight: Sight = {
        key: `${this.#optionsKey}/${key}`,
        serverNames: permitted.filter((serverName) => !isOff.has(serverName)),
        disabledNames: permitted.filter((serverName) => isOff.has(serverName)),
        mayList: (serverName) => policy.isListVisible(serverName, audience),
        isToolVisible: this.#testOf(policy, (tool) => policy.isToolVisible(tool, audience)),
      };
      shared = new SharedView(catalog, servers, stateOf, sight);
      this.#shared.set(key, shared);
    }
    return policy.hasFunction
      ? new View(shared, (tool) => policy.mayShow(tool, context))
      : new View(shared);
  }

  /** Test for visible tools; `undefined` when every tool passes. */
  #testOf(
    policy: Policy,
    isPermitted: (tool: SeenTool) => boolean,
  ): ((tool: SeenTool) => boolean) | undefined {
    const matches = this.#matchesTool;
    if (matches === undefined) return policy.isOpen ? undefined : isPermitted;
    const isNamed = ({ toolName, boundName }: SeenTool): boolean =>
      matches(toolName) || matches(boundName);
    return policy.isOpen ? isNamed : (tool) => isNamed(tool) && isPermitted(tool);
  }
}
