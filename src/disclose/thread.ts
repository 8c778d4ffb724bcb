import type { BaseMessage } from "@langchain/core/messages";
import { HumanMessage } from "@langchain/core/messages";

import type { CatalogDiff } from "../catalog/changes.js";
import { nameTool } from "../catalog/names.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { Strategy } from "../config/agentOptions.js";
import type { Budgets } from "../config/defaults.js";
import type { HubSettings } from "../config/settings.js";
import type { McpActivation, McpSent, McpStateUpdate, McpThreadState } from "../state.js";
import { listedNames, renderListing, type ListedServer } from "./listing.js";
import { areAnchored, noteAnchor, renderNote, type ServerChange } from "./notes.js";
import {
  activationOf,
  demote,
  nextAt,
  alwaysLoadedTools,
  promote,
  type SizeOf,
} from "./promotion.js";
import type { ServerView, View } from "./view.js";

/** Name of the tool that runs other tools, with the strategy `"execute"`. */
export const EXECUTE_TOOL_NAME = "execute_mcp_tool";
export const SEARCH_TOOL_NAME = "search_mcp_tools";
export const RESOURCE_TOOL_NAMES = ["mcp_resources_list", "mcp_resources_read"] as const;

/** Up to this many always loaded tools of a server are stored by name, which fixes their order. */
const MAX_REMEMBERED = 64;
const MAX_NOTES = 4;
const MAX_NOTES_CHARS = 1_000;

export interface ThreadSettings {
  readonly budgets: Budgets;
  readonly names: HubSettings["names"];
  readonly strategy: Strategy;
  readonly listing: boolean;
  readonly search: boolean;
  readonly resourceTools: boolean;
  readonly sizeOf: SizeOf;
}

/**
 * Computes what a thread is shown from now on, and the state update for it. Pure. Without changes
 * it returns the state's own `_mcpSent` and no update, at a cost that does not grow with the
 * catalog.
 * @param at - `"turn"`: a new run begins; `"step"`: a model call inside a run.
 */
export function showThread(
  view: View,
  state: McpThreadState,
  messages: readonly BaseMessage[],
  settings: ThreadSettings,
  at: "turn" | "step",
): { readonly sent: McpSent; readonly update: McpStateUpdate | undefined } {
  const before = state._mcpSent;
  if (before === undefined) {
    const sent = firstListing(view, settings);
    return { sent, update: { _mcpSent: sent } };
  }
  const activation = activationOf(state);
  const changes = changesSince(view, before, settings);
  const isOutdated =
    before.view !== view.key ||
    (settings.strategy === "execute") !== Object.hasOwn(before.synthetic, EXECUTE_TOOL_NAME) ||
    Object.keys(before.servers).some((serverName) => !view.serverNames.includes(serverName)) ||
    !areAnchored(before.notes, messages) ||
    (at === "turn" &&
      isHumanTurn(messages) &&
      before.pending.some((serverName) => view.state(serverName) !== "connecting")) ||
    ((at === "turn" || view.hasFunction) && namesHiddenTools(view, before));
  if (changes.length === 0 && !isOutdated) return { sent: before, update: undefined };

  const told = tell(view, before, changes, activation, settings);
  const note = noteFor(view, changes, told, messages, settings);
  const notes = note === undefined ? before.notes : [...before.notes, note];
  const isOverfull =
    notes.length > MAX_NOTES ||
    notes.reduce((sum, { text }) => sum + text.length, 0) > MAX_NOTES_CHARS;
  const sent = isOutdated || isOverfull ? renewListing(view, told, settings) : { ...told, notes };
  const mcpActivation = activationChange(view, changes, before, told, activation, settings);
  return {
    sent,
    update: mcpActivation === undefined ? { _mcpSent: sent } : { _mcpSent: sent, mcpActivation },
  };
}

/**
 * True when the listing or a note names a tool that may no longer be shown. Removed tools do not
 * count.
 */
function namesHiddenTools(view: View, { listing, notes }: McpSent): boolean {
  const named = notes.flatMap(({ text }) => text.split(/[\s,;:.]+/));
  return [...listedNames(listing), ...named].some((name) => {
    const entry = view.catalog.tool(name);
    return entry !== undefined && !view.shows(entry);
  });
}

interface Change {
  readonly server: ServerView;
  readonly kind: "joined" | "changed";
  readonly diff: CatalogDiff | undefined;
}

function changesSince(view: View, sent: McpSent, settings: ThreadSettings): Change[] {
  const changes: Change[] = [];
  for (const server of view.servers()) {
    const told = Object.hasOwn(sent.servers, server.serverName)
      ? sent.servers[server.serverName]
      : undefined;
    if (told === undefined) changes.push({ server, kind: "joined", diff: undefined });
    else if (told.digest !== server.digest) {
      changes.push({
        server,
        kind: "changed",
        diff: visibleDiff(
          view,
          server,
          view.catalog.diffSince(server.serverName, told.digest),
          settings,
        ),
      });
    }
  }
  return changes;
}

/** The visible part of a diff. A removed tool is tested as it was, or by its name. */
function visibleDiff(
  view: View,
  { serverName }: ServerView,
  diff: CatalogDiff | undefined,
  { names }: ThreadSettings,
): CatalogDiff | undefined {
  if (diff === undefined) return undefined;
  const isVisible = (toolName: string): boolean =>
    view.shows(
      view.catalog.toolOf(serverName, toolName) ??
        view.catalog.formerTool(serverName, toolName) ?? {
          serverName,
          toolName,
          boundName: nameTool(names, serverName, toolName),
        },
    );
  return {
    added: diff.added.filter(isVisible),
    removed: diff.removed.filter(isVisible),
    changed: diff.changed.filter(isVisible),
  };
}

function firstListing(view: View, settings: ThreadSettings): McpSent {
  const servers = view.servers();
  const undecided = view.serverNames.every(
    (serverName) => view.settings(serverName).defer !== undefined,
  );
  const loadsUnset = !undecided && isSmall(view, settings);
  const empty: McpSent = {
    v: 1,
    view: view.key,
    listing: "",
    loadsUnset,
    pending: [],
    servers: {},
    synthetic: {},
    notes: [],
  };
  const told = Object.fromEntries(
    servers.map((server) => [
      server.serverName,
      newServer(
        server,
        server.settings.defer === undefined ? loadsUnset : !server.settings.defer,
        0,
        settings,
      ),
    ]),
  );
  return renewListing(view, { ...empty, servers: told }, settings);
}

/**
 * True when all definitions together are smaller than `autoDeferChars`. Adds up no more than it
 * needs to know.
 */
function isSmall(view: View, { budgets: { autoDeferChars }, sizeOf }: ThreadSettings): boolean {
  let chars = 0;
  for (const { tools } of view.servers()) {
    for (const entry of tools) {
      chars += sizeOf(entry);
      if (chars >= autoDeferChars) return false;
    }
  }
  return chars < autoDeferChars;
}

/**
 * Records the current state of each changed server. A new server is always loaded by the rules of
 * the first listing.
 */
function tell(
  view: View,
  sent: McpSent,
  changes: readonly Change[],
  activation: McpActivation,
  settings: ThreadSettings,
): McpSent {
  const at = nextAt(activation, sent);
  const servers = { ...sent.servers };
  for (const { server, kind } of changes) {
    const { serverName, digest, settings: own } = server;
    if (kind === "changed") servers[serverName] = { ...servers[serverName]!, digest };
    else {
      const mayLoad = sent.loadsUnset && isSmall(view, settings);
      servers[serverName] =
        settings.strategy === "execute"
          ? { digest, alwaysLoaded: false, at, names: [] }
          : newServer(server, own.defer === undefined ? mayLoad : !own.defer, at, settings);
    }
  }
  return withSyntheticTools(view, { ...sent, servers }, at, settings);
}

function newServer(
  server: ServerView,
  loaded: boolean,
  at: number,
  { strategy }: ThreadSettings,
): McpSent["servers"][string] {
  const names = (loaded ? server.tools : server.alwaysLoaded).map(({ boundName }) => boundName);
  // With `"execute"` the bound tools never change: stores all names, even when there are none.
  const isRemembered =
    strategy === "execute" || (names.length > 0 && names.length <= MAX_REMEMBERED);
  return { digest: server.digest, alwaysLoaded: loaded, at, ...(isRemembered ? { names } : {}) };
}

/** Makes a new listing of the current tools, without notes. */
function renewListing(view: View, sent: McpSent, settings: ThreadSettings): McpSent {
  const servers = Object.fromEntries(
    Object.entries(sent.servers).filter(([serverName]) => view.serverNames.includes(serverName)),
  );
  const current: McpSent = { ...sent, view: view.key, servers, notes: [] };
  const unknown = view.serverNames.filter((serverName) => view.server(serverName) === undefined);
  const inState = (...states: string[]): string[] =>
    unknown.filter((serverName) => states.includes(view.state(serverName)));
  const connecting = inState("connecting");
  const listing = settings.listing
    ? renderListing({
        servers: view
          .servers()
          .flatMap((server) => (server.isBlank ? [] : [listedServer(server, current)])),
        connecting,
        onDemand: inState("idle").map((serverName) => ({
          serverName,
          purpose: view.settings(serverName).description,
        })),
        unavailable: inState("failed", "needs-auth", "closed"),
        budgetChars: settings.budgets.listingBudgetChars,
        strategy: settings.strategy,
        mayShow: view.mayShow,
      })
    : "";
  return withSyntheticTools(view, { ...current, listing, pending: connecting }, 0, settings);
}

function listedServer(server: ServerView, sent: McpSent): ListedServer {
  return {
    serverName: server.serverName,
    purpose: server.settings.description ?? server.title,
    instructions: server.instructions,
    tools: deferredTools(server, sent),
  };
}

function deferredTools(server: ServerView, sent: McpSent): ListedServer["tools"] {
  const { names } = sent.servers[server.serverName] ?? {};
  const loaded = new Set(
    names ?? alwaysLoadedTools(server, sent).map(({ boundName }) => boundName),
  );
  return loaded.size === 0
    ? server.tools
    : server.tools.filter(({ boundName }) => !loaded.has(boundName));
}

/**
 * Binds our own tools once they have a use; they then stay bound. With `"execute"` the first
 * listing fixes them.
 */
function withSyntheticTools(
  view: View,
  sent: McpSent,
  at: number,
  settings: ThreadSettings,
): McpSent {
  const isFixed = Object.hasOwn(sent.synthetic, EXECUTE_TOOL_NAME);
  if (settings.strategy === "execute") return isFixed ? sent : withFixedTools(view, sent, settings);
  // The thread began with `"execute"`.
  if (isFixed) return withSyntheticTools(view, { ...sent, synthetic: {} }, at, settings);
  const isMissing = (name: string): boolean => !Object.hasOwn(sent.synthetic, name);
  const added: string[] = [];
  if (settings.search && isMissing(SEARCH_TOOL_NAME)) {
    const isAnyUnknown = view.serverNames.some(
      (serverName) => view.server(serverName) === undefined,
    );
    if (isAnyUnknown || view.servers().some((server) => deferredTools(server, sent).length > 0))
      added.push(SEARCH_TOOL_NAME);
  }
  if (
    settings.resourceTools &&
    RESOURCE_TOOL_NAMES.some(isMissing) &&
    view.servers().some(({ hasResources }) => hasResources)
  ) {
    added.push(...RESOURCE_TOOL_NAMES.filter(isMissing));
  }
  if (added.length === 0) return sent;
  return {
    ...sent,
    synthetic: { ...sent.synthetic, ...Object.fromEntries(added.map((name) => [name, at])) },
  };
}

/** Our own tools for `"execute"`: includes those that servers not yet connected may need. */
function withFixedTools(
  view: View,
  sent: McpSent,
  { search, resourceTools }: ThreadSettings,
): McpSent {
  const isAnyUnknown = view.serverNames.some((serverName) => view.server(serverName) === undefined);
  const mayHaveResources = isAnyUnknown || view.servers().some(({ hasResources }) => hasResources);
  const names = [
    ...(search ? [SEARCH_TOOL_NAME] : []),
    EXECUTE_TOOL_NAME,
    ...(resourceTools && mayHaveResources ? RESOURCE_TOOL_NAMES : []),
  ];
  return { ...sent, synthetic: Object.fromEntries(names.map((name) => [name, 0])) };
}

function noteFor(
  view: View,
  changes: readonly Change[],
  sent: McpSent,
  messages: readonly BaseMessage[],
  settings: ThreadSettings,
): McpSent["notes"][number] | undefined {
  const told: ServerChange[] = changes
    .map(({ server, kind, diff }) => ({
      serverName: server.serverName,
      kind,
      toolCount: server.tools.length,
      isAlwaysLoaded: sent.servers[server.serverName]?.alwaysLoaded === true,
      diff: diff === undefined ? undefined : boundDiff(view, server.serverName, diff, settings),
    }))
    .filter(({ kind, toolCount, diff }) =>
      kind === "joined"
        ? toolCount > 0
        : diff === undefined || diff.added.length + diff.removed.length + diff.changed.length > 0,
    );
  return told.length === 0
    ? undefined
    : { after: noteAnchor(messages), text: renderNote(told, settings.strategy) };
}

function boundDiff(
  view: View,
  serverName: string,
  diff: CatalogDiff,
  settings: ThreadSettings,
): CatalogDiff {
  const toBound = (toolName: string): string =>
    view.catalog.toolOf(serverName, toolName)?.boundName ??
    nameTool(settings.names, serverName, toolName);
  return {
    added: diff.added.map(toBound),
    removed: diff.removed.map(toBound),
    changed: diff.changed.map(toBound),
  };
}

/**
 * Demotes removed and changed tools. Promotes up to `maxPromoted` tools that joined an always
 * loaded server.
 */
function activationChange(
  view: View,
  changes: readonly Change[],
  before: McpSent,
  told: McpSent,
  activation: McpActivation,
  settings: ThreadSettings,
): McpActivation | undefined {
  const demoted: string[] = [];
  const added: ToolEntry[] = [];
  for (const { server, kind, diff } of changes) {
    if (kind !== "changed") continue;
    if (diff !== undefined) {
      const names = boundDiff(view, server.serverName, diff, settings);
      demoted.push(...names.removed, ...names.changed);
    }
    const remembered = told.servers[server.serverName]?.names;
    if (remembered === undefined || settings.strategy === "execute") continue;
    const known = new Set(remembered);
    added.push(...alwaysLoadedTools(server, told).filter(({ boundName }) => !known.has(boundName)));
  }
  const gone = demote(demoted, activation, before);
  const isPlaced = ({ boundName }: ToolEntry): boolean =>
    activation.promoted[boundName]?.gone === false;
  const placed = promote(
    added.filter((entry) => !isPlaced(entry)).slice(0, settings.budgets.maxPromoted),
    [],
    activation,
    told,
  );
  if (gone === undefined || placed === undefined) return gone ?? placed;
  return { v: 1, promoted: { ...gone.promoted, ...placed.promoted } };
}

function isHumanTurn(messages: readonly BaseMessage[]): boolean {
  const last = messages.at(-1);
  return last !== undefined && HumanMessage.isInstance(last);
}
