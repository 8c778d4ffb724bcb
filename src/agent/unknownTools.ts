import type { ToolEntry } from "../catalog/toolEntry.js";
import { isOurPrefix, namesakesOf } from "../disclose/namesakes.js";
import { unknownToolText } from "../disclose/search.js";
import { oneLine } from "../text/clean.js";
import type { RunContext, ToolCall } from "./runContext.js";
import type { AgentServers } from "./servers.js";

/** Tells the model which bound names a raw name may mean. */
export function namesakesText(name: string, namesakes: readonly ToolEntry[]): string {
  const names = namesakes.slice(0, 10).map(({ boundName }) => boundName);
  return `There is no tool "${oneLine(name, 80)}". Use one of: ${names.join(", ")}.`;
}

/** The tool that a call of `execute_mcp_tool` means, or the text for the model if there is none. */
export async function entryToExecute(
  call: ToolCall | undefined,
  run: RunContext,
  servers: AgentServers,
): Promise<ToolEntry | string> {
  if (call === undefined)
    return 'Give the "name" of a tool and its "arguments". search_mcp_tools finds tools.';
  const { view } = run;
  const entry = await servers.lookUp(run, call.name, isOurPrefix(call.name));
  if (entry !== undefined && view.mayShow(entry)) return entry;
  const namesakes = namesakesOf(view, call.name);
  return namesakes.length === 0
    ? unknownToolText(view, call.name)
    : namesakesText(call.name, namesakes);
}
