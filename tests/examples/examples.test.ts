import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = readdirSync(`${root}/examples`).filter((file) => /^\d\d-.*\.ts$/.test(file));

const run = (file: string): string =>
  execFileSync(process.execPath, ["--import", "tsx", `examples/${file}`], {
    cwd: root,
    encoding: "utf8",
  });

describe("examples", () => {
  it.each(examples)("%s prints what its comments say", (file) => {
    const expected = [
      ...readFileSync(`${root}/examples/${file}`, "utf8").matchAll(/^\/\/ → (.*)$/gm),
    ].map(([, line]) => line);
    expect(expected.length).toBeGreaterThan(3);
    expect(run(file).trimEnd().split("\n")).toEqual(expected);
  });

  it("start.ts prints a real listing, a real search, real results and the tokens withheld", () => {
    const printed = run("start.ts");
    expect(printed).toContain("<AVAILABLE_MCP_TOOLS>");
    expect(printed).toContain("mcp__everything__get-sum");
    expect(printed).toContain("The sum of 19 and 23 is 42.");
    expect(printed).toContain("[FILE] README.md");
    expect(printed).toMatch(/Tokens of MCP in the first model call: [\d,]+ in place of [\d,]+/);
  });
});
