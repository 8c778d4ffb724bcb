import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

import { maskSecrets } from "../../config/variables.js";
import { McpConnectionError } from "../../errors.js";
import type { OpenPeer, Peer, PeerEvents } from "../peer.js";
import { requestOn } from "./requestOn.js";

/** How a server is reached whose connected client someone else has. */
export function openAdopted(client: Client, serverName: string): OpenPeer {
  return async (_signal, events) => {
    if (client.transport === undefined) {
      throw new McpConnectionError(
        "CONNECT_FAILED",
        `The "client" of server "${serverName}" is not connected. Connect it before it is used.`,
        { serverName },
      );
    }
    return adoptedPeer(client, events);
  };
}

/**
 * A peer on a client that its owner opened and closes. Nothing of the owner's is replaced.
 *
 * @param secrets - What its owner's configuration says that is not to be shown.
 */
export function adoptedPeer(client: Client, { onNotification }: PeerEvents, secrets: readonly string[] = []): Peer {
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
    request: (request) => requestOn(client, request),
    mask: (text) => maskSecrets(text, secrets),
    maskContent: undefined,
    maskList: undefined,
    endReason: () => (client.transport === undefined ? "its connection was closed" : undefined),
    stderrTail: () => "",
    // An owner's own handler may keep announcements from us.
    announces: () => false,
    hasSession: () => (client.transport as { readonly sessionId?: string } | undefined)?.sessionId !== undefined,
    close: async () => {
      if (isOurs && client.fallbackNotificationHandler === handler) delete client.fallbackNotificationHandler;
    },
  };
}
