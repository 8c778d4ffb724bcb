import type { Catalog, ServerCatalog } from "../catalog/catalog.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import type { ServerSettings } from "../config/settings.js";
import type { ConnectionState } from "../events.js";

/** Narrows what an agent sees. */
export interface ViewOptions {
  /** Names of the servers it may use. Default: all. */
  readonly servers?: readonly string[] | undefined;
  /** Globs on raw or bound tool names it may use. Default: all. */
  readonly tools?: readonly string[] | undefined;
}

/**
 * State of a server's connection; `"unavailable"`: not called for a while, after repeated failures.
 */
export type StateOf = (serverName: string) => ConnectionState | "unavailable";

/** The parts of a tool that decide whether it is visible. */
export type SeenTool = Pick<ToolEntry, "serverName" | "toolName" | "boundName"> &
  Partial<Pick<ToolEntry, "annotations">>;

/** The servers and tools that are visible, shared by all runs that see the same. */
export interface Sight {
  /** Equal keys mean the same visibility, in every process. */
  readonly key: string;
  /** Servers that may be used, in configuration order. */
  readonly serverNames: readonly string[];
  /** Servers that could be used if the thread had not disabled them. */
  readonly disabledNames: readonly string[];
  /** Whether a server's prompts and resources may be listed. */
  readonly mayList: (serverName: string) => boolean;
  /** `undefined` when every tool of these servers is visible. */
  readonly isToolVisible: ((tool: SeenTool) => boolean) | undefined;
}

/** One server as an agent sees it. */
export interface ServerView {
  readonly serverName: string;
  readonly settings: ServerSettings;
  readonly digest: string;
  /** Visible tools, sorted by raw name. */
  readonly tools: readonly ToolEntry[];
  /** Visible tools that are always loaded although the server is deferred. */
  readonly alwaysLoaded: readonly ToolEntry[];
  readonly definitionChars: number;
  /** True when it has tools and none is visible: it must not be mentioned. */
  readonly isBlank: boolean;
  readonly hasResources: boolean;
  /** Untrusted. */
  readonly title: string | undefined;
  /** Untrusted. */
  readonly instructions: string | undefined;
}

/**
 * The view of all runs with the same sight. Caches derived values while a server's catalog stays
 * the same.
 */
export class SharedView {
  readonly catalog: Catalog;
  readonly sight: Sight;
  readonly #settings: ReadonlyMap<string, ServerSettings>;
  readonly #stateOf: StateOf;
  readonly #servers = new WeakMap<ServerCatalog, ServerView>();
  /** Caches visible tools: a search tests every candidate. */
  readonly #visible = new WeakSet<SeenTool>();
  readonly #names: ReadonlySet<string>;
  #known:
    | {
        readonly version: number;
        readonly servers: readonly ServerView[];
        readonly definitionChars: number;
      }
    | undefined;

  constructor(
    catalog: Catalog,
    settings: ReadonlyMap<string, ServerSettings>,
    stateOf: StateOf,
    sight: Sight,
  ) {
    this.catalog = catalog;
    this.sight = sight;
    this.#settings = settings;
    this.#stateOf = stateOf;
    this.#names = new Set(sight.serverNames);
  }

  settings(serverName: string): ServerSettings {
    return this.#settings.get(serverName)!;
  }

  state(serverName: string): ConnectionState | "unavailable" {
    return this.#stateOf(serverName);
  }

  server(serverName: string): ServerView | undefined {
    const known = this.catalog.server(serverName);
    return known === undefined || !this.#names.has(serverName)
      ? undefined
      : this.#serverView(known);
  }

  isVisible(tool: SeenTool): boolean {
    if (this.#visible.has(tool)) return true;
    if (!this.#names.has(tool.serverName)) return false;
    return this.sight.isToolVisible === undefined || this.sight.isToolVisible(tool);
  }

  current() {
    if (this.#known?.version !== this.catalog.version) {
      const servers = this.sight.serverNames.flatMap((serverName) => this.server(serverName) ?? []);
      const definitionChars = servers.reduce((sum, server) => sum + server.definitionChars, 0);
      this.#known = { version: this.catalog.version, servers, definitionChars };
    }
    return this.#known;
  }

  #serverView(known: ServerCatalog): ServerView {
    const cached = this.#servers.get(known);
    if (cached !== undefined) return cached;
    const settings = this.settings(known.serverName);
    const { isToolVisible } = this.sight;
    const tools = isToolVisible === undefined ? known.tools : known.tools.filter(isToolVisible);
    const view: ServerView = {
      serverName: known.serverName,
      settings,
      digest: known.digest,
      tools,
      alwaysLoaded: tools.filter((entry) => settings.isAlwaysLoaded(entry.toolName)),
      definitionChars:
        tools === known.tools
          ? known.definitionChars
          : tools.reduce((sum, entry) => sum + entry.definitionChars, 0),
      isBlank: tools.length === 0 && known.tools.length > 0,
      hasResources:
        known.snapshot.capabilities?.["resources"] !== undefined &&
        this.sight.mayList(known.serverName),
      title: known.snapshot.serverInfo?.title,
      instructions: known.snapshot.instructions,
    };
    if (isToolVisible !== undefined) for (const tool of tools) this.#visible.add(tool);
    this.#servers.set(known, view);
    return view;
  }
}

/** The catalog as one run sees it. */
export class View {
  readonly catalog: Catalog;
  /** Equal keys mean the same visibility. */
  readonly key: string;
  /** Servers this run may use, connected or not, in configuration order. */
  readonly serverNames: readonly string[];
  readonly disabledNames: readonly string[];
  /** Whether a visible tool may be shown now: asks the policy's function, when there is one. */
  readonly mayShow: (tool: SeenTool) => boolean;
  /** True when a function decides what is shown. Its answer may change at any time. */
  readonly hasFunction: boolean;
  readonly #shared: SharedView;

  constructor(shared: SharedView, mayShow?: (tool: SeenTool) => boolean) {
    this.#shared = shared;
    this.hasFunction = mayShow !== undefined;
    this.catalog = shared.catalog;
    this.key = shared.sight.key;
    this.serverNames = shared.sight.serverNames;
    this.disabledNames = shared.sight.disabledNames;
    this.mayShow = mayShow ?? (() => true);
  }

  /** Servers that may be mentioned: all but those with only hidden tools. */
  spokenServers(): readonly string[] {
    return this.serverNames.filter((serverName) => this.server(serverName)?.isBlank !== true);
  }

  /** Disabled servers that may be mentioned. */
  spokenDisabled(): readonly string[] {
    return this.disabledNames.filter((serverName) => {
      const tools = this.catalog.server(serverName)?.tools ?? [];
      const { isToolVisible } = this.#shared.sight;
      return tools.length === 0 || isToolVisible === undefined || tools.some(isToolVisible);
    });
  }

  settings(serverName: string): ServerSettings {
    return this.#shared.settings(serverName);
  }

  state(serverName: string): ConnectionState | "unavailable" {
    return this.#shared.state(serverName);
  }

  /** Servers with a known tool list, in configuration order. */
  servers(): readonly ServerView[] {
    return this.#shared.current().servers;
  }

  get definitionChars(): number {
    return this.#shared.current().definitionChars;
  }

  /** The server, when its tool list is known. */
  server(serverName: string): ServerView | undefined {
    return this.#shared.server(serverName);
  }

  /** True when this run may use the tool. Does not ask the policy's function. */
  isVisible(tool: SeenTool): boolean {
    return this.#shared.isVisible(tool);
  }

  /** True when the tool is visible and the policy's function does not hide it. */
  shows(tool: SeenTool): boolean {
    return this.isVisible(tool) && this.mayShow(tool);
  }

  tool(boundName: string): ToolEntry | undefined {
    const entry = this.catalog.tool(boundName);
    return entry !== undefined && this.isVisible(entry) ? entry : undefined;
  }
}
