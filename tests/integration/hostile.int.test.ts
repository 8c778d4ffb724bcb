import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { beforeAll, describe, expect, it } from "@jest/globals";

const SCRIPT = fileURLToPath(new URL("../fixtures/hostileRun.ts", import.meta.url));
/** What is tried, as the script names it. */
const NAMES = [
  ...readFileSync(SCRIPT, "utf8").matchAll(/^ {2}"([^"]+)": (?:async )?\(\) =>/gm),
].map(([, name]) => name!);

interface Tried {
  readonly name: string;
  readonly error: string;
  readonly polluted: boolean;
}

describe("beside a hostile server, in a process with 256 MB", () => {
  const tried = new Map<string, Tried>();
  let said = "";
  let ms = 0;
  let exitCode: number | null = null;

  beforeAll(async () => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, ["--max-old-space-size=256", "--import", "tsx", SCRIPT], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    for await (const line of createInterface(child.stdout)) {
      const one = JSON.parse(line) as Tried;
      tried.set(one.name, one);
    }
    exitCode = await ended;
    ms = performance.now() - startedAt;
  }, 150_000);

  it.each(NAMES)("%s affects nothing else", (name) => {
    expect(tried.get(name)).toMatchObject({ name, error: "", polluted: false });
  });

  it("everything ends within a minute and a half, and nothing unexpected is written to the console", () => {
    expect(exitCode).toBe(0);
    expect(said).toBe("");
    expect(ms).toBeLessThan(90_000);
    expect(NAMES.length).toBeGreaterThan(14);
    expect([...tried.keys()].sort()).toEqual([...NAMES].sort());
  });
});
