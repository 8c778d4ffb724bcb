import { isDeepStrictEqual } from "node:util";

import { AIMessage, HumanMessage, type BaseMessage } from "@langchain/core/messages";

import { askPeople, type AskingParts } from "../call/askPeople.js";
import { approvalOf, askedCall, type Asker, type Permits } from "../call/permits.js";
import type { Requests } from "../call/requests.js";
import { oneLine } from "../catalog/text.js";
import type { ServerSettings } from "../config/settings.js";
import type { View } from "../disclose/view.js";
import { messageOf } from "../errors.js";
import { permissionOf, type Operation } from "../policy/operation.js";
import type { McpAsked, McpDecisions, McpStateUpdate, McpThreadState, ThreadResource } from "../state.js";
import { describeServers, parseChatCommand, type ChatCommand, type ChatCommands } from "./chatCommands.js";
import { readCommandLine, usageOf } from "./commandLine.js";
import type { Commands, McpCommand } from "./commands.js";
import { failureText } from "./failureText.js";
import { parseMentions } from "./parseMentions.js";
import { commandOriginOf, toPromptMessages } from "./promptMessages.js";
import { readMentions, type Reading, type WantedResource } from "./readMentions.js";
import { afterTurn, cachedView, keyOf, type ResourceLimits } from "./threadResources.js";

/** How one agent takes what a person types. */
export interface InputSettings extends ResourceLimits {
  readonly mentions: boolean | ((message: HumanMessage) => boolean);
  /** Whether prompts can be typed as commands. */
  readonly commands: boolean;
  readonly chatCommands: ChatCommands;
  readonly mentionDeadlineMs: number;
}

/** What {@link TurnInput} is made of. */
export interface TurnInputParts {
  readonly settings: InputSettings;
  readonly servers: ReadonlyMap<string, ServerSettings>;
  readonly requests: Requests;
  readonly permits: Permits;
  readonly commands: Commands;
  /** Opens a server anew, for every thread. */
  readonly reconnect: (serverName: string) => Promise<void>;
  /** Why a server cannot be used. */
  readonly errorOf: (serverName: string) => string | undefined;
}

/** What a turn begins with. */
export interface TurnStart {
  readonly state: McpThreadState;
  readonly messages: readonly BaseMessage[];
  readonly view: View;
  readonly asker: Asker;
  readonly asking: AskingParts;
}

/** What became of what a person typed. */
export interface TurnOutcome {
  readonly update: McpStateUpdate;
  /** Messages to be written: with the id of one that is there they replace it. */
  readonly messages: readonly BaseMessage[];
  /** True when the person has been answered, so that the model has nothing to do. */
  readonly isAnswered: boolean;
}

/** A prompt that is about to be got. */
interface Invocation {
  readonly command: McpCommand;
  readonly arguments: Readonly<Record<string, string>>;
}

const HAS_NO_PROMPTS = "has no prompts.";
const COMMAND = /^\s*\/(mcp__\S*)([^]*)$/;

/** What a person types at the beginning of a turn: `/mcp`, prompts as commands, mentions of resources. */
export class TurnInput {
  readonly #parts: TurnInputParts;

  constructor(parts: TurnInputParts) {
    this.#parts = parts;
  }

  /**
   * Takes the newest message of the person, and reads again what changed of the resources that the thread has.
   *
   * Whatever has to be asked is asked at once, before anything is sent to a server; a run that was interrupted for that
   * begins here again.
   *
   * @throws what LangGraph throws to interrupt the run, and the abort reason when it was aborted.
   */
  async take(start: TurnStart): Promise<TurnOutcome> {
    const { settings } = this.#parts;
    const { messages, view } = start;
    const typed = newestTyped(messages);
    if (typed !== undefined) {
      const named = [...view.serverNames, ...view.disabledNames];
      const chat = parseChatCommand(typed.text, named, settings.chatCommands);
      if (chat !== undefined) return this.#chat(chat, start);
    }
    const invocation = typed === undefined ? undefined : await this.#invocation(typed, start);
    if (typeof invocation === "string") return answered(invocation);
    const named = typed === undefined ? [] : this.#mentioned(typed, view);
    const mentions: Mentions = {
      messageId: typed?.id,
      resources: named.slice(0, settings.maxCachedResources),
      overflow: Math.max(0, named.length - settings.maxCachedResources),
    };
    const wanted = this.#toRead(mentions, start);
    const decisions = await this.#ask(invocation, wanted, start);
    const prompt = invocation === undefined ? [] : await this.#getPrompt(invocation, typed!, decisions, start);
    if (typeof prompt === "string") return answered(prompt);
    const update = await this.#read(mentions, wanted, decisions, start);
    return { update, messages: prompt, isAnswered: false };
  }

  async #chat(command: ChatCommand, { state, view }: TurnStart): Promise<TurnOutcome> {
    const { settings, errorOf, reconnect } = this.#parts;
    switch (command.kind) {
      case "problem":
        return answered(command.text);
      case "list":
        return answered(describeServers(view, settings.chatCommands, errorOf));
      case "enable":
      case "disable": {
        const { serverName, kind } = command;
        const before = state.disabledMcpServers ?? [];
        const others = before.filter((name) => name !== serverName);
        const disabledMcpServers = kind === "disable" ? [...others, serverName].sort() : others;
        const text = `Server ${oneLine(serverName, 64)} is ${kind}d in this conversation.`;
        return { ...answered(text), update: { disabledMcpServers } };
      }
      case "reconnect": {
        const name = oneLine(command.serverName, 64);
        try {
          await reconnect(command.serverName);
          return answered(`Server ${name} is connected.`);
        } catch (error) {
          return answered(`Server ${name} could not be connected: ${oneLine(messageOf(error), 500)}`);
        }
      }
    }
  }

  /** The prompt that was typed as a command; text for the person when there is none to be got. */
  async #invocation(typed: HumanMessage, { view, asker }: TurnStart): Promise<Invocation | string | undefined> {
    const { settings, commands } = this.#parts;
    const [, name, line] = (settings.commands ? COMMAND.exec(typed.text) : null) ?? [];
    if (name === undefined) return undefined;
    const shown = oneLine(name, 120);
    const serverName = commands.serverOf(name);
    if (serverName !== undefined && view.disabledNames.includes(serverName)) {
      return `Server ${oneLine(serverName, 64)} is disabled in this conversation. Type /mcp enable ${oneLine(serverName, 64)} to use it.`;
    }
    try {
      const lookup = await commands.find(name, view.serverNames, asker);
      if (lookup.kind === "unknown") {
        const similar = lookup.similar.map((other) => `/${oneLine(other, 120)}`).join(", ");
        return `There is no command /${shown}.${similar === "" ? "" : ` There is: ${similar}.`}`;
      }
      const { command } = lookup;
      const read = readCommandLine(line ?? "", command.arguments);
      return read.kind === "arguments"
        ? { command, arguments: read.arguments }
        : `${capitalised(read.problem)}.\n${describeUsage(command)}`;
    } catch (error) {
      asker.signal?.throwIfAborted();
      return `The command /${shown} cannot be used. ${failureText(error, "its prompts", HAS_NO_PROMPTS)}`;
    }
  }

  /** The resources that a message names, each once. */
  #mentioned(typed: HumanMessage, view: View): WantedResource[] {
    const { mentions } = this.#parts.settings;
    if (mentions === false || (typeof mentions === "function" && !mentions(typed))) return [];
    const named = parseMentions(typed.text, [...view.serverNames, ...view.disabledNames]);
    return [...new Map(named.map(({ serverName, uri }) => [keyOf({ serverName, uri }), { serverName, uri }])).values()];
  }

  /** What has to be read in this turn: what changed, and what is mentioned anew. */
  #toRead({ messageId, resources, overflow }: Mentions, { state, messages, view }: TurnStart): WantedResource[] {
    const { requests } = this.#parts;
    const known = new Map((state._mcpResources?.read ?? []).map((resource) => [keyOf(resource), resource]));
    const freshness = ({ serverName, uri, mark }: ThreadResource) =>
      mark === "" ? "unknown" : requests.freshness(serverName, uri, mark);
    const isNew = (resource: WantedResource): boolean => {
      const before = known.get(keyOf(resource));
      if (before === undefined) return true;
      // A message is taken once; what is mentioned again is read again unless it is known to be the same.
      if (messageId !== undefined && before.messageIds.includes(messageId)) return false;
      return before.isError || freshness(before) !== "unchanged";
    };
    const threadIds = idsOf(messages);
    const isChanged = (resource: ThreadResource): boolean =>
      view.serverNames.includes(resource.serverName) &&
      resource.messageIds.some((id) => threadIds.has(id)) &&
      freshness(resource) === "changed";
    const changed = [...known.values()].filter(isChanged);
    // The last one stands for all that are too many.
    const readable = overflow === 0 ? resources : resources.slice(0, -1);
    return [
      ...new Map(
        [...changed, ...readable.filter(isNew)].map(({ serverName, uri }) => [keyOf({ serverName, uri }), { serverName, uri }]),
      ).values(),
    ];
  }

  /** Asks a person about all that has to be asked, at once. What is denied is not asked. */
  async #ask(
    invocation: Invocation | undefined,
    wanted: readonly WantedResource[],
    { asker, asking, view }: TurnStart,
  ): Promise<McpDecisions> {
    const { permits } = this.#parts;
    const operations: Operation[] = [
      ...(invocation === undefined ? [] : [invokeOf(invocation)]),
      ...wanted.filter(({ serverName }) => view.serverNames.includes(serverName)).map(readOf),
    ];
    const asked: McpAsked = {};
    for (const [order, operation] of operations.entries()) {
      const decision = permits.decide(operation, asker);
      const name = permissionOf(operation);
      if (decision.kind === "ask") asked[name] = askedCall({ operation, decision, name }, order);
    }
    if (Object.keys(asked).length === 0) return {};
    const decisions = await askPeople(asked, asking, asker);
    for (const operation of operations) {
      const decided = decisions[permissionOf(operation)];
      if (decided === undefined || decided.type === "approve") continue;
      permits.audit(operation, permits.decide(operation, asker), asker, decided);
    }
    return decisions;
  }

  /** The messages of a prompt; text for the person when it cannot be got. */
  async #getPrompt(
    { command, arguments: args }: Invocation,
    typed: HumanMessage,
    decisions: McpDecisions,
    { asker }: TurnStart,
  ): Promise<BaseMessage[] | string> {
    const { requests, servers } = this.#parts;
    const { serverName, promptName, name } = command;
    const decided = decisions[permissionOf(invokeOf({ command, arguments: args }))];
    if (decided !== undefined && decided.type !== "approve") return `The command /${name} was not run. ${refusalOf(decided)}`;
    try {
      const result = await requests.getPrompt({ ...asker, ...approvalOf(decided), serverName, promptName, arguments: args });
      const messages = toPromptMessages(result, command, args, typed, servers.get(serverName)!.maxResultChars);
      return messages.length > 0 ? messages : `The command /${name} brought nothing: the prompt is empty.`;
    } catch (error) {
      asker.signal?.throwIfAborted();
      return `The command /${name} failed. ${failureText(error, "the prompt", HAS_NO_PROMPTS)}`;
    }
  }

  /** Reads what has to be read, and says what that changes in the state. */
  async #read(
    { messageId, resources, overflow }: Mentions,
    wanted: readonly WantedResource[],
    decisions: McpDecisions,
    { state, messages, view, asker }: TurnStart,
  ): Promise<McpStateUpdate> {
    const { settings, requests } = this.#parts;
    const before = state._mcpResources?.read ?? [];
    const refused: Reading[] = [];
    const refuse = (resource: WantedResource, why: string): void => {
      refused.push({ ...resource, kind: "failed", mark: "", why });
    };
    const free = wanted.filter((resource) => {
      const decided = decisions[permissionOf(readOf(resource))];
      const isOff = !view.serverNames.includes(resource.serverName);
      if (isOff) refuse(resource, `Server "${oneLine(resource.serverName, 64)}" is disabled in this conversation.`);
      else if (decided !== undefined && decided.type !== "approve") refuse(resource, refusalOf(decided));
      else return true;
      return false;
    });
    if (overflow > 0) {
      refuse(
        resources.at(-1)!,
        `It was not read, and neither were ${overflow} that are mentioned after it: no more than ${settings.maxCachedResources} can be shown at a time.`,
      );
    }
    const askerOf = (resource: WantedResource): Asker => ({ ...asker, ...approvalOf(decisions[permissionOf(readOf(resource))]) });
    const readings = [...(await readMentions(requests, free, askerOf, settings)), ...refused];
    const turn = { messageId, mentioned: resources, readings, messageIds: idsOf(messages) };
    const after = afterTurn(before, turn, settings);
    if (isDeepStrictEqual(after, before)) return {};
    return { _mcpResources: { v: 1, read: after }, cachedMcpResources: cachedView(after) };
  }
}

/** What a message mentions. */
interface Mentions {
  readonly messageId: string | undefined;
  readonly resources: readonly WantedResource[];
  /** Further ones, which are too many. */
  readonly overflow: number;
}

/** The newest message of the person, when nothing has answered it yet and it is as it was typed. */
function newestTyped(messages: readonly BaseMessage[]): HumanMessage | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index]!;
    if (AIMessage.isInstance(message)) return undefined;
    if (HumanMessage.isInstance(message)) return commandOriginOf(message) === undefined ? message : undefined;
  }
  return undefined;
}

function answered(text: string): TurnOutcome {
  return { update: {}, messages: [new AIMessage(text)], isAnswered: true };
}

function invokeOf({ command: { serverName, promptName }, arguments: args }: Invocation): Operation {
  return { kind: "invoke", serverName, promptName, arguments: args };
}

function readOf({ serverName, uri }: WantedResource): Operation {
  return { kind: "read", serverName, uri };
}

function refusalOf({ type, message }: McpDecisions[string]): string {
  if (type === "refuse") return `${message ?? "It was not approved"}.`;
  const words = message === undefined || message === "" ? "" : ` They said: ${message}`;
  return `A person did not allow it.${words}`;
}

/** How a command is typed, for the person. */
function describeUsage({ name, arguments: declared }: McpCommand): string {
  const lines = declared.map(({ name: argument, description, required }) => {
    const about = [required ? "required" : "", description === undefined ? "" : oneLine(description, 200)].filter(
      (part) => part !== "",
    );
    return `  ${oneLine(argument, 64)}${about.length === 0 ? "" : `: ${about.join("; ")}`}`;
  });
  return [`Usage: /${name} ${oneLine(usageOf(declared), 500)}`.trimEnd(), ...lines].join("\n");
}

function idsOf(messages: readonly BaseMessage[]): ReadonlySet<string> {
  return new Set(messages.flatMap(({ id }) => id ?? []));
}

function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
