// A PostgreSQL of the test's own, from the system's packages: a new cluster in a folder for the
// time being, on loopback.
import { spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { until } from "./servers.js";

const DEBIAN = "/usr/lib/postgresql";

/** The folder of PostgreSQL's programs; `undefined` where it is not installed. */
export function postgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN)
    ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a))
    : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, "bin")),
    ...(process.env["PATH"] ?? "").split(":"),
  ];
  return folders.find(
    (folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")),
  );
}

/** Starts it. @throws when it does not start, with what it said. */
export async function servePostgres(
  programs: string,
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "mcp-postgres-"));
  const identity = process.getuid?.() === 0 ? ownerOf("postgres") : undefined;
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  const options = {
    ...identity,
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
  } as const;
  const data = join(folder, "data");
  const init = spawnSync(
    join(programs, "initdb"),
    ["-D", data, "-U", "test", "-A", "trust", "--no-sync"],
    options,
  );
  if (init.status !== 0)
    throw new Error(`initdb failed: ${init.stderr}${init.error?.message ?? ""}`);
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`, "fsync=off"];
  const child = spawn(
    join(programs, "postgres"),
    ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
    { ...options, stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await until(
    () => said.includes("ready to accept connections") || child.exitCode !== null,
    "the start of PostgreSQL",
  );
  if (child.exitCode !== null) throw new Error(`PostgreSQL ended: ${said}`);
  return {
    url: `postgres://test@127.0.0.1:${port}/postgres`,
    close: async () => {
      // SIGINT is its fast shutdown.
      child.kill("SIGINT");
      await until(
        () => child.exitCode !== null || child.signalCode !== null,
        "the end of PostgreSQL",
      );
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** It refuses to run as root. */
function ownerOf(user: string): { readonly uid: number; readonly gid: number } {
  const id = (flag: string): number =>
    Number(spawnSync("id", [flag, user], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
