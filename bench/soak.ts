// `npm run soak`: 20 servers that are killed, restarted and made to forget at random, and 10,000
// calls. Every call has to end in a result or a clear error, and none may run twice; memory and
// handles have to be flat. A few minutes at the most.
import { partsOf } from "../src/hub/hubParts.js";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { McpHub, McpMiddlewareError, type McpServerEntry } from "../src/core.js";
import { serveHttp, type HttpFixture } from "../tests/fixtures/servers/http.mjs";
import { serveWebSocket } from "../tests/fixtures/servers/webSocket.mjs";
import { stdioFixture } from "../tests/support/servers.js";

const CALLS = Number(process.argv[2] ?? 10_000);
const CALLERS = 40;
const LIMIT_MS = 240_000;
const MEGABYTE = 1024 * 1024;

interface Victim {
  readonly entry: McpServerEntry;
  /** Does some harm, and mends it. */
  readonly harm: () => Promise<void>;
  readonly close: () => Promise<void>;
}

const ran = new Map<string, number>();
const onEcho = (text: string): void => void ran.set(text, (ran.get(text) ?? 0) + 1);
const folder = mkdtempSync(join(tmpdir(), "mcp-soak-"));
const echoFile = join(folder, "echoes");
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const anyOf = <Value>(values: readonly Value[]): Value =>
  values[Math.floor(Math.random() * values.length)]!;
const reconnect = { enabled: true, delayMs: 20, maxAttempts: 8 };
let harms = 0;

async function remoteVictim(kind: "http" | "sse" | "websocket"): Promise<Victim> {
  const serve = kind === "websocket" ? serveWebSocket : serveHttp;
  let life: Partial<HttpFixture> &
    Pick<HttpFixture, "url" | "port" | "breakConnections" | "close"> = await serve({ onEcho });
  const { port, url: plainUrl, sseUrl } = life;
  const url = kind === "sse" ? sseUrl! : plainUrl;
  return {
    entry: { url, transport: kind, reconnect, maxConcurrentCalls: 8 },
    harm: async () => {
      const way = anyOf(["kill", "break", "forget"]);
      if (way === "forget") life.forgetSessions?.();
      else if (way === "break") life.breakConnections();
      else {
        await life.close();
        await pause(Math.random() * 150);
        life = await serve({ onEcho, port });
      }
    },
    close: () => life.close(),
  };
}

function stdioVictim(index: number): Victim {
  const pidFile = join(folder, `pid-${index}`);
  return {
    entry: { ...stdioFixture({ echoFile, pidFile }), restart: reconnect, maxConcurrentCalls: 8 },
    harm: async () => {
      try {
        process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
      } catch {
        // It is dead already, or not there yet.
      }
    },
    close: async () => undefined,
  };
}

const victims = [
  ...(await Promise.all(Array.from({ length: 9 }, () => remoteVictim("http")))),
  ...(await Promise.all(Array.from({ length: 3 }, () => remoteVictim("sse")))),
  ...(await Promise.all(Array.from({ length: 4 }, () => remoteVictim("websocket")))),
  ...Array.from({ length: 4 }, (_, index) => stdioVictim(index)),
];
const hub = new McpHub({
  mcpServers: Object.fromEntries(victims.map(({ entry }, index) => [`s${index}`, entry])),
  warnings: "silent",
  timeouts: {
    toolTimeoutMs: 5_000,
    requestTimeoutMs: 2_000,
    connectTimeoutMs: 10_000,
    breakerOpenMs: 200,
    retryFailedAfterMs: 200,
  },
});
await hub.connect(undefined, { onFailure: "throw" });

const outcomes = new Map<string, number>();
const count = (outcome: string): void =>
  void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
const unclear: unknown[] = [];
const memory = (): number => {
  global.gc?.();
  return process.memoryUsage().heapUsed / MEGABYTE;
};
const samples: { readonly calls: number; readonly heapMb: number; readonly handles: number }[] = [];
const startedAt = performance.now();
let next = 0;
let isOver = false;

async function caller(): Promise<void> {
  while (next < CALLS && performance.now() - startedAt < LIMIT_MS) {
    const call = (next += 1);
    if (call % 1_000 === 0)
      samples.push({
        calls: call,
        heapMb: memory(),
        handles: process.getActiveResourcesInfo().length,
      });
    const text = `call-${call}`;
    try {
      const { content } = await hub.callTool(
        `s${Math.floor(Math.random() * victims.length)}`,
        "echo",
        { text },
      );
      count(content.includes(text) ? "result" : "WRONG RESULT");
    } catch (error) {
      if (McpMiddlewareError.isInstance(error)) count(error.code);
      else unclear.push(error);
      await pause(5);
    }
  }
}

const harming = (async () => {
  while (!isOver) {
    harms += 1;
    await anyOf(victims).harm();
    await pause(20 + Math.random() * 30);
  }
})();
await Promise.all(Array.from({ length: CALLERS }, caller));
isOver = true;
await harming;

// What is left alone comes back.
const settledBy = performance.now() + 30_000;
while (performance.now() < settledBy && hub.status().some(({ state }) => state !== "connected")) {
  partsOf(hub).pool.use(hub.status().map(({ serverName }) => serverName));
  await pause(50);
}
const back = hub.status().filter(({ state }) => state === "connected").length;
const seconds = (performance.now() - startedAt) / 1_000;
await hub.close();
await Promise.all(victims.map(({ close }) => close()));
// Sockets of the servers that were killed may take a moment to be gone.
const OWN = ["TTYWrap", "PipeWrap", "FSReqCallback"];
const leftNow = (): string[] =>
  process.getActiveResourcesInfo().filter((kind) => !OWN.includes(kind));
let left = leftNow();
for (let look = 0; look < 30 && left.length > 0; look += 1) {
  await pause(100);
  left = leftNow();
}

for (const line of readFileSync(echoFile, "utf8").trim().split("\n")) onEcho(line);
const twice = [...ran.values()].filter((times) => times > 1).length;
const settled = [...outcomes.values()].reduce((sum, times) => sum + times, 0) + unclear.length;
const [early, late] = [samples[1], samples.at(-1)];
const growth = early === undefined || late === undefined ? 0 : late.heapMb - early.heapMb;

console.log(
  `${next} calls to ${victims.length} servers in ${seconds.toFixed(1)} s, with ${harms} kills, restarts, breaks and forgotten sessions`,
);
console.log(
  `ended: ${[...outcomes].map(([outcome, times]) => `${outcome} ${times}`).join(", ")}; without a clear error: ${unclear.length}; never: ${next - settled}`,
);
console.log(`ran: ${ran.size} once or more, ${twice} twice`);
console.log(`servers back at the end: ${back} of ${victims.length}`);
console.log(
  `heap: ${samples.map(({ heapMb }) => heapMb.toFixed(0)).join(", ")} MB; handles: ${samples.map(({ handles }) => handles).join(", ")}; left after close: ${left.length === 0 ? "none" : left.join(", ")}`,
);
if (unclear.length > 0) console.log(unclear[0]);
const isWell =
  unclear.length === 0 &&
  settled === next &&
  twice === 0 &&
  back === victims.length &&
  growth < 30 &&
  left.length === 0 &&
  !outcomes.has("WRONG RESULT");
console.log(isWell ? "soak: passed" : "soak: FAILED");
process.exitCode = isWell ? 0 : 1;
