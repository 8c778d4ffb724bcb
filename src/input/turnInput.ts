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
import type {
  McpAsked,
  McpDecisions,
  McpStateUpdate,
  McpThreadState,
  McpTyped,
  ThreadResource,
} from "../state.js";
import {
  describeServers,
  parseChatCommand,
  type ChatCommand,
  type ChatCommands,
} from "./chatCommands.js";
import type { Commands } from "./commands.js";
import { HAS_NO_PROMPTS, readCommand, type Invocation } from "./commandText.js";
import { failureText } from "../call/failureText.js";
import { parseMentions } from "./parseMentions.js";
import { toPromptMessages } from "./promptMessages.js";
import { readMentions, type Reading } from "./readMentions.js";
import { afterTurn, cachedView, keyOf, type ResourceLimits } from "./threadResources.js";
import { answerTo, newestTyped, textsOf } from "./typed.js";

export interface InputSettings extends ResourceLimits {
  readonly mentions: boolean | ((message: HumanMessage) => boolean);
  /** Whether prompts can be typed as commands. */
  readonly commands: boolean;
  readonly chatCommands: ChatCommands;
  readonly mentionDeadlineMs: number;
}

interface TurnInputParts {
  readonly servers: ReadonlyMap<string, ServerSettings>;
  readonly reads: ServerReads;
  readonly permits: Permits;
  readonly commands: Commands;
  readonly pool: ConnectionPool;
}

type HubOfInput = Omit<TurnInputParts, "servers"> & {
  readonly settings: Pick<TurnInputParts, "servers">;
};

export interface TurnStart {
  readonly state: McpThreadState;
  readonly messages: readonly BaseMessage[];
  readonly view: View;
  readonly caller: Caller;
  /** Whether a person wrote the messages. Default: true. */
  readonly isTyped?: boolean;
}

/** Result of handling typed input. */
export interface TurnOutcome {
  readonly update: McpStateUpdate;
  /** Messages to write. One with an existing id replaces that message. */
  readonly messages: readonly BaseMessage[];
  /** True when the person has an answer and no model call is needed. */
  readonly isAnswered: boolean;
}

/** The state update of an outcome, with its messages when there are any. */
export function writtenBy({
  update,
  messages,
}: TurnOutcome): McpStateUpdate & { messages?: BaseMessage[] } {
  return { ...update, ...(messages.length === 0 ? {} : { messages: [...messages] }) };
}

type Plan = Omit<McpTyped, "asked">;

/**
 * Handles what a person types at the start of a turn: `/mcp`, prompts as commands, mentions of
 * resources. The plan is stored before anybody is asked, so that an answer applies to what was
 * asked, even in another process.
 */
export class TurnInput {
  readonly #parts: TurnInputParts & { readonly settings: InputSettings };

  constructor(
    { reads, permits, commands, pool, settings: { servers } }: HubOfInput,
    settings: InputSettings,
  ) {
    this.#parts = { reads, permits, commands, pool, servers, settings };
  }

  /**
   * Handles the person's newest message, and reads changed resources of the thread again. When a
   * person must be asked, sends nothing and waits for {@link answered}.
   * @throws only the abort reason.
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
    const invocation =
      typed === undefined || !settings.commands
        ? undefined
        : await readCommand(typed, commands, view, caller);
    if (typeof invocation === "string") return cleared(state, answered(typed, invocation));
    const plan = this.#plan(typed, invocation, start);
    const asked = this.#asked(plan, start);
    if (Object.keys(asked).length === 0)
      return cleared(state, await this.#carryOut(plan, {}, start));
    return { update: { _mcpTyped: { ...plan, asked } }, messages: [], isAnswered: false };
  }

  /**
   * Carries out the plan of {@link take}, as far as a person approved it.
   * @param decisions - By permission.
   * @throws only the abort reason.
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

  async #chat(
    command: ChatCommand,
    typed: HumanMessage,
    { state, view }: TurnStart,
  ): Promise<TurnOutcome> {
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
          return answered(
            typed,
            `Server ${name} could not be connected: ${oneLine(messageOf(error), 500)}`,
          );
        }
      }
    }
  }

  #plan(
    typed: HumanMessage | undefined,
    invocation: Invocation | undefined,
    start: TurnStart,
  ): Plan {
    const { maxCachedResources } = this.#parts.settings;
    const named = typed === undefined ? [] : this.#mentioned(typed, start.view);
    const mentioned = named.slice(0, maxCachedResources);
    const overflow = named.length - mentioned.length;
    // The last one reports those over the limit.
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

  /** Resources that a message mentions, each once. */
  #mentioned(typed: HumanMessage, view: View): ResourceRef[] {
    const { mentions } = this.#parts.settings;
    if (mentions === false || (typeof mentions === "function" && !mentions(typed))) return [];
    const serverNames = [...view.serverNames, ...view.disabledNames];
    return distinct(textsOf(typed).flatMap((text) => parseMentions(text, serverNames)));
  }

  /** Resources to read: changed ones and new mentions. */
  #toRead(
    messageId: string | undefined,
    mentioned: readonly ResourceRef[],
    { state, messages, view }: TurnStart,
  ): ResourceRef[] {
    const { reads } = this.#parts;
    const known = new Map(
      (state._mcpResources?.read ?? []).map((resource) => [keyOf(resource), resource]),
    );
    const freshness = ({ serverName, uri, mark }: ThreadResource) =>
      mark === "" ? "unknown" : reads.freshness({ serverName, uri }, mark);
    const isNew = (resource: ResourceRef): boolean => {
      const before = known.get(keyOf(resource));
      if (before === undefined) return true;
      // Handles each message once. A new mention is read again unless the resource is known to be
      // unchanged.
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

  /**
   * Operations of a plan that a person must approve, by permission. Leaves out denied ones and
   * disabled servers.
   */
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

  /** Gets the prompt and reads the resources of a plan. The policy decides about each again. */
  async #carryOut(plan: Plan, decisions: McpDecisions, start: TurnStart): Promise<TurnOutcome> {
    const { messageId, invocation } = plan;
    const typed = start.messages.find(({ id }) => id !== undefined && id === messageId) as
      HumanMessage | undefined;
    const prompt =
      invocation === undefined || typed === undefined
        ? []
        : await this.#getPrompt(invocation, typed, decisions, start);
    if (typeof prompt === "string") return answered(typed, prompt);
    return {
      update: await this.#read(plan, decisions, start),
      messages: prompt,
      isAnswered: false,
    };
  }

  /** The messages of a prompt, or text for the person when it fails. */
  async #getPrompt(
    invocation: Invocation,
    typed: HumanMessage,
    decisions: McpDecisions,
    { caller }: TurnStart,
  ): Promise<BaseMessage[] | string> {
    const { reads, servers } = this.#parts;
    const { serverName, promptName, name, arguments: args } = invocation;
    const decided = decisions[permissionOf(invokeOf(invocation))];
    if (decided !== undefined && decided.type !== "approve")
      return `The command /${name} was not run. ${refusalOf(decided)}`;
    try {
      const result = await reads.getPrompt(serverName, promptName, args, {
        ...caller,
        ...approvalOf(decided),
      });
      const messages = toPromptMessages(
        result,
        invocation,
        typed,
        servers.get(serverName)!.maxResultChars,
      );
      return messages.length > 0
        ? messages
        : `The command /${name} brought nothing: the prompt is empty.`;
    } catch (error) {
      caller.signal?.throwIfAborted();
      return `The command /${name} failed. ${failureText(error, "the prompt", HAS_NO_PROMPTS)}`;
    }
  }

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
      // Contents read before stay hidden while their server is disabled, and come back with it.
      if (!isOff) refuse(resource, refusalOf(decided!));
      else if (!before.some((known) => keyOf(known) === keyOf(resource)))
        refuse(resource, NOT_READ_WHILE_DISABLED);
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
    const after = afterTurn(
      before,
      { messageId, mentioned, readings, messageIds: idsOf(messages) },
      settings,
    );
    if (isDeepStrictEqual(after, before)) return {};
    return { _mcpResources: { v: 1, read: after }, cachedMcpResources: cachedView(after) };
  }
}

const NOT_READ_WHILE_DISABLED =
  "It was not read, for its server is disabled in this conversation. Mention it again when that is enabled.";

/** Removes a waiting plan from the state. */
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

function distinct(resources: readonly ResourceRef[]): ResourceRef[] {
  return [
    ...new Map(
      resources.map(({ serverName, uri }) => [keyOf({ serverName, uri }), { serverName, uri }]),
    ).values(),
  ];
}

function idsOf(messages: readonly BaseMessage[]): ReadonlySet<string> {
  return new Set(messages.flatMap(({ id }) => id ?? []));
}
