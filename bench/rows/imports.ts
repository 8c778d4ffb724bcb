import { execFileSync } from "node:child_process";

import { quantile, ratioRow, type Row } from "../report.js";

const ROUNDS = 15;
const PEERS = ["langchain", "@langchain/langgraph", "@modelcontextprotocol/sdk/client/index.js"];
const PEERS_OF_CORE = ["@langchain/core/tools", ...PEERS.slice(1)];

/**
 * Cold import of the entry points, each in a process of its own, beside that of their peers alone.
 */
export function importRows(): Promise<Row[]> {
  const dist = (name: string): string => new URL(`../../dist/${name}.js`, import.meta.url).href;
  return Promise.resolve([
    rowOf(".", dist("index"), PEERS),
    rowOf("./core", dist("core"), PEERS_OF_CORE),
  ]);
}

function rowOf(name: string, entry: string, peers: readonly string[]): Row {
  const times = { own: [] as number[], peers: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.peers.push(importTime(peers));
    times.own.push(importTime([...peers, entry]));
  }
  const [own, alone] = [quantile(times.own, 0.5), quantile(times.peers, 0.5)];
  return ratioRow(
    `cold import of ${name}`,
    own,
    alone,
    "ms",
    "≤ 1.15 × its peers alone",
    (ratio) => ratio <= 1.15,
    "median",
  );
}

function importTime(specifiers: readonly string[]): number {
  const list = JSON.stringify(specifiers);
  const script = `const from = performance.now(); for (const name of ${list}) await import(name); console.log(performance.now() - from); process.exit(0);`;
  return Number(
    execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }),
  );
}
