import type { Catalog, ServerCatalog } from "../catalog/catalog.js";
import type { ToolEntry } from "../catalog/toolEntry.js";
import { matchGlobs } from "../config/globs.js";
import type { ServerSettings } from "../config/settings.js";
import type { ConnectionState } from "../events.js";

/** Narrows what an agent sees. */
export interface ViewOptions {
  /** Names of the servers it may use. Default: all. */
  readonly servers?: readonly string[] | undefined;
  /** Globs on raw or bound tool names it may use. Default: all. */
  readonly tools?: readonly string[] | undefined;
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
  /** The server's own title. Untrusted. */
  readonly title: string | undefined;
  /** The server's own instructions. Untrusted. */
  readonly instructions: string | undefined;
}

/** What one agent sees of a catalog. Derived parts are kept for as long as a server's catalog stays the same. */
export class View {
  readonly catalog: Catalog;
  /** Equal keys mean equal narrowing. */
  readonly key: string;
  readonly #settings: ReadonlyMap<string, ServerSettings>;
  readonly #stateOf: (serverName: string) => ConnectionState;
  readonly #matchesTool: ((name: string) => boolean) | undefined;
  readonly #servers = new WeakMap<ServerCatalog, ServerView>();
  readonly #names: readonly string[];
  #known: { readonly version: number; readonly servers: readonly ServerView[]; readonly definitionChars: number } | undefined;

  constructor(
    catalog: Catalog,
    settings: ReadonlyMap<string, ServerSettings>,
    stateOf: (serverName: string) => ConnectionState,
    options: ViewOptions,
  ) {
    this.catalog = catalog;
    this.#settings = settings;
    this.#stateOf = stateOf;
    this.#names = [...settings.values()]
      .filter(({ serverName, enabled }) => enabled && (options.servers === undefined || options.servers.includes(serverName)))
      .map(({ serverName }) => serverName);
    this.#matchesTool = options.tools === undefined ? undefined : matchGlobs(options.tools);
    this.key = JSON.stringify([options.servers ?? null, options.tools ?? null]);
  }

  /** Names of the servers this agent may use, connected or not, in the order of the configuration. */
  get serverNames(): readonly string[] {
    return this.#names;
  }

  /** Settings of a server. */
  settings(serverName: string): ServerSettings {
    return this.#settings.get(serverName)!;
  }

  /** State of a server's connection. */
  state(serverName: string): ConnectionState {
    return this.#stateOf(serverName);
  }

  /** The servers whose tools are known, in the order of the configuration. */
  servers(): readonly ServerView[] {
    return this.#current().servers;
  }

  /** Characters of the definitions of all visible tools. */
  get definitionChars(): number {
    return this.#current().definitionChars;
  }

  /** One server whose tools are known. */
  server(serverName: string): ServerView | undefined {
    const known = this.catalog.server(serverName);
    return known === undefined || !this.#names.includes(serverName) ? undefined : this.#serverView(known);
  }

  /** True when this agent may see and use the tool. */
  isVisible({ serverName, toolName, boundName }: Pick<ToolEntry, "serverName" | "toolName" | "boundName">): boolean {
    if (!this.#names.includes(serverName)) return false;
    return this.#matchesTool === undefined || this.#matchesTool(toolName) || this.#matchesTool(boundName);
  }

  /** The visible tool of a bound name. */
  tool(boundName: string): ToolEntry | undefined {
    const entry = this.catalog.tool(boundName);
    return entry !== undefined && this.isVisible(entry) ? entry : undefined;
  }

  #current() {
    if (this.#known?.version !== this.catalog.version) {
      const servers = this.#names.flatMap((serverName) => this.server(serverName) ?? []);
      const definitionChars = servers.reduce((sum, server) => sum + server.definitionChars, 0);
      this.#known = { version: this.catalog.version, servers, definitionChars };
    }
    return this.#known;
  }

  #serverView(known: ServerCatalog): ServerView {
    const cached = this.#servers.get(known);
    if (cached !== undefined) return cached;
    const settings = this.settings(known.serverName);
    const tools = this.#matchesTool === undefined ? known.tools : known.tools.filter((entry) => this.isVisible(entry));
    const view: ServerView = {
      serverName: known.serverName,
      settings,
      digest: known.digest,
      tools,
      alwaysLoaded: tools.filter((entry) => settings.isAlwaysLoaded(entry.toolName)),
      definitionChars:
        tools === known.tools ? known.definitionChars : tools.reduce((sum, entry) => sum + entry.definitionChars, 0),
      title: known.snapshot.serverInfo?.title,
      instructions: known.snapshot.instructions,
    };
    this.#servers.set(known, view);
    return view;
  }
}
