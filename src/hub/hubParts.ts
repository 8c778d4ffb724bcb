import pLimit from "p-limit";

import { Approvals } from "../call/approvals.js";
import { Gate } from "../call/gate.js";
import { McpTools } from "../call/mcpTools.js";
import { Permits } from "../call/permits.js";
import { ServerReads } from "../call/serverReads.js";
import { Catalog, type ServerSnapshot } from "../catalog/catalog.js";
import { CatalogSearch } from "../catalog/search/catalogSearch.js";
import { Snapshots } from "../catalog/snapshots.js";
import { takeToolList } from "../catalog/takeToolList.js";
import { ToolFingerprints } from "../catalog/toolFingerprints.js";
import type { HubSettings, ServerSettings } from "../config/settings.js";
import { storeOf } from "../connect/stores.js";
import { consentOf, openManaged } from "../connect/open/managed.js";
import type { OpenPeer } from "../connect/peer.js";
import { ConnectionPool } from "../connect/pool.js";
import { McpConsents } from "../connect/stdio/consents.js";
import type { StateOf, ViewOptions } from "../disclose/view.js";
import { Views } from "../disclose/views.js";
import { McpConfigError, messageOf } from "../errors.js";
import { HubEvents } from "../events.js";
import { Commands } from "../input/commands.js";
import { Policy } from "../policy/policy.js";
import { inSlices, type Steps } from "../text/slices.js";
import { tellNotification, tellState } from "./tell.js";

/** Joins the parts of a hub. Internal: a hub exposes none of it. */
export class HubParts {
  readonly settings: HubSettings;
  readonly events: HubEvents;
  readonly catalog: Catalog;
  readonly fingerprints: ToolFingerprints;
  readonly search: CatalogSearch;
  readonly permits: Permits;
  readonly pool: ConnectionPool;
  /** `undefined` without the option `consent`. */
  readonly consents: McpConsents | undefined;
  readonly gate: Gate;
  readonly reads: ServerReads;
  readonly tools: McpTools;
  readonly commands: Commands;
  policy: Policy;
  readonly usedServers = new Set<string>();
  readonly #snapshots: Snapshots | undefined;
  readonly #oneUpdate = pLimit(1);

  /**
   * Does no I/O.
   * @param openWrapped - Opens the servers of a wrapped client.
   * @throws {McpConfigError} for a wrong policy.
   */
  constructor(settings: HubSettings, openWrapped?: (server: ServerSettings) => OpenPeer) {
    const { toolFingerprints, snapshotStore, consent, servers } = settings;
    const events = new HubEvents(settings.warnings);
    this.settings = settings;
    this.events = events;
    this.catalog = new Catalog(settings);
    this.search = new CatalogSearch(this.catalog, settings.search, events);
    this.#snapshots =
      snapshotStore === undefined
        ? undefined
        : new Snapshots(storeOf(snapshotStore), servers, events);
    this.policy = new Policy(settings, settings.policy);
    const kept = toolFingerprints.store === undefined ? undefined : storeOf(toolFingerprints.store);
    this.fingerprints = new ToolFingerprints(toolFingerprints, kept, events);
    this.permits = new Permits(() => this.policy, events, this.fingerprints);
    this.consents = consent === undefined ? undefined : this.#makeConsents(consent);
    this.pool = new ConnectionPool({
      settings,
      open: openWrapped ?? ((server) => openManaged(server, settings, this.consents)),
      admit: (server) => this.#admissionOf(server),
      isWrapped: openWrapped !== undefined,
      events: {
        onState: (serverName, state) => tellState(settings, serverName, state, events),
        onListed: async (server, list) => {
          const isChanged = await this.#updateCatalog(
            takeToolList(this.catalog, events, this.fingerprints, server, list),
          );
          this.#snapshots?.save(
            server.serverName,
            this.catalog.server(server.serverName)!.snapshot,
          );
          if (isChanged) this.search.update();
          return isChanged;
        },
        onListChanged: (serverName, kind, diff) =>
          events.emit("catalog", { serverName, kind, ...diff }),
        onRefreshFailed: (serverName, error) =>
          events.warn("REFRESH_FAILED", messageOf(error), serverName),
        onNotification: (serverName, method, params) =>
          tellNotification(settings.callbacks, serverName, method, params, events),
      },
    });
    const approvals =
      settings.approvalStore === undefined ? undefined : storeOf(settings.approvalStore);
    this.gate = new Gate(
      settings,
      this.catalog,
      this.permits,
      events,
      this.pool,
      new Approvals(approvals),
    );
    this.reads = new ServerReads(this.pool, this.permits, events);
    this.tools = new McpTools(servers, this.gate);
    this.commands = new Commands([...servers.keys()], this.reads, this.permits);
  }

  /** The views of an agent. @throws {McpConfigError} for a server that is not configured. */
  views(options: ViewOptions): Views {
    const { servers } = this.settings;
    const unknown = options.servers?.find((serverName) => !servers.has(serverName));
    if (unknown !== undefined) {
      throw new McpConfigError(
        `"servers" names "${unknown}", which is not configured. Servers: ${[...servers.keys()].join(", ")}.`,
      );
    }
    const stateOf: StateOf = (serverName) => {
      const { state, unavailableUntilMs } = this.pool.connection(serverName);
      return unavailableUntilMs === undefined ? state.kind : "unavailable";
    };
    return new Views(
      { catalog: this.catalog, servers, stateOf, policyOf: () => this.policy },
      options,
    );
  }

  /** Loads the snapshots of servers that are not listed yet, once. Never rejects. */
  async recall(): Promise<void> {
    if (this.#snapshots === undefined) return;
    const { catalog, fingerprints, settings } = this;
    if (fingerprints.isKeeping)
      await Promise.all([...settings.servers.keys()].map((name) => fingerprints.load(name)));
    await this.#snapshots.load(async (serverName, snapshot) => {
      if (await this.#updateCatalog(remember(catalog, fingerprints, serverName, snapshot)))
        this.search.update();
    });
  }

  /**
   * Runs one update of the catalog at a time, in slices: a long tool list must not stop what else
   * goes on.
   */
  #updateCatalog<Result>(steps: Steps<Result>): Promise<Result> {
    return this.#oneUpdate(() => inSlices(steps));
  }

  /** Closes connections, then waits until everything is stored. */
  async close(drainMs?: number): Promise<void> {
    await this.pool.close(drainMs);
    await Promise.all([this.#snapshots?.settled(), this.fingerprints.settled()]);
  }

  /**
   * Runs before a server is opened: loads its fingerprints, and asks a person about its program.
   */
  #admissionOf(server: ServerSettings): ((signal: AbortSignal) => Promise<void>) | undefined {
    const consented = consentOf(server, this.settings, this.consents);
    if (!this.fingerprints.isKeeping) return consented;
    return async (signal) => {
      await this.fingerprints.load(server.serverName);
      await consented?.(signal);
    };
  }

  #makeConsents(consent: NonNullable<HubSettings["consent"]>): McpConsents {
    return new McpConsents(consent, {
      onStoreFailed: (error) =>
        this.events.warn("CONSENTS_FAILED", `The store of consents failed: ${messageOf(error)}`),
      onApproved: (serverName) => this.pool.connections.get(serverName)?.allowed(),
      onForbidden: (serverName, error) => this.pool.connections.get(serverName)?.disable(error),
    });
  }
}

/** Puts a remembered tool list into the catalog, unless the server was listed meanwhile. */
function* remember(
  catalog: Catalog,
  fingerprints: ToolFingerprints,
  serverName: string,
  snapshot: ServerSnapshot,
): Steps<boolean> {
  if (catalog.server(serverName) !== undefined) return false;
  const tools = yield* fingerprints.check(serverName, snapshot.tools);
  yield* catalog.update(serverName, { ...snapshot, tools }, true);
  return true;
}

const known = new WeakMap<object, HubParts>();

export function keepParts(hub: object, parts: HubParts): HubParts {
  known.set(hub, parts);
  return parts;
}

export function partsOf(hub: object): HubParts {
  return known.get(hub)!;
}
