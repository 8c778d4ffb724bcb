import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { limitRow, type Row } from "../report.js";

const SCRIPT = fileURLToPath(new URL("../../tests/fixtures/hostileRun.ts", import.meta.url));

interface Tried {
  readonly name: string;
  readonly stallMs: number;
  readonly peakMb: number;
}

/**
 * The longest time at a stretch that hostile servers take from the process, and the memory it
 * needs, in a process with 256 MB of heap.
 */
export async function hostileRows(): Promise<Row[]> {
  const output = execFileSync(
    process.execPath,
    ["--max-old-space-size=256", "--import", "tsx", SCRIPT],
    { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
  );
  const tried = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Tried)
    .sort((a, b) => b.stallMs - a.stallMs);
  const [worst] = tried as [Tried];
  const peakMb = Math.max(...tried.map((one) => one.peakMb));
  const longest = tried.slice(0, 3).map(({ name, stallMs }) => `${name} ${stallMs} ms`);
  return [
    limitRow(
      "longest stand-still beside a hostile server",
      worst.stallMs,
      "ms",
      "≤ 250 ms",
      worst.stallMs <= 250,
      longest.join(", "),
    ),
    limitRow(
      "memory of the process beside a hostile server (resident; heap limited to 256 MB)",
      peakMb,
      "MB",
      "≤ 512 MB",
      peakMb <= 512,
    ),
  ];
}
