import { nearestOf } from "../text/nearest.js";
import { isRecord } from "../text/isRecord.js";
import type { Caller } from "../call/caller.js";
import type { Permits } from "../call/permits.js";
import type { ServerReads } from "../call/serverReads.js";
import type { View } from "../disclose/view.js";
import type { PromptArgument } from "./commandLine.js";
import { promptSlug, serverSlug, slugTable } from "./slugs.js";

/** A prompt of a server, as a person invokes it. Its texts are untrusted. */
export interface McpCommand {
  /** `mcp__<server>__<prompt>`; typed with a `/` before it. */
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments: readonly PromptArgument[];
  readonly source: "mcp";
  readonly serverName: string;
  /** The prompt's name on its server. */
  readonly promptName: string;
}

export type CommandLookup =
  | { readonly kind: "found"; readonly command: McpCommand }
  /** Does not exist or is denied. `similar` holds names without `/`. */
  | { readonly kind: "unknown"; readonly similar: readonly string[] };

const PREFIX = "mcp__";
const MAX_SIMILAR = 5;

/** Lists the prompts of servers as commands and finds typed ones. */
export class Commands {
  readonly #reads: ServerReads;
  readonly #permits: Permits;
  readonly #servers: ReadonlyMap<string, string>;

  /** @param serverNames - All configured servers: each typed name depends on the whole set. */
  constructor(serverNames: readonly string[], reads: ServerReads, permits: Permits) {
    this.#reads = reads;
    this.#permits = permits;
    this.#servers = slugTable(serverNames, serverSlug);
  }

  /**
   * Commands of these servers that `caller` may use, in server order. A server that fails has none.
   */
  async list(serverNames: readonly string[], caller: Caller): Promise<McpCommand[]> {
    const lists = await Promise.allSettled(
      serverNames.map(async (serverName) =>
        this.#commandsOf(serverName, await this.#reads.list(serverName, "prompts", caller)),
      ),
    );
    caller.signal?.throwIfAborted();
    return lists
      .flatMap((list) => (list.status === "fulfilled" ? list.value : []))
      .filter((command) => this.#mayKnow(command, caller));
  }

  /**
   * Finds the command that a person typed; ignores case when that is unambiguous.
   * @param typed - Without `/`.
   * @throws {McpMiddlewareError} when the server's prompts cannot be listed.
   */
  async find(typed: string, view: View, caller: Caller): Promise<CommandLookup> {
    const serverName = this.serverOf(typed);
    if (serverName === undefined || !view.serverNames.includes(serverName)) {
      const spoken = view.spokenServers();
      const known = [...this.#servers]
        .filter(([, name]) => spoken.includes(name))
        .map(([slug]) => `${PREFIX}${slug}__…`);
      return { kind: "unknown", similar: nearestOf(`${headOf(typed)}__…`, known, MAX_SIMILAR) };
    }
    // A denied list is not requested. For an asked one, only the typed name is looked up and no
    // others are suggested.
    const mayList = this.#permits.decide({ kind: "list", serverName }, caller).kind;
    if (mayList === "deny") return { kind: "unknown", similar: [] };
    const listed = this.#commandsOf(
      serverName,
      await this.#reads.lookUp(serverName, "prompts", caller.signal),
    );
    const commands = listed.filter((command) => this.#mayKnow(command, caller));
    const folded = commands.filter(({ name }) => name.toLowerCase() === typed.toLowerCase());
    const command =
      commands.find(({ name }) => name === typed) ?? (folded.length === 1 ? folded[0] : undefined);
    if (command !== undefined) return { kind: "found", command };
    const names = mayList === "allow" ? commands.map(({ name }) => name) : [];
    const near = [
      ...names.filter((name) => name.startsWith(typed)),
      ...nearestOf(typed, names, MAX_SIMILAR),
    ];
    return {
      kind: "unknown",
      similar: [...new Set(near.length === 0 ? names : near)].slice(0, MAX_SIMILAR),
    };
  }

  serverOf(typed: string): string | undefined {
    return this.#servers.get(headOf(typed).slice(PREFIX.length));
  }

  #commandsOf(serverName: string, prompts: readonly unknown[]): McpCommand[] {
    const slug = [...this.#servers].find(([, name]) => name === serverName)![0];
    const read = new Map(
      prompts.flatMap((prompt) =>
        isRecord(prompt) && isName(prompt["name"]) ? [[prompt["name"], prompt]] : [],
      ),
    );
    return [...slugTable(read.keys(), promptSlug)].map(([promptPart, promptName]) => {
      const { title, description, arguments: declared } = read.get(promptName)!;
      return {
        name: `${PREFIX}${slug}__${promptPart}`,
        ...(typeof title === "string" ? { title } : {}),
        ...(typeof description === "string" ? { description } : {}),
        arguments: readArguments(declared),
        source: "mcp",
        serverName,
        promptName,
      };
    });
  }

  #mayKnow({ serverName, promptName }: McpCommand, caller: Caller): boolean {
    return (
      this.#permits.decide({ kind: "invoke", serverName, promptName, arguments: undefined }, caller)
        .kind !== "deny"
    );
  }
}

/** The typed name up to the `__` after the server, whose typed name has no `__`. */
function headOf(typed: string): string {
  const end = typed.indexOf("__", PREFIX.length + 1);
  return end < 0 ? typed : typed.slice(0, end);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function readArguments(declared: unknown): PromptArgument[] {
  const read = new Map<string, PromptArgument>();
  for (const argument of Array.isArray(declared) ? (declared as unknown[]) : []) {
    if (!isRecord(argument) || !isName(argument["name"]) || read.has(argument["name"])) continue;
    const { name, description, required } = argument;
    read.set(argument["name"], {
      name: String(name),
      ...(typeof description === "string" ? { description } : {}),
      required: required === true,
    });
  }
  return [...read.values()];
}
