import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { McpServerEntry } from "../../src/core.js";

const FIXTURE = fileURLToPath(new URL("../fixtures/servers/stdio.mjs", import.meta.url));

/** Configuration of the fixture server over stdio. */
export function stdioFixture(
  options: Record<string, unknown> = {},
  more: McpServerEntry = {},
): McpServerEntry & { command: string; args: string[] } {
  return { ...more, command: process.execPath, args: [FIXTURE, JSON.stringify(options)] };
}

/** The same for the adapter as well: of stderr nothing is shown. */
export function quietFixture(options: Record<string, unknown> = {}): {
  command: string;
  args: string[];
  stderr: "ignore";
} {
  const { command, args } = stdioFixture(options);
  return { command, args, stderr: "ignore" };
}

/** True while a process runs; a zombie has ended. */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !["Z", "X"].includes(stat.slice(stat.lastIndexOf(")") + 2)[0]!);
  } catch {
    return false;
  }
}

/** Waits until a condition holds, at most 10 seconds; for what happens in other processes. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = "the condition",
): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`${what} did not come true within 10 s`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
