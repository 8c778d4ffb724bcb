import type { ToolMessage } from "@langchain/core/messages";
import { Command, isCommand, Send } from "@langchain/langgraph";

import { PROTECTED_KEYS } from "../state.js";

/**
 * Removes state keys that only this package writes from another tool's `Command`, also from its
 * `Send`s.
 */
export function withoutProtectedKeys(result: ToolMessage | Command): ToolMessage | Command {
  if (!isCommand(result)) return result;
  const { graph, resume } = result;
  const update = cleanUpdate(result.update);
  const targets = Array.isArray(result.goto) ? result.goto : [result.goto];
  const cleaned = targets.map(cleanSend);
  const isSame =
    update === result.update && cleaned.every((target, index) => target === targets[index]);
  if (isSame) return result;
  return new Command({
    ...(update === undefined ? {} : { update: update as Record<string, unknown> }),
    ...(result.goto === undefined ? {} : { goto: cleaned as string[] }),
    ...(graph === undefined ? {} : { graph }),
    ...(resume === undefined ? {} : { resume }),
  });
}

function cleanUpdate(update: unknown): unknown {
  if (typeof update !== "object" || update === null) return update;
  const entries: [string, unknown][] = Array.isArray(update)
    ? (update as [string, unknown][])
    : Object.entries(update);
  if (!entries.some(([key]) => PROTECTED_KEYS.includes(key))) return update;
  return Object.fromEntries(entries.filter(([key]) => !PROTECTED_KEYS.includes(key)));
}

function cleanSend<Node>(node: Node): Node | Send {
  if (!(node instanceof Send)) return node;
  const args = cleanUpdate(node.args);
  return args === node.args ? node : new Send(node.node, args);
}
