import { DEFAULTS } from "../config/defaults.js";
import type { ServerSettings } from "../config/settings.js";
import type { ToolList } from "../connect/connection.js";
import type { HubEvents } from "../events.js";
import type { Catalog } from "./catalog.js";
import type { ToolFingerprints } from "./toolFingerprints.js";
import type { Steps } from "../text/slices.js";
import { readTool, type RawTool } from "./toolEntry.js";

/**
 * Puts a tool list into the catalog, and reports mended, dropped and changed tools; in steps.
 * @returns True when any tool changed.
 */
export function* takeToolList(
  catalog: Catalog,
  events: HubEvents,
  fingerprints: ToolFingerprints,
  settings: ServerSettings,
  listing: ToolList,
): Steps<boolean> {
  const { serverName, defer } = settings;
  const before = catalog.server(serverName);
  const isFirst = before === undefined;
  const tools = yield* fingerprints.check(
    serverName,
    yield* readTools(events, serverName, listing.elements),
  );
  const { instructions, serverInfo, capabilities } = listing;
  const { diff, duplicates, dropped } = yield* catalog.update(serverName, {
    tools,
    instructions,
    serverInfo,
    capabilities,
  });
  const known = catalog.server(serverName)!;
  for (const toolName of dropped) {
    events.warn(
      "TOOL_DROPPED",
      `Tool "${toolName}" of server "${serverName}" was left out: its schema is too deep to be read.`,
      serverName,
    );
  }
  if (listing.cutBecause !== undefined) {
    events.warn(
      "LIST_CUT",
      `The tool list of server "${serverName}" was ended early: ${listing.cutBecause}.`,
      serverName,
    );
  } else if (duplicates.length > 0) {
    const names = duplicates.slice(0, 10).join(", ");
    events.warn(
      "TOOL_DROPPED",
      `Server "${serverName}" lists these tools twice, the first of each stays: ${names}.`,
      serverName,
    );
  }
  if (isFirst && tools.length > 0 && known.tools.length === 0) {
    const message = `None of the ${tools.length} tools of server "${serverName}" is offered: check its toolFilter and toolDeny.`;
    events.warn("NO_TOOL_OFFERED", message, serverName);
  }
  if (defer === false && known.definitionChars > DEFAULTS.largeAlwaysLoadedChars) {
    const message = `Server "${serverName}" is always loaded ("defer": false) and adds ${known.definitionChars} characters to every model call.`;
    events.warn("LARGE_ALWAYS_LOADED_SERVER", message, serverName);
  }
  if (diff !== undefined) {
    events.emit("catalog", { serverName, kind: "tools", ...diff });
    // A remembered tool list was read by another process.
    if (before?.isRemembered === false)
      fingerprints.compare(serverName, before.snapshot.tools, tools, diff.changed);
  }
  return diff !== undefined;
}

function* readTools(
  events: HubEvents,
  serverName: string,
  values: readonly unknown[],
): Steps<RawTool[]> {
  const tools: RawTool[] = [];
  for (const value of values) {
    yield;
    const reading = readTool(value);
    if (reading.kind === "dropped") {
      events.warn(
        "TOOL_DROPPED",
        `A tool of server "${serverName}" was left out: ${reading.problem}.`,
        serverName,
      );
      continue;
    }
    if (reading.kind === "mended") {
      const message = `Tool "${reading.tool.name}" of server "${serverName}" is malformed and was mended: ${reading.problem}.`;
      events.warn("TOOL_MENDED", message, serverName);
    }
    tools.push(reading.tool);
  }
  return tools;
}
