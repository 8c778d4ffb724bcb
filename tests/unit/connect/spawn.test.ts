import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

describe("starting programs on Windows", () => {
  const { platform } = process;
  afterEach(() => {
    Object.defineProperty(process, "platform", { value: platform });
  });

  it("uses the command interpreter for a shim such as npx.cmd, with its arguments escaped", () => {
    Object.defineProperty(process, "platform", { value: "win32" });
    for (const name of Object.keys(require.cache))
      if (name.includes("cross-spawn")) delete require.cache[name];
    const spawn = require("cross-spawn") as {
      _parse: (
        command: string,
        args: string[],
        options: object,
      ) => { command: string; args: string[]; options: object };
    };
    const parsed = spawn._parse("npx.cmd", ["-y", "a server", "100%"], {});
    expect(parsed.command).toMatch(/cmd(\.exe)?$/i);
    expect(parsed.args.slice(0, 3)).toEqual(["/d", "/s", "/c"]);
    expect(parsed.args[3]).toContain("npx.cmd");
    expect(parsed.options).toMatchObject({ windowsVerbatimArguments: true });
  });
});
