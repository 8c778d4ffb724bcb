import type { HumanMessage } from "@langchain/core/messages";

import { oneLine } from "../text/clean.js";
import type { View } from "../disclose/view.js";
import type { Caller } from "../call/caller.js";
import { readCommandLine, usageOf } from "./commandLine.js";
import type { Commands, McpCommand } from "./commands.js";
import { failureText } from "../call/failureText.js";
import { parseMentions } from "./parseMentions.js";
import { textsOf } from "./typed.js";

export interface Invocation {
  readonly serverName: string;
  readonly promptName: string;
  /** As typed, without `/`. */
  readonly name: string;
  readonly arguments: Record<string, string>;
}

/** Follows the name of a server that has no prompts. */
export const HAS_NO_PROMPTS = "has no prompts.";

const COMMAND = /^\s*\/(mcp__\S*)([^]*)$/;

/**
 * Finds the prompt that a message invokes.
 * @returns Text for the person when the prompt cannot be used; `undefined` for a message that is
 * not a command.
 * @throws only the abort reason.
 */
export async function readCommand(
  typed: HumanMessage,
  commands: Commands,
  view: View,
  caller: Caller,
): Promise<Invocation | string | undefined> {
  const [, name, line = ""] = COMMAND.exec(textsOf(typed)[0] ?? "") ?? [];
  if (name === undefined) return undefined;
  const shown = oneLine(name, 120);
  const serverName = commands.serverOf(name);
  if (serverName !== undefined && view.disabledNames.includes(serverName)) {
    const server = oneLine(serverName, 64);
    return `Server ${server} is disabled in this conversation. Type /mcp enable ${server} to use it.`;
  }
  try {
    const lookup = await commands.find(name, view, caller);
    if (lookup.kind === "unknown") {
      const similar = lookup.similar.map((other) => `/${oneLine(other, 120)}`).join(", ");
      return `There is no command /${shown}.${similar === "" ? "" : ` There is: ${similar}.`}`;
    }
    return invocationOf(lookup.command, line, view);
  } catch (error) {
    caller.signal?.throwIfAborted();
    return `The command /${shown} cannot be used. ${failureText(error, "its prompts", HAS_NO_PROMPTS)}`;
  }
}

function invocationOf(command: McpCommand, line: string, view: View): Invocation | string {
  const { serverName, promptName, name, arguments: declared } = command;
  let read = readCommandLine(line, declared);
  if (read.kind === "problem") {
    // An attached resource need not be an argument.
    const rest = withoutMentions(line, view.serverNames);
    if (rest !== line) read = readCommandLine(rest, declared);
  }
  if (read.kind === "problem") return `${capitalised(read.problem)}.\n${describeUsage(command)}`;
  return { serverName, promptName, name, arguments: { ...read.arguments } };
}

function withoutMentions(line: string, serverNames: readonly string[]): string {
  let rest = "";
  let from = 0;
  for (const { start, end } of parseMentions(line, serverNames)) {
    rest += line.slice(from, start);
    from = end;
  }
  return rest + line.slice(from);
}

function describeUsage({ name, arguments: declared }: McpCommand): string {
  const lines = declared.map(({ name: argument, description = "", required }) => {
    const about = [required ? "required" : "", oneLine(description, 200)].filter(
      (part) => part !== "",
    );
    return `  ${oneLine(argument, 64)}${about.length === 0 ? "" : `: ${about.join("; ")}`}`;
  });
  return [`Usage: /${name} ${oneLine(usageOf(declared), 500)}`.trimEnd(), ...lines].join("\n");
}

function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
