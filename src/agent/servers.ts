import type { ToolEntry } from "../catalog/toolEntry.js";
import type { HubParts } from "../hub/hubParts.js";
import type { ThreadSettings } from "../disclose/thread.js";
import type { RunContext } from "./runContext.js";

const MAX_WAIT_MS = 2 ** 31 - 1;

/** Connects an agent's servers when a run needs them, within the agent's time limits. */
export class AgentServers {
  readonly #hub: HubParts;
  readonly #settings: ThreadSettings;

  constructor(hub: HubParts, settings: ThreadSettings) {
    this.#hub = hub;
    this.#settings = settings;
  }

  /** Connects servers and waits until the deadline; longer for servers this thread has used. */
  async ready({ view, state, caller: { signal } }: RunContext): Promise<void> {
    const { pool, settings } = this.#hub;
    const { startupDeadlineMs, searchWaitMs } = this.#settings.budgets;
    const { serverNames } = view;
    await this.#hub.recall();
    pool.use(serverNames);
    await pool.settle(
      serverNames,
      settings.startup === "eager" ? MAX_WAIT_MS : startupDeadlineMs,
      "start",
      signal,
    );
    const known = Object.keys(state._mcpSent?.servers ?? {});
    const missing = known.filter(
      (serverName) => serverNames.includes(serverName) && view.server(serverName) === undefined,
    );
    if (missing.length === 0) return;
    pool.open(missing);
    await pool.settle(missing, searchWaitMs, "start", signal);
  }

  /** Connects servers for a search or a call, and waits at most `searchWaitMs`. */
  async load(
    { view, caller: { signal } }: RunContext,
    serverNames: readonly string[],
  ): Promise<void> {
    // A snapshot is enough to find tools; a call connects the server.
    this.#hub.pool.open(serverNames.filter((serverName) => view.server(serverName) === undefined));
    await this.#hub.pool.settle(serverNames, this.#settings.budgets.searchWaitMs, "now", signal);
  }

  /**
   * The visible tool of a bound name.
   * @param mayBeOurs - Waits for all servers while the name is unknown.
   */
  async lookUp(run: RunContext, name: string, mayBeOurs: boolean): Promise<ToolEntry | undefined> {
    // With the option `names`, bound names may lack our prefix.
    const isLikely = mayBeOurs || this.#settings.names !== "mcp";
    if (run.view.tool(name) === undefined && isLikely) await this.load(run, run.view.serverNames);
    return run.view.tool(name);
  }
}
