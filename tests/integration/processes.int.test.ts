import { execFile, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";

import { policyServer } from "../support/policyServer.js";
import { postgresPrograms, servePostgres } from "../support/postgres.js";
import { until } from "../support/servers.js";

const SCRIPT = fileURLToPath(new URL("../fixtures/askThread.ts", import.meta.url));
const programs = postgresPrograms();
const MISSING =
  "PostgreSQL is not installed (Debian: apt-get install postgresql); threads in it were not tested.";
let postgres: Awaited<ReturnType<typeof servePostgres>> | undefined;

beforeAll(async () => {
  if (programs !== undefined) postgres = await servePostgres(programs);
  else if (process.env["CI"] === undefined) console.warn(MISSING);
}, 60_000);

afterAll(() => postgres?.close());

const sqliteFile = (): string => join(mkdtempSync(join(tmpdir(), "mcp-processes-")), "threads.db");
const postgresUrl = (): string => {
  if (postgres === undefined) throw new Error(MISSING);
  return postgres.url;
};

describe.each([
  ["SQLite", it, sqliteFile],
  [
    "PostgreSQL",
    programs === undefined && process.env["CI"] === undefined ? it.skip : it,
    postgresUrl,
  ],
] as const)("a thread in %s", (_store, test, storeOf) => {
  test.each(["createAgent", "createMcpGraph"])(
    "of %s continues in another process after the first was killed while a person was asked, and nothing runs twice",
    async (face) => {
      await using wiki = await policyServer();
      const command = ["--import", "tsx", SCRIPT, storeOf(), wiki.http.url, face];
      const first = spawn(process.execPath, [...command, "ask"], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let printed = "";
      first.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
      await until(() => printed.includes("\n") || first.exitCode !== null, "the interrupt");
      first.kill("SIGKILL");
      await until(() => first.signalCode !== null, "the end of the first process");
      expect(JSON.parse(printed)).toEqual(["put", "drop"]);
      expect(wiki.ran).toEqual({});

      const { stdout } = await promisify(execFile)(process.execPath, [...command, "answer"]);
      const { answers, bound, last } = JSON.parse(stdout) as {
        answers: Record<string, string>;
        bound: string[];
        last: string;
      };
      expect(wiki.ran).toEqual({ get_page: 1, put_page: 1 });
      expect(Object.keys(answers).sort()).toEqual(["drop", "find", "put", "read", "wipe"]);
      expect(answers["drop"]).toContain("A person rejected this call");
      expect(answers["wipe"]).toContain("is not available");
      // What the first process found, and what the second one ran.
      expect(bound).toEqual(["search_mcp_tools", "mcp__wiki__get_page", "mcp__wiki__put_page"]);
      expect(last).toBe("done");
    },
    60_000,
  );
});
