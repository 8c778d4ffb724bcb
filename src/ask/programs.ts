import type { ConsentRequest } from "../config/securityOptions.js";
import type { McpConsents } from "../connect/stdio/consents.js";
import type { McpAsked, McpDecisions, McpStateUpdate, McpThreadState } from "../state.js";

/**
 * State update for programs of these servers that wait for a person's consent; empty when the hub
 * asks by itself.
 */
export function waitingPrograms(
  consents: McpConsents | undefined,
  serverNames: readonly string[],
  { _mcpConsents: before }: McpThreadState,
): McpStateUpdate {
  const waiting = consents === undefined || consents.asksItself ? [] : consents.pending();
  const mine = waiting.filter(({ serverName }) => serverNames.includes(serverName));
  if (mine.length > 0) return { _mcpConsents: askedPrograms(mine) };
  return (before ?? undefined) === undefined ? {} : { _mcpConsents: null };
}

/** Makes the record of programs that wait for consent, by permission. */
function askedPrograms(waiting: readonly ConsentRequest[]): McpAsked {
  return Object.fromEntries(
    waiting.map(
      ({ serverName, digest, reason, command, program, args, cwd, env, workspace }, order) => [
        `mcp:start:${serverName}`,
        {
          boundName: `mcp:start:${serverName}`,
          toolHash: digest,
          digest,
          order,
          request: {
            operation: "start" as const,
            serverName,
            target: [command, ...args].join(" "),
            class: "destructive" as const,
            arguments: { command, program, args, cwd, env, workspace },
            reason,
          },
        },
      ],
    ),
  );
}

/** Applies a person's decisions. Approved programs start in the background. */
export async function settleConsents(
  consents: McpConsents,
  asked: McpAsked,
  decisions: McpDecisions,
): Promise<void> {
  for (const [callId, { digest, request }] of Object.entries(asked)) {
    const { type, message, answeredBy } = decisions[callId]!;
    const { serverName } = request;
    if (type === "approve") await consents.approve(serverName, { digest, by: answeredBy });
    else if (type === "reject") await consents.refuse(serverName, { digest, reason: message });
  }
}
