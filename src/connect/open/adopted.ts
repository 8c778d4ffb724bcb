import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

import { maskSecrets } from "../../config/variables.js";
import { McpConnectionError } from "../../errors.js";
import type { OpenSession, Session, SessionEvents } from "../peer.js";

/** How a server is reached whose connected client someone else has. */
export function openAdopted(client: Client, serverName: string): OpenSession {
  return async (_signal, events) => {
    if (client.transport === undefined) {
      throw new McpConnectionError(
        "CONNECT_FAILED",
        `The "client" of server "${serverName}" is not connected. Connect it before it is used.`,
        { serverName },
      );
    }
    return adoptedSession(client, events);
  };
}

/**
 * A session on a client that its owner opened and closes. Nothing of the owner's is replaced.
 *
 * @param secrets - What its owner's configuration says that is not to be shown.
 */
export function adoptedSession(client: Client, { onNotification }: SessionEvents, secrets: readonly string[] = []): Session {
  // Only where the owner has no handler of its own.
  const isOurs = client.fallbackNotificationHandler === undefined;
  if (isOurs) {
    client.fallbackNotificationHandler = async ({ method, params }) => {
      onNotification(method, params ?? {});
    };
  }
  const handler = client.fallbackNotificationHandler;
  return {
    client,
    mask: (text) => maskSecrets(text, secrets),
    maskContent: undefined,
    maskListing: undefined,
    endReason: () => (client.transport === undefined ? "its connection was closed" : undefined),
    stderrTail: () => "",
    // An owner's own handler may keep announcements from us.
    announces: () => false,
    isOfSession: () => (client.transport as { readonly sessionId?: string } | undefined)?.sessionId !== undefined,
    close: async () => {
      if (isOurs && client.fallbackNotificationHandler === handler) delete client.fallbackNotificationHandler;
    },
  };
}
