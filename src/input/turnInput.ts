import { isDeepStrictEqual } from "node:util";

import type { BaseMessage, HumanMessage } from "@langchain/core/messages";

import { approvalOf, type Caller } from "../call/caller.js";
import { askedCall, type Permits } from "../call/permits.js";
import type { ResourceRef, ServerReads } from "../call/serverReads.js";
import { oneLine } from "../text/clean.js";
import type { ServerSettings } from "../config/settings.js";
import type { ConnectionPool } from "../connect/pool.js";
import type { View } from "../disclose/view.js";
import { messageOf } from "../errors.js";
import { permissionOf, type Operation } from "../policy/operation.js";
import type { McpAsked, McpDecisions, McpStateUpdate, McpThreadState, McpTyped, ThreadResource } from "../state.js";
import { describeServers, parseChatCommand, type ChatCommand, type ChatCommands } from "./chatCommands.js";
import type { Commands } from "./commands.js";
import { HAS_NO_PROMPTS, readCommand, type Invocation } from "./commandText.js";
import { failureText } from "../call/failureText.js";
import { parseMentions } from "./parseMentions.js";
import { toPromptMessages } from "./promptMessages.js";
import { readMentions, type Reading } from "./readMentions.js";
import { afterTurn, cachedView, keyOf, type ResourceLimits } from "./threadResources.js";
import { answerTo, newestTyped, textsOf } from "./typed.js";

/** How one agent takes what a person types. */
export interface InputSettings extends ResourceLimits {
  readonly mentions: boolean | ((message: HumanMessage) => boolean);
  /** Whether prompts can be typed as commands. */
  readonly commands: boolean;
  readonly chatCommands: ChatCommands;
  readonly mentionDeadlineMs: number;
}

/** The parts of a hub that take typed input. */
interface TurnInputParts {
  readonly servers: ReadonlyMap<string, ServerSettings>;
  readonly reads: ServerReads;
  readonly permits: Permits;
  readonly commands: Commands;
  readonly pool: ConnectionPool;
}

type HubOfInput = Omit<TurnInputParts, "servers"> & { readonly settings: Pick<TurnInputParts, "servers"> };

/** The thread and the run in which something was typed. */
export interface TurnStart {
  readonly state: McpThreadState;
  readonly messages: readonly BaseMessage[];
  readonly view: View;
  readonly caller: Caller;
  /** Whether the messages are a person's. Default true. */
  readonly isTyped?: boolean;
}

/** What became of what a person typed. */
export interface TurnOutcome {
  readonly update: McpStateUpdate;
  /** Messages to be written: with the id of one that is there they replace it. */
  readonly messages: readonly BaseMessage[];
  /** True when the person has been answered, so that the model has nothing to do. */
  readonly isAnswered: boolean;
}

/** What an outcome writes to a thread: its state, and its messages where there are any. */
export function writtenBy({ update, messages }: TurnOutcome): McpStateUpdate & { messages?: BaseMessage[] } {
  return { ...update, ...(messages.length === 0 ? {} : { messages: [...messages] }) };
}

type Plan = Omit<McpTyped, "asked">;

/**
 * What a person types at the beginning of a turn: `/mcp`, prompts as commands, mentions of resources.
 *
 * In two steps: what has to be asked is written down before anybody is asked, so that an answer is for what was asked
 * whatever the policy, the servers and the thread are by then, in this process or another.
 */
export class TurnInput {
  readonly #parts: TurnInputParts & { readonly settings: InputSettings };

  constructor({ reads, permits, commands, pool, settings: { servers } }: HubOfInput, settings: InputSettings) {
    this.#parts = { reads, permits, commands, pool, servers, settings };
  }

  /**
   * Takes the newest message of the person, and reads again what changed of the resources that the thread has. When
   * anything has to be asked nothing is sent, and all waits for {@link answered}.
   *
   * @throws only the abort reason when the run was aborted.
   */
  async take(start: TurnStart): Promise<TurnOutcome> {
    const { settings, commands } = this.#parts;
    const { messages, view, state, caller, isTyped = true } = start;
    const typed = isTyped ? newestTyped(messages) : undefined;
    if (typed !== undefined) {
      const named = [...view.spokenServers(), ...view.spokenDisabled()];
      const chat = parseChatCommand(textsOf(typed)[0] ?? "", named, settings.chatCommands);
      if (chat !== undefined) return this.#chat(chat, typed, start);
    }
    const invocation = typed === undefined || !settings.commands ? undefined : await readCommand(typed, commands, view, caller);
    if (typeof invocation === "string") return cleared(state, answered(typed, invocation));
    const plan = this.#plan(typed, invocation, start);
    const asked = this.#asked(plan, start);
    if (Object.keys(asked).length === 0) return cleared(state, await this.#carryOut(plan, {}, start));
    return { update: { _mcpTyped: { ...plan, asked } }, messages: [], isAnswered: false };
  }

  /**
   * Carries out what {@link take} wrote down, as far as a person approved it.
   *
   * @param decisions - The person's, by permission.
   * @throws only the abort reason when the run was aborted.
   */
  async answered(typed: McpTyped, decisions: McpDecisions, start: TurnStart): Promise<TurnOutcome> {
    const { state, caller } = start;
    const plan: Plan = typed;
    const { permits } = this.#parts;
    for (const operation of operationsOf(plan)) {
      const decided = decisions[permissionOf(operation)];
      if (decided === undefined || decided.type === "approve") continue;
      permits.audit(operation, permits.decide(operation, caller), caller, decided);
    }
    return cleared(state, await this.#carryOut(plan, decisions, start));
  }

  async #chat(command: ChatCommand, typed: HumanMessage, { state, view }: TurnStart): Promise<TurnOutcome> {
    const { settings, pool } = this.#parts;
    switch (command.kind) {
      case "problem":
        return answered(typed, command.text);
      case "list":
        return answered(typed, describeServers(view, settings.chatCommands, pool));
      case "enable":
      case "disable": {
        const { serverName, kind } = command;
        const others = (state.disabledMcpServers ?? []).filter((name) => name !== serverName);
        const disabledMcpServers = kind === "disable" ? [...others, serverName].sort() : others;
        const text = `Server ${oneLine(serverName, 64)} is ${kind}d in this conversation.`;
        return { ...answered(typed, text), update: { disabledMcpServers } };
      }
      case "reconnect": {
        const name = oneLine(command.serverName, 64);
        try {
          await pool.connection(command.serverName).reconnect();
          return answered(typed, `Server ${name} is connected.`);
        } catch (error) {
          return answered(typed, `Server ${name} could not be connected: ${oneLine(messageOf(error), 500)}`);
        }
      }
    }
  }

  /** What is to be done in this turn. */
  #plan(typed: HumanMessage | undefined, invocation: Invocation | undefined, start: TurnStart): Plan {
    const { maxCachedResources } = this.#parts.settings;
    const named = typed === undefined ? [] : this.#mentioned(typed, start.view);
    const mentioned = named.slice(0, maxCachedResources);
    const overflow = named.length - mentioned.length;
    // The last one stands for all that are too many.
    const readable = overflow === 0 ? mentioned : mentioned.slice(0, -1);
    return {
      v: 1,
      ...(typed?.id === undefined ? {} : { messageId: typed.id }),
      ...(invocation === undefined ? {} : { invocation }),
      mentioned,
      overflow,
      wanted: this.#toRead(typed?.id, readable, start),
    };
  }

  /** The resources that a message names, each once. */
  #mentioned(typed: HumanMessage, view: View): ResourceRef[] {
    const { mentions } = this.#parts.settings;
    if (mentions === false || (typeof mentions === "function" && !mentions(typed))) return [];
    const serverNames = [...view.serverNames, ...view.disabledNames];
    return distinct(textsOf(typed).flatMap((text) => parseMentions(text, serverNames)));
  }

  /** What has to be read: what changed, and what is mentioned anew. */
  #toRead(messageId: string | undefined, mentioned: readonly ResourceRef[], { state, messages, view }: TurnStart): ResourceRef[] {
    const { reads } = this.#parts;
    const known = new Map((state._mcpResources?.read ?? []).map((resource) => [keyOf(resource), resource]));
    const freshness = ({ serverName, uri, mark }: ThreadResource) =>
      mark === "" ? "unknown" : reads.freshness({ serverName, uri }, mark);
    const isNew = (resource: ResourceRef): boolean => {
      const before = known.get(keyOf(resource));
      if (before === undefined) return true;
      // A message is taken once; what is mentioned again is read again unless it is known to be the same.
      if (messageId !== undefined && before.messageIds.includes(messageId)) return false;
      return before.isError || before.failure !== undefined || freshness(before) !== "unchanged";
    };
    const threadIds = idsOf(messages);
    const isChanged = (resource: ThreadResource): boolean =>
      view.serverNames.includes(resource.serverName) &&
      resource.messageIds.some((id) => threadIds.has(id)) &&
      freshness(resource) === "changed";
    return distinct([...[...known.values()].filter(isChanged), ...mentioned.filter(isNew)]);
  }

  /** What of a plan has to be asked, by permission. What is denied, or disabled, is not. */
  #asked(plan: Plan, { caller, view }: TurnStart): McpAsked {
    const { permits } = this.#parts;
    const asked: McpAsked = {};
    for (const [order, operation] of operationsOf(plan).entries()) {
      if (!view.serverNames.includes(operation.serverName)) continue;
      const decision = permits.decide(operation, caller);
      const name = permissionOf(operation);
      if (decision.kind === "ask") asked[name] = askedCall({ operation, decision, name }, order);
    }
    return asked;
  }

  /** Gets the prompt and reads the resources of a plan. The gate decides about each again. */
  async #carryOut(plan: Plan, decisions: McpDecisions, start: TurnStart): Promise<TurnOutcome> {
    const { messageId, invocation } = plan;
    const typed = start.messages.find(({ id }) => id !== undefined && id === messageId) as HumanMessage | undefined;
    const prompt =
      invocation === undefined || typed === undefined ? [] : await this.#getPrompt(invocation, typed, decisions, start);
    if (typeof prompt === "string") return answered(typed, prompt);
    return { update: await this.#read(plan, decisions, start), messages: prompt, isAnswered: false };
  }

  /** The messages of a prompt; text for the person when it cannot be got. */
  async #getPrompt(
    invocation: Invocation,
    typed: HumanMessage,
    decisions: McpDecisions,
    { caller }: TurnStart,
  ): Promise<BaseMessage[] | string> {
    const { reads, servers } = this.#parts;
    const { serverName, promptName, name, arguments: args } = invocation;
    const decided = decisions[permissionOf(invokeOf(invocation))];
    if (decided !== undefined && decided.type !== "approve") return `The command /${name} was not run. ${refusalOf(decided)}`;
    try {
      const result = await reads.getPrompt(serverName, promptName, args, { ...caller, ...approvalOf(decided) });
      const messages = toPromptMessages(result, invocation, typed, servers.get(serverName)!.maxResultChars);
      return messages.length > 0 ? messages : `The command /${name} brought nothing: the prompt is empty.`;
    } catch (error) {
      caller.signal?.throwIfAborted();
      return `The command /${name} failed. ${failureText(error, "the prompt", HAS_NO_PROMPTS)}`;
    }
  }

  /** Reads what has to be read, and says what that changes in the state. */
  async #read(
    { messageId, mentioned, overflow, wanted }: Plan,
    decisions: McpDecisions,
    { state, messages, view, caller }: TurnStart,
  ): Promise<McpStateUpdate> {
    const { settings, reads } = this.#parts;
    const before = state._mcpResources?.read ?? [];
    const refused: Reading[] = [];
    const refuse = (resource: ResourceRef, why: string): void => {
      refused.push({ ...resource, kind: "failed", mark: "", why });
    };
    const free = wanted.filter((resource) => {
      const decided = decisions[permissionOf(readOf(resource))];
      const isOff = !view.serverNames.includes(resource.serverName);
      if (!isOff && (decided === undefined || decided.type === "approve")) return true;
      // What was read before is hidden while its server is disabled, and comes back with it.
      if (!isOff) refuse(resource, refusalOf(decided!));
      else if (!before.some((known) => keyOf(known) === keyOf(resource))) refuse(resource, NOT_READ_WHILE_DISABLED);
      return false;
    });
    const { maxCachedResources: most } = settings;
    if (overflow > 0) {
      const others = `and neither were ${overflow} that are mentioned after it: no more than ${most} can be shown at a time`;
      refuse(mentioned.at(-1)!, `It was not read, ${others}.`);
    }
    const callerOf = (resource: ResourceRef): Caller => ({
      ...caller,
      ...approvalOf(decisions[permissionOf(readOf(resource))]),
    });
    const readings = [...(await readMentions(reads, free, callerOf, settings)), ...refused];
    const after = afterTurn(before, { messageId, mentioned, readings, messageIds: idsOf(messages) }, settings);
    if (isDeepStrictEqual(after, before)) return {};
    return { _mcpResources: { v: 1, read: after }, cachedMcpResources: cachedView(after) };
  }
}

const NOT_READ_WHILE_DISABLED =
  "It was not read, for its server is disabled in this conversation. Mention it again when that is enabled.";

/** The outcome of a turn in which nothing waits any more. */
function cleared({ _mcpTyped }: McpThreadState, outcome: TurnOutcome): TurnOutcome {
  if ((_mcpTyped ?? undefined) === undefined) return outcome;
  return { ...outcome, update: { ...outcome.update, _mcpTyped: null } };
}

function answered(typed: HumanMessage | undefined, text: string): TurnOutcome {
  return { update: {}, messages: [answerTo(typed, text)], isAnswered: true };
}

function operationsOf({ invocation, wanted }: Plan): Operation[] {
  return [...(invocation === undefined ? [] : [invokeOf(invocation)]), ...wanted.map(readOf)];
}

function invokeOf({ serverName, promptName, arguments: args }: Invocation): Operation {
  return { kind: "invoke", serverName, promptName, arguments: args };
}

function readOf({ serverName, uri }: ResourceRef): Operation {
  return { kind: "read", serverName, uri };
}

function refusalOf({ type, message }: McpDecisions[string]): string {
  if (type === "refuse") return `${message ?? "It was not approved"}.`;
  const words = message === undefined || message === "" ? "" : ` They said: ${message}`;
  return `A person did not allow it.${words}`;
}

/** Each resource once, in order. */
function distinct(resources: readonly ResourceRef[]): ResourceRef[] {
  return [...new Map(resources.map(({ serverName, uri }) => [keyOf({ serverName, uri }), { serverName, uri }])).values()];
}

function idsOf(messages: readonly BaseMessage[]): ReadonlySet<string> {
  return new Set(messages.flatMap(({ id }) => id ?? []));
}
