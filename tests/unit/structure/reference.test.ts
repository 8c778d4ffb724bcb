import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { hubOptionsSchema, wrapOptionsSchema } from "../../../src/config/hubOptions.js";
import { DEFAULTS } from "../../../src/config/defaults.js";
import { serverEntrySchema, wrappedServerSchema } from "../../../src/config/serverOptions.js";
import { CLIENT_INFO } from "../../../src/connect/open/openClient.js";
import { optionsPage } from "../../support/optionsPage.mjs";
import { agentOptionsSchema } from "../../../src/config/agentOptions.js";

const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8");
const unionOf = (source: string, type: string): string[] => {
  const [, body] = new RegExp(`export type ${type} =([\\s\\S]*?);`).exec(source)!;
  return [...body!.matchAll(/"([A-Z_]+)"/g)].map(([, name]) => name!);
};

describe("the reference pages", () => {
  it("have a section for each error code and for no other", () => {
    const codes = unionOf(read("src/errors.ts"), "McpErrorCode");
    const sections = [...read("docs/reference/errors.md").matchAll(/^## `([A-Z_]+)`/gm)].map(
      ([, name]) => name,
    );
    expect(sections.sort()).toEqual(codes.sort());
  });

  it("have a row for each warning and each event", () => {
    const page = read("docs/reference/events.md");
    const source = read("src/events.ts");
    const rows = [...page.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual(unionOf(source, "WarningCode").sort());
    const [, body] = /export interface McpEvents \{([\s\S]*?)^\}/m.exec(source)!;
    const events = [...body!.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name);
    const sections = [...page.matchAll(/^\| `([a-z]\w+)`/gm)].map(([, name]) => name);
    expect(sections.sort()).toEqual(events.sort());
  });

  it("have a row for each option, made from the doc comment of its key", async () => {
    expect(read("docs/reference/options.md")).toBe(await optionsPage());
  });

  it("give the default in force", () => {
    const page = read("docs/reference/options.md");
    for (const [option, value] of Object.entries(DEFAULTS)) {
      const line = new RegExp(`^\\| \`${option}\`.*$`, "m").exec(page)?.[0];
      if (line !== undefined) expect(line).toContain(value.toLocaleString("en-US"));
    }
  });

  it("have every option of the schemas", () => {
    const rows = new Set(
      [...read("docs/reference/options.md").matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name),
    );
    const schemas = [
      hubOptionsSchema,
      wrapOptionsSchema,
      serverEntrySchema,
      wrappedServerSchema,
      agentOptionsSchema,
    ];
    for (const option of schemas.flatMap((schema) => Object.keys(schema.shape)))
      expect([...rows]).toContain(option);
  });
});

describe("the package", () => {
  it("says its own name and version to servers", () => {
    const { name, version } = JSON.parse(read("package.json")) as { name: string; version: string };
    expect(CLIENT_INFO).toEqual({ name, version });
  });
});
