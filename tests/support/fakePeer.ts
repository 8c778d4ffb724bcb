import type { Client } from "@modelcontextprotocol/sdk/client/index.js";

import { resolveHubOptions, type ServerSettings } from "../../src/config/settings.js";
import type { McpServerEntry } from "../../src/config/serverOptions.js";
import type { OpenPeer, Peer, PeerEvents, PeerRequest, RawResult } from "../../src/connect/peer.js";

type Answer = (request: PeerRequest, peer: FakePeer) => Promise<RawResult> | RawResult;

/** A connection without a server: requests are written down and answered by a function. */
export interface FakePeer extends Peer {
  readonly sent: PeerRequest[];
  /** How often it was closed. */
  readonly closes: () => number;
  /** Ends the connection as a server does, which tells of it or not. */
  readonly end: (reason?: string, isTold?: boolean) => void;
}

export interface FakePeerOptions {
  readonly answer?: Answer;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly announces?: boolean;
  readonly hasSession?: boolean;
  readonly maskContent?: Peer["maskContent"];
}

export function fakePeer(options: FakePeerOptions = {}, events?: PeerEvents): FakePeer {
  const {
    answer = () => ({}),
    capabilities = {},
    announces = true,
    hasSession = false,
    maskContent,
  } = options;
  const sent: PeerRequest[] = [];
  let closes = 0;
  let endReason: string | undefined;
  const peer: FakePeer = {
    sent,
    closes: () => closes,
    end: (reason = "it ended", isTold = true) => {
      endReason = reason;
      if (isTold) events?.onEnd();
    },
    client: {
      getServerCapabilities: () => capabilities,
      getServerVersion: () => undefined,
      getInstructions: () => undefined,
    } as unknown as Client,
    request: async (request) => {
      sent.push(request);
      return answer(request, peer);
    },
    endReason: () => endReason,
    stderrTail: () => "",
    mask: (text) => text,
    maskContent,
    maskList: undefined,
    announces: () => announces,
    hasSession: () => hasSession,
    close: async () => void (closes += 1),
  };
  return peer;
}

/** Opens a new fake at each connect, and keeps all of them. */
export function fakeOpen(options: FakePeerOptions = {}) {
  const peers: FakePeer[] = [];
  const events: PeerEvents[] = [];
  const open: OpenPeer = async (signal, told) => {
    signal.throwIfAborted();
    const peer = fakePeer(options, told);
    peers.push(peer);
    events.push(told);
    return peer;
  };
  return { open, peers, events };
}

/** Settings of a server `s` reached over HTTP. */
export function settingsOf(entry: McpServerEntry = {}): ServerSettings {
  return resolveHubOptions({
    mcpServers: { s: { url: "https://s.example/mcp", ...entry } },
  }).servers.get("s")!;
}

/** A promise with its ends. */
export function deferred<Value = void>() {
  let resolve!: (value: Value) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Lets all that is ready run, without a clock. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
}
