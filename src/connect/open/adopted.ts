import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

import { maskSecrets } from "../../config/variables.js";
import { McpConnectionError } from "../../errors.js";
import type { OpenPeer, Peer, PeerEvents } from "../peer.js";
import { requestOn } from "./requestOn.js";

/** Opens a peer on a connected client that the user passed as option `client`. */
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
 * A peer on a client whose owner opens and closes it. Replaces no handler of the owner.
 * @param secrets - Texts to mask.
 */
export function adoptedPeer(
  client: Client,
  { onNotification }: PeerEvents,
  secrets: readonly string[] = [],
): Peer {
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
    // The owner's handler may receive the notifications in our place.
    announces: () => false,
    hasSession: () =>
      (client.transport as { readonly sessionId?: string } | undefined)?.sessionId !== undefined,
    close: async () => {
      if (isOurs && client.fallbackNotificationHandler === handler)
        delete client.fallbackNotificationHandler;
    },
  };
}
