import type { BaseMessage } from "@langchain/core/messages";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

import type { CatalogDiff } from "../catalog/changes.js";
import { oneLine } from "../text/clean.js";
import type { Strategy } from "../config/agentOptions.js";
import type { Note } from "../state.js";
import { searchName } from "./listing.js";

const OPEN = "<MCP_TOOLS_CHANGED>\n";
const CLOSE = "</MCP_TOOLS_CHANGED>";
const MAX_NOTE_CHARS = 500;

/** A change of one server since the thread was last told. */
export interface ServerChange {
  readonly serverName: string;
  /** `"joined"`: new to the thread. */
  readonly kind: "joined" | "changed";
  readonly toolCount: number;
  readonly isAlwaysLoaded: boolean;
  /** By bound name. `undefined` when the earlier tools are not known. */
  readonly diff: CatalogDiff | undefined;
}

/** Text of a note about changes, at most 500 characters. */
export function renderNote(
  changes: readonly ServerChange[],
  strategy: Strategy = "promote",
): string {
  const room = MAX_NOTE_CHARS - OPEN.length - CLOSE.length - 1;
  const share = Math.floor(room / changes.length) - 1;
  const lines = changes.map((change) =>
    oneLine(describeChange(change, share, strategy), Math.max(24, share)),
  );
  let text = lines.join("\n");
  if (text.length > room)
    text = `${changes.length} servers changed their tools; search again before you use a tool from before.`;
  return `${OPEN}${text}\n${CLOSE}`;
}

function describeChange(
  { serverName, kind, toolCount, isAlwaysLoaded, diff }: ServerChange,
  maxChars: number,
  strategy: Strategy,
): string {
  const name = oneLine(serverName, 64);
  if (kind === "joined") {
    return `Server ${name} is connected now: ${toolCount} tools, ${isAlwaysLoaded ? "callable at once" : `found by ${searchName(strategy)}`}.`;
  }
  if (diff === undefined)
    return `Server ${name} changed its tools; search again before you use one of them.`;
  const parts = [
    part("new", diff.added, maxChars),
    part("removed", diff.removed, maxChars),
    part("changed, search again before calling", diff.changed, maxChars),
  ].filter((text) => text !== "");
  return `Server ${name}: ${parts.join("; ")}.`;
}

function part(what: string, names: readonly string[], maxChars: number): string {
  if (names.length === 0) return "";
  const shown: string[] = [];
  let left = maxChars / 3;
  for (const name of names) {
    left -= name.length + 2;
    if (left < 0 && shown.length > 0) break;
    shown.push(name);
  }
  const more = names.length - shown.length;
  return `${what}: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/**
 * Id of the last message that a note may follow, never between a tool call and its result; `""`:
 * before all messages.
 */
export function noteAnchor(messages: readonly BaseMessage[]): string {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index]!;
    const follower = messages[index + 1];
    const isInsideStep = follower !== undefined && ToolMessage.isInstance(follower);
    const awaitsResults = AIMessage.isInstance(message) && (message.tool_calls?.length ?? 0) > 0;
    if (message.id !== undefined && message.id !== "" && !isInsideStep && !awaitsResults)
      return message.id;
  }
  return "";
}

/** True when the message of every note still exists. */
export function areAnchored(notes: readonly Note[], messages: readonly BaseMessage[]): boolean {
  if (notes.length === 0) return true;
  const ids = new Set(messages.map((message) => message.id));
  return notes.every(({ after }) => after === "" || ids.has(after));
}

/** Inserts each note after its message. */
export function withNotes(messages: readonly BaseMessage[], notes: readonly Note[]): BaseMessage[] {
  if (notes.length === 0) return messages as BaseMessage[];
  const byAnchor = new Map<string, HumanMessage[]>();
  for (const { after, text } of notes) {
    const list = byAnchor.get(after) ?? [];
    list.push(new HumanMessage({ content: text }));
    byAnchor.set(after, list);
  }
  return [
    ...(byAnchor.get("") ?? []),
    ...messages.flatMap((message) => [message, ...(byAnchor.get(message.id ?? "\u0000") ?? [])]),
  ];
}
