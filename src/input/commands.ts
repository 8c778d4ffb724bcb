import { nearestOf } from "../text/nearest.js";
import { isRecord } from "../text/isRecord.js";
import type { Caller } from "../call/caller.js";
import type { Permits } from "../call/permits.js";
import type { ServerReads } from "../call/serverReads.js";
import type { View } from "../disclose/view.js";
import type { PromptArgument } from "./commandLine.js";
import { promptSlug, serverSlug, slugTable } from "./slugs.js";

/** A prompt of a server, as a person invokes it. Texts are the server's and untrusted. */
export interface McpCommand {
  /** `mcp__<server>__<prompt>`, typed with a `/` before it. */
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments: readonly PromptArgument[];
  readonly source: "mcp";
  readonly serverName: string;
  /** The server's own name of the prompt. */
  readonly promptName: string;
}

/** What a typed command is. */
export type CommandLookup =
  | { readonly kind: "found"; readonly command: McpCommand }
  /** None, or none that may be known. `similar` are names without `/`. */
  | { readonly kind: "unknown"; readonly similar: readonly string[] };

const PREFIX = "mcp__";
const MAX_SIMILAR = 5;

/** The prompts of servers as commands: which there are, and which one a typed name means. */
export class Commands {
  readonly #reads: ServerReads;
  readonly #permits: Permits;
  readonly #servers: ReadonlyMap<string, string>;

  /** @param serverNames - Names of all configured servers: how each is typed depends on all. */
  constructor(serverNames: readonly string[], reads: ServerReads, permits: Permits) {
    this.#reads = reads;
    this.#permits = permits;
    this.#servers = slugTable(serverNames, serverSlug);
  }

  /** The commands of these servers that `caller` may use, in the order of the servers. A server that fails has none. */
  async list(serverNames: readonly string[], caller: Caller): Promise<McpCommand[]> {
    const lists = await Promise.allSettled(
      serverNames.map(async (serverName) => this.#commandsOf(serverName, await this.#reads.list(serverName, "prompts", caller))),
    );
    caller.signal?.throwIfAborted();
    return lists
      .flatMap((list) => (list.status === "fulfilled" ? list.value : []))
      .filter((command) => this.#mayKnow(command, caller));
  }

  /**
   * The command that is meant by a typed name.
   *
   * @param typed - Without `/`.
   * @param view - What may be meant.
   * @throws {McpMiddlewareError} when the server's prompts cannot be listed.
   */
  async find(typed: string, view: View, caller: Caller): Promise<CommandLookup> {
    const serverName = this.serverOf(typed);
    if (serverName === undefined || !view.serverNames.includes(serverName)) {
      const spoken = view.spokenServers();
      const known = [...this.#servers].filter(([, name]) => spoken.includes(name)).map(([slug]) => `${PREFIX}${slug}__…`);
      return { kind: "unknown", similar: nearestOf(`${headOf(typed)}__…`, known, MAX_SIMILAR) };
    }
    // Where lists are denied nothing is sent; where they are asked, what was typed is looked up and nothing else told.
    const mayList = this.#permits.decide({ kind: "list", serverName }, caller).kind;
    if (mayList === "deny") return { kind: "unknown", similar: [] };
    const listed = this.#commandsOf(serverName, await this.#reads.lookUp(serverName, "prompts", caller.signal));
    const commands = listed.filter((command) => this.#mayKnow(command, caller));
    const folded = commands.filter(({ name }) => name.toLowerCase() === typed.toLowerCase());
    const command = commands.find(({ name }) => name === typed) ?? (folded.length === 1 ? folded[0] : undefined);
    if (command !== undefined) return { kind: "found", command };
    const names = mayList === "allow" ? commands.map(({ name }) => name) : [];
    const near = [...names.filter((name) => name.startsWith(typed)), ...nearestOf(typed, names, MAX_SIMILAR)];
    return { kind: "unknown", similar: [...new Set(near.length === 0 ? names : near)].slice(0, MAX_SIMILAR) };
  }

  /** The configured server that a typed name begins with. */
  serverOf(typed: string): string | undefined {
    return this.#servers.get(headOf(typed).slice(PREFIX.length));
  }

  #commandsOf(serverName: string, prompts: readonly unknown[]): McpCommand[] {
    const slug = [...this.#servers].find(([, name]) => name === serverName)![0];
    const read = new Map(
      prompts.flatMap((prompt) => (isRecord(prompt) && isName(prompt["name"]) ? [[prompt["name"], prompt]] : [])),
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
    return this.#permits.decide({ kind: "invoke", serverName, promptName, arguments: undefined }, caller).kind !== "deny";
  }
}

/** The typed name up to the `__` behind the server: no server is typed with one. */
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
