import type { ToolEntry } from "../catalog/toolEntry.js";
import type { HubParts } from "../hub/hubParts.js";
import type { ThreadSettings } from "../disclose/thread.js";
import type { RunContext } from "./runContext.js";

/** The longest time a timer can wait. */
const MAX_WAIT_MS = 2 ** 31 - 1;

/** Opens the servers of an agent when a run needs them, and waits for them within the agent's time limits. */
export class AgentServers {
  readonly #hub: HubParts;
  readonly #settings: ThreadSettings;

  constructor(hub: HubParts, settings: ThreadSettings) {
    this.#hub = hub;
    this.#settings = settings;
  }

  /** Opens servers and waits until the deadline; longer for those whose tools this thread already has. */
  async ready({ view, state, caller: { signal } }: RunContext): Promise<void> {
    const { pool, settings } = this.#hub;
    const { startupDeadlineMs, searchWaitMs } = this.#settings.budgets;
    const { serverNames } = view;
    await this.#hub.recall();
    pool.use(serverNames);
    await pool.settle(serverNames, settings.startup === "eager" ? MAX_WAIT_MS : startupDeadlineMs, "start", signal);
    const known = Object.keys(state._mcpSent?.servers ?? {});
    const missing = known.filter((serverName) => serverNames.includes(serverName) && view.server(serverName) === undefined);
    if (missing.length === 0) return;
    pool.open(missing);
    await pool.settle(missing, searchWaitMs, "start", signal);
  }

  /** Opens servers that a search or a call may mean, and waits for them. */
  async load({ view, caller: { signal } }: RunContext, serverNames: readonly string[]): Promise<void> {
    // A snapshot is enough to find the tools of a server; a call opens it.
    this.#hub.pool.open(serverNames.filter((serverName) => view.server(serverName) === undefined));
    await this.#hub.pool.settle(serverNames, this.#settings.budgets.searchWaitMs, "now", signal);
  }

  /**
   * The visible tool of a bound name.
   *
   * @param mayBeOurs - Then all servers are waited for while it is unknown, so that a name can be told from an unknown one in
   * a process that has just started.
   */
  async lookUp(run: RunContext, name: string, mayBeOurs: boolean): Promise<ToolEntry | undefined> {
    // Names made by the option `names` may lack our prefix.
    const isLikely = mayBeOurs || this.#settings.names !== "mcp";
    if (run.view.tool(name) === undefined && isLikely) await this.load(run, run.view.serverNames);
    return run.view.tool(name);
  }
}
