import type { RawTool } from "../../catalog/toolEntry.js";
import { isRecord } from "../../text/isRecord.js";
import { McpNotFoundError } from "../../errors.js";
import type { McpHub } from "../../hub/mcpHub.js";
import type { OperationOptions } from "../../hub/hubOperations.js";

/** A tool as its server lists it. */
export type RecordedTool = Pick<RawTool, "name"> & Partial<RawTool>;

/** A server's offer, recorded as JSON in MCP's shapes. Untrusted. */
export interface McpRecording {
  readonly tools: readonly RecordedTool[];
  readonly prompts?: readonly unknown[] | undefined;
  readonly resources?: readonly unknown[] | undefined;
  readonly resourceTemplates?: readonly unknown[] | undefined;
  /** The server's instructions for models. */
  readonly instructions?: string | undefined;
  /** Name and version from the handshake. Default: the configured name. */
  readonly serverInfo?: object | undefined;
}

/**
 * Records what the servers of a hub offer, for {@link createMcpTestHub}. Store it as JSON with the
 * tests. Holds the servers' texts as they are, but no results or contents of resources.
 * @param serverNames - Default: all enabled ones.
 * @param options - Caller for the policy.
 * @throws {McpMiddlewareError} when a server cannot be reached or listed.
 * @example writeFileSync("servers.json", JSON.stringify(await recordMcpServers(hub)));
 */
export async function recordMcpServers(
  hub: McpHub,
  serverNames?: readonly string[],
  options: OperationOptions = {},
): Promise<Record<string, McpRecording>> {
  const enabled = hub
    .status()
    .flatMap(({ serverName, state }) => (state === "disabled" ? [] : [serverName]));
  const names = serverNames ?? enabled;
  await hub.connect(names, { onFailure: "throw" });
  const recorded = await Promise.all(
    names.map(async (serverName): Promise<[string, McpRecording]> => {
      const snapshot = hub.snapshot(serverName);
      if (snapshot === undefined)
        throw new McpNotFoundError(`Server "${serverName}" has not been listed.`, { serverName });
      const { tools, instructions, serverInfo, capabilities = {} } = snapshot;
      const [prompts, resources, resourceTemplates] = await Promise.all([
        isRecord(capabilities["prompts"]) ? hub.listPrompts(serverName, options) : undefined,
        isRecord(capabilities["resources"]) ? hub.listResources(serverName, options) : undefined,
        isRecord(capabilities["resources"])
          ? hub.listResourceTemplates(serverName, options)
          : undefined,
      ]);
      const recording = { tools, prompts, resources, resourceTemplates, instructions, serverInfo };
      return [serverName, JSON.parse(JSON.stringify(recording)) as McpRecording];
    }),
  );
  return Object.fromEntries(recorded);
}
