import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const src = fileURLToPath(new URL("../../../src", import.meta.url));

/**
 * The folders in the order of the data flow; a file imports from its own folder and from those
 * before it.
 */
const ROOMS = "text config connect catalog policy call disclose input ask hub agent faces".split(
  " ",
);
/** Entry points: named exports, nothing else. */
const ENTRIES = ["index.ts", "core.ts", "graph.ts", "chain.ts", "testing.ts"];
/** May be imported from everywhere, and import nothing but each other. */
const SHARED = ["errors", "events", "state"];

const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) =>
  file.endsWith(".ts"),
);

function roomOf(file: string): string {
  const [first] = file.replace(/\.ts$/, "").split("/") as [string];
  return first;
}

function importsOf(file: string): { readonly packages: string[]; readonly own: string[] } {
  const text = readFileSync(join(src, file), "utf8");
  const all = [...text.matchAll(/(?:from|import)\s+"([^"]+)"/g)].map(([, name]) => name!);
  return {
    packages: all.filter((name) => !name.startsWith(".")),
    own: all
      .filter((name) => name.startsWith("."))
      .map((name) => relative(src, resolve(src, dirname(file), name)).replace(/\.js$/, ".ts")),
  };
}

describe("imports", () => {
  it.each(files.filter((file) => !ENTRIES.includes(file)))(
    "%s imports from its own folder and earlier folders",
    (file) => {
      const room = roomOf(file);
      for (const target of importsOf(file).own) {
        const targetRoom = roomOf(target);
        if (SHARED.includes(targetRoom)) continue;
        expect(SHARED).not.toContain(room);
        expect(ROOMS.indexOf(targetRoom)).toBeGreaterThanOrEqual(0);
        expect(
          `${targetRoom} <= ${room}: ${ROOMS.indexOf(targetRoom) <= ROOMS.indexOf(room)}`,
        ).toBe(`${targetRoom} <= ${room}: true`);
      }
    },
  );

  it("only the middleware imports langchain, and nothing at run time imports the adapter", () => {
    for (const file of files) {
      const { packages } = importsOf(file);
      if (file !== "faces/mcpMiddleware.ts") expect(packages).not.toContain("langchain");
      expect(packages).not.toContain("@langchain/mcp-adapters");
    }
  });

  it("only connect/ opens clients and transports", () => {
    for (const file of files.filter((name) => !name.startsWith("connect/"))) {
      const text = readFileSync(join(src, file), "utf8");
      expect(text).not.toMatch(/new Client\(|Transport\(/);
    }
  });

  it("only config/ reads the environment of the process", () => {
    for (const file of files.filter(
      (name) => !name.startsWith("config/") && !name.startsWith("connect/stdio/"),
    )) {
      expect(readFileSync(join(src, file), "utf8")).not.toContain("process.env");
    }
  });
});
