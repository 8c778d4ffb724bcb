import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

import type { HubSettings, ServerSettings } from "../../config/settings.js";
import { expandVariables } from "../../config/variables.js";
import { rejectOnAbort } from "../../text/abort.js";
import type { OpenPeer } from "../peer.js";
import { NO_SECRETS, secretsOf } from "../secrets.js";
import type { McpConsents } from "../stdio/consents.js";
import { openAdopted } from "./adopted.js";
import { openClient } from "./openClient.js";

/**
 * Opens a managed server: fills in variables, makes the transport, does the handshake. A failure
 * leaves no process or socket.
 * @param consents - Approved programs; without it programs start unasked.
 * @throws {McpConfigError} for a missing variable or a wrong URL.
 * @throws {McpPolicyError} for a refused URL, or a program that was not approved.
 * @throws {McpAuthRequiredError} when the server answers 401 or asks for OAuth.
 * @throws {McpConnectionError} `CONNECT_FAILED` with the reason and the last stderr lines.
 */
export function openManaged(
  settings: ServerSettings,
  { secretResolver, urlGuard, budgets: { maxMessageBytes } }: HubSettings,
  consents?: McpConsents,
): OpenPeer {
  const { serverName } = settings;
  const transport = settings.transport!;
  if (transport.kind === "client") return openAdopted(transport.client, serverName);
  if (transport.kind === "custom") {
    return async (signal, events) => {
      const made = await rejectOnAbort(Promise.resolve().then(transport.createTransport), signal);
      return openClient(
        serverName,
        { transport: withQuietClose(made) },
        NO_SECRETS,
        signal,
        events,
      );
    };
  }
  return async (signal, events) => {
    const { authProvider, ...plain } = { authProvider: undefined, ...transport };
    const {
      value,
      secrets: filled,
      resolved,
    } = await rejectOnAbort(expandVariables(plain, secretResolver, serverName), signal);
    const expanded = {
      ...value,
      ...(authProvider === undefined ? {} : { authProvider }),
    } as typeof transport;
    const secrets = secretsOf(expanded, filled, resolved);
    // Transports are loaded when they are needed: importing the package stays cheap.
    if (expanded.kind === "stdio") {
      // The program may have changed since it was approved.
      await consents?.verify({ serverName, parameters: expanded, secrets: filled });
      const { stdioWire } = await import("../stdio/stdioTransport.js");
      return openClient(serverName, stdioWire(expanded, maxMessageBytes), secrets, signal, events);
    }
    if (expanded.kind === "websocket") {
      const { openWebSocket } = await import("../http/openWebSocket.js");
      return openWebSocket(
        serverName,
        expanded,
        urlGuard,
        maxMessageBytes,
        secrets,
        signal,
        events,
      );
    }
    const { openRemote } = await import("../http/openRemote.js");
    return openRemote(
      { serverName, remote: expanded, secrets, signal, events, maxMessageBytes },
      urlGuard,
    );
  };
}

/**
 * Asks a person about a program, outside of the connect timeout.
 * @returns `undefined` when nobody has to be asked.
 */
export function consentOf(
  { serverName, transport }: ServerSettings,
  { secretResolver }: HubSettings,
  consents: McpConsents | undefined,
): ((signal: AbortSignal) => Promise<void>) | undefined {
  if (consents === undefined || transport?.kind !== "stdio") return undefined;
  return async (signal) => {
    const { value, secrets } = await expandVariables(transport, secretResolver, serverName);
    await consents.ask({ serverName, parameters: value, secrets }, signal);
  };
}

/**
 * The same transport with a `close()` that never rejects: the SDK ignores its rejection after a
 * failed handshake.
 */
function withQuietClose(transport: Transport): Transport {
  const close = async (): Promise<void> => {
    await Promise.resolve()
      .then(() => transport.close())
      .catch(() => undefined);
  };
  return new Proxy(transport, {
    get: (target, key) => {
      if (key === "close") return close;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  });
}
