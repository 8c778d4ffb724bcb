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

/** State of a server's connection; `"unavailable"`: it is left alone for a while because it failed several times. */
export type StateOf = (serverName: string) => ConnectionState | "unavailable";

/** What identifies a tool to a {@link Sight}. */
export type SeenTool = Pick<ToolEntry, "serverName" | "toolName" | "boundName"> & Partial<Pick<ToolEntry, "annotations">>;

/** What may be seen, by those for whom it is the same. */
export interface Sight {
  /** Equal keys mean equal sight, in every process. */
  readonly key: string;
  /** Names of the servers that may be used, in the order of the configuration. */
  readonly serverNames: readonly string[];
  /** Names of the servers that might be used if the thread had not disabled them. */
  readonly disabledNames: readonly string[];
  /** Whether what a server has besides tools may be listed. */
  readonly mayList: (serverName: string) => boolean;
  /** Whether a tool of one of these servers may be seen; `undefined` when all may. */
  readonly isToolVisible: ((tool: SeenTool) => boolean) | undefined;
}

/** One server as an agent sees it. */
export interface ServerView {
  readonly serverName: string;
  readonly settings: ServerSettings;
  readonly digest: string;
  /** Its visible tools, sorted by raw name. */
  readonly tools: readonly ToolEntry[];
  /** Those of them that are bound in every model call although the server is deferred. */
  readonly alwaysLoaded: readonly ToolEntry[];
  readonly definitionChars: number;
  /** True when it has tools and none of them may be seen: then it is not spoken of. */
  readonly isBlank: boolean;
  /** Whether it has resources that may be listed. */
  readonly hasResources: boolean;
  /** The server's own title. Untrusted. */
  readonly title: string | undefined;
  /** The server's own instructions. Untrusted. */
  readonly instructions: string | undefined;
}

/** What all see who see the same. Derived parts are kept for as long as a server's catalog stays the same. */
export class SharedView {
  readonly catalog: Catalog;
  readonly sight: Sight;
  readonly #settings: ReadonlyMap<string, ServerSettings>;
  readonly #stateOf: StateOf;
  readonly #servers = new WeakMap<ServerCatalog, ServerView>();
  /** Tools that were found to be visible: a search asks about every candidate. */
  readonly #visible = new WeakSet<SeenTool>();
  readonly #names: ReadonlySet<string>;
  #known: { readonly version: number; readonly servers: readonly ServerView[]; readonly definitionChars: number } | undefined;

  constructor(catalog: Catalog, settings: ReadonlyMap<string, ServerSettings>, stateOf: StateOf, sight: Sight) {
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
    return known === undefined || !this.#names.has(serverName) ? undefined : this.#serverView(known);
  }

  isVisible(tool: SeenTool): boolean {
    if (this.#visible.has(tool)) return true;
    if (!this.#names.has(tool.serverName)) return false;
    return this.sight.isToolVisible === undefined || this.sight.isToolVisible(tool);
  }

  /** The known servers and the size of all their definitions. */
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
        tools === known.tools ? known.definitionChars : tools.reduce((sum, entry) => sum + entry.definitionChars, 0),
      isBlank: tools.length === 0 && known.tools.length > 0,
      hasResources: known.snapshot.capabilities?.["resources"] !== undefined && this.sight.mayList(known.serverName),
      title: known.snapshot.serverInfo?.title,
      instructions: known.snapshot.instructions,
    };
    if (isToolVisible !== undefined) for (const tool of tools) this.#visible.add(tool);
    this.#servers.set(known, view);
    return view;
  }
}

/** What one run sees of a catalog. */
export class View {
  readonly catalog: Catalog;
  /** Equal keys mean equal narrowing. */
  readonly key: string;
  /** Names of the servers this run may use, connected or not, in the order of the configuration. */
  readonly serverNames: readonly string[];
  /** Names of the servers that this thread has disabled. */
  readonly disabledNames: readonly string[];
  /** Whether a visible tool that is about to be shown may be: asks the policy's function, when there is one. */
  readonly mayShow: (tool: SeenTool) => boolean;
  /** Whether a function decides what may be shown: its answer may change at any time. */
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

  /** The servers that may be spoken of: not those of which every tool is hidden. */
  spokenServers(): readonly string[] {
    return this.serverNames.filter((serverName) => this.server(serverName)?.isBlank !== true);
  }

  /** The servers that this thread has disabled and that may be spoken of. */
  spokenDisabled(): readonly string[] {
    return this.disabledNames.filter((serverName) => {
      const tools = this.catalog.server(serverName)?.tools ?? [];
      const { isToolVisible } = this.#shared.sight;
      return tools.length === 0 || isToolVisible === undefined || tools.some(isToolVisible);
    });
  }

  /** Settings of a server. */
  settings(serverName: string): ServerSettings {
    return this.#shared.settings(serverName);
  }

  /** State of a server's connection. */
  state(serverName: string): ConnectionState | "unavailable" {
    return this.#shared.state(serverName);
  }

  /** The servers whose tools are known, in the order of the configuration. */
  servers(): readonly ServerView[] {
    return this.#shared.current().servers;
  }

  /** Characters of the definitions of all visible tools. */
  get definitionChars(): number {
    return this.#shared.current().definitionChars;
  }

  /** One server whose tools are known. */
  server(serverName: string): ServerView | undefined {
    return this.#shared.server(serverName);
  }

  /** True when this run may see and use the tool, as far as that can be said without asking a function. */
  isVisible(tool: SeenTool): boolean {
    return this.#shared.isVisible(tool);
  }

  /** True when the tool may be shown. */
  shows(tool: SeenTool): boolean {
    return this.isVisible(tool) && this.mayShow(tool);
  }

  /** The visible tool of a bound name. */
  tool(boundName: string): ToolEntry | undefined {
    const entry = this.catalog.tool(boundName);
    return entry !== undefined && this.isVisible(entry) ? entry : undefined;
  }
}
