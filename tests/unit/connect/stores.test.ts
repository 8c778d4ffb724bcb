import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { storeOf } from "../../../src/connect/stores.js";

const folder = mkdtempSync(join(tmpdir(), "stores-"));
let files = 0;
const path = (): string => join(folder, `${(files += 1)}.json`);
const WRITER = fileURLToPath(new URL("../../fixtures/storeWriter.ts", import.meta.url));

describe("a file store", () => {
  it("keeps what others wrote, and writes nothing for the same value", async () => {
    const file = path();
    await storeOf(file).update("a", () => 1);
    await storeOf(file).update("b", () => 2);
    expect(await storeOf(file).get(["a", "b", "c"])).toEqual([1, 2, undefined]);
    const before = readFileSync(file, "utf8");
    await storeOf(file).update("a", (present) => present);
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("moves a torn file aside, and says so until something is kept", async () => {
    const file = path();
    writeFileSync(file, '{"a":1');
    await expect(storeOf(file).get(["a"])).rejects.toThrow(/is not a JSON object/);
    await storeOf(file).update("b", () => 2);
    expect(readFileSync(`${file}.damaged`, "utf8")).toBe('{"a":1');
    expect(await storeOf(file).get(["b"])).toEqual([2]);
  });

  it("follows no symbolic link", async () => {
    const [file, target] = [path(), path()];
    writeFileSync(target, "{}");
    symlinkSync(target, file);
    await expect(storeOf(file).get(["a"])).rejects.toThrow(/symbolic link/);
    await expect(storeOf(file).update("a", () => 1)).rejects.toThrow(/symbolic link/);
    expect(readFileSync(target, "utf8")).toBe("{}");
  });

  it("loses nothing when three processes write at the same time", async () => {
    const file = path();
    const ends = [1, 2, 3].map(
      (writer) =>
        new Promise((resolve) =>
          spawn(process.execPath, ["--import", "tsx", WRITER, file, String(writer)], {
            stdio: "inherit",
          }).once("close", resolve),
        ),
    );
    expect(await Promise.all(ends)).toEqual([0, 0, 0]);
    expect(await storeOf(file).get(["count"])).toEqual([60]);
    expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([]);
  }, 60_000);
});
