import { tellNotification, tellState } from "../call/adapterCallbacks.js";
import { McpTools } from "../call/mcpTools.js";
import { Gate } from "../call/gate.js";
import { Requests } from "../call/requests.js";
import { Permits } from "../call/permits.js";
import { Catalog } from "../catalog/catalog.js";
import { Snapshots } from "../catalog/snapshots.js";
import { takeToolList } from "../catalog/takeToolList.js";
import { ToolFingerprints } from "../catalog/toolFingerprints.js";
import { CatalogSearch } from "../catalog/search/catalogSearch.js";
import type { HubSettings, ServerSettings } from "../config/settings.js";
import type { Connection } from "../connect/connection.js";
import { storeOf } from "../connect/fileStore.js";
import { McpConsents } from "../connect/stdio/consents.js";
import { consentOf, openManaged } from "../connect/open/managed.js";
import { ConnectionPool } from "../connect/pool.js";
import type { OpenSession } from "../connect/peer.js";
import { messageOf } from "../errors.js";
import { HubEvents } from "../events.js";
import { Commands } from "../input/commands.js";
import { Policy } from "../policy/policy.js";

/** What a hub is made of. */
export interface HubParts {
  readonly events: HubEvents;
  readonly catalog: Catalog;
  readonly fingerprints: ToolFingerprints;
  readonly search: CatalogSearch;
  readonly snapshots: Snapshots | undefined;
  /** The policy in force; another one may take its place. */
  readonly policy: { current: Policy };
  readonly permits: Permits;
  readonly pool: ConnectionPool;
  /** Who has approved which program; `undefined` when nobody has to. */
  readonly consents: McpConsents | undefined;
  readonly gate: Gate;
  readonly requests: Requests;
  readonly tools: McpTools;
  readonly commands: Commands;
}

/**
 * Makes the parts of a hub and joins them: what a connection lists goes into the catalog, what the gate calls goes to the
 * connection. No I/O.
 *
 * @param openWrapped - How servers of a wrapped client are reached.
 * @throws {McpConfigError} for a policy that cannot be read.
 */
export function makeHubParts(settings: HubSettings, openWrapped?: (server: ServerSettings) => OpenSession): HubParts {
  const events = new HubEvents(settings.warnings);
  const catalog = new Catalog(settings);
  const search = new CatalogSearch({
    catalog,
    embeddings: settings.embeddings,
    rerank: settings.rerank,
    onError: (error) => events.warn("SEARCH_MODEL_FAILED", `Searching goes on by words alone: ${messageOf(error)}`),
  });
  const snapshots = snapshotsOf(settings, events);
  const policy = { current: new Policy(settings, settings.policy) };
  const fingerprints = fingerprintsOf(settings, events);
  const permits = new Permits(() => policy.current, events, fingerprints);
  const consents = consentsOf(settings, events, (serverName) => pool.connections.get(serverName));
  const pool = new ConnectionPool({
    settings,
    open: openWrapped ?? ((server) => openManaged(server, settings, consents)),
    admit: (server) => {
      const consented = consentOf(server, settings, consents);
      if (!fingerprints.isKeeping) return consented;
      return async (signal) => {
        await fingerprints.load(server.serverName);
        await consented?.(signal);
      };
    },
    isWrapped: openWrapped !== undefined,
    events: {
      onState: (serverName, state) => tellState(settings, serverName, state, events),
      onListed: (server, listing) => {
        const isChanged = takeToolList(catalog, events, fingerprints, server, listing);
        snapshots?.save(server.serverName, catalog.server(server.serverName)!.snapshot);
        if (isChanged) search.update();
        return isChanged;
      },
      onListChanged: (serverName, kind, diff) => events.emit("catalog", { serverName, kind, ...diff }),
      onRefreshFailed: (serverName, error) => events.warn("REFRESH_FAILED", messageOf(error), serverName),
      onNotification: (serverName, method, params) => tellNotification(settings.callbacks, serverName, method, params, events),
    },
  });
  const connectionOf = (serverName: string): Connection | undefined => pool.connections.get(serverName);
  const gate = new Gate({ settings, catalog, permits, events, connectionOf });
  const requests = new Requests({ settings, permits, events, connectionOf });
  const tools = new McpTools(settings.servers, gate);
  const commands = new Commands({ serverNames: [...settings.servers.keys()], requests, permits });
  return { events, catalog, fingerprints, search, snapshots, policy, permits, pool, consents, gate, requests, tools, commands };
}

function fingerprintsOf({ toolFingerprints }: HubSettings, events: HubEvents): ToolFingerprints {
  const { store } = toolFingerprints;
  return new ToolFingerprints({
    settings: toolFingerprints,
    store: store === undefined ? undefined : storeOf(store),
    isHeard: () => events.has("toolChanged"),
    onChange: (change) => events.emit("toolChanged", { ...change }),
    onFailed: (error) => events.warn("TOOL_FINGERPRINTS_FAILED", `The store of tool fingerprints failed: ${messageOf(error)}`),
  });
}

function consentsOf(
  { consent }: HubSettings,
  events: HubEvents,
  connectionOf: (serverName: string) => Connection | undefined,
): McpConsents | undefined {
  if (consent === undefined) return undefined;
  return new McpConsents(consent, {
    onStoreFailed: (error) => events.warn("CONSENTS_FAILED", `The store of consents failed: ${messageOf(error)}`),
    onApproved: (serverName) => connectionOf(serverName)?.allowed(),
    onForbidden: (serverName, error) => connectionOf(serverName)?.disable(error),
  });
}

function snapshotsOf(settings: HubSettings, events: HubEvents): Snapshots | undefined {
  const { snapshotStore } = settings;
  if (snapshotStore === undefined) return undefined;
  return new Snapshots(storeOf(snapshotStore), settings, (error) =>
    events.warn("SNAPSHOTS_FAILED", `The snapshot store failed: ${messageOf(error)}`),
  );
}
