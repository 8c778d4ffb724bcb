import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";

import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";
import { loadMcpConfig, McpHub } from "../../src/core.js";

const HOSTS = fileURLToPath(new URL("../fixtures/hosts/", import.meta.url));
const SERVER = fileURLToPath(new URL("../fixtures/servers/stdio.mjs", import.meta.url));

let docs: HttpFixture;
const root = mkdtempSync(join(tmpdir(), "host-files-"));
beforeAll(async () => {
  docs = await serveHttp();
});
afterAll(() => docs.close());

/** The file of a host in a folder of its own, with our fixture servers in it. */
function fileOf(host: string, folder = "settings"): string {
  const place = join(root, host, folder);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(root, host, ".env"), "FROM_FILE=yes\n# a comment\nTOKEN='other'\n");
  writeFileSync(join(root, host, "note.txt"), "a note\n");
  writeFileSync(join(place, "note.txt"), "a note\n");
  writeFileSync(join(place, ".env"), "FROM_FILE=yes\n");
  const text = readFileSync(join(HOSTS, host), "utf8")
    .replaceAll("__NODE__", process.execPath)
    .replaceAll("__SERVER__", SERVER)
    .replaceAll("__URL__", docs.url);
  const path = join(place, host);
  writeFileSync(path, text);
  return path;
}

/** States of the servers after a connect, and the warning about what was left out. */
async function opened(path: string) {
  const warnings: string[] = [];
  const print = console.warn;
  console.warn = (text: string) => void warnings.push(text);
  try {
    await using hub = await McpHub.fromFile(path);
    const { failed } = await hub.connect();
    const states = Object.fromEntries(
      hub.status().map(({ serverName, state }) => [serverName, state]),
    );
    const [about = ""] = warnings.filter((text) => text.includes("CONFIG_KEYS_LEFT_OUT"));
    const errors = Object.fromEntries(
      failed.map(({ serverName, error }) => [serverName, error.message]),
    );
    return { states, errors, about, warnings };
  } finally {
    console.warn = print;
  }
}

const BOTH = { files: "connected", docs: "connected" };

describe("files of hosts", () => {
  it.each<[string, Record<string, string>, RegExp | undefined]>([
    ["claude-desktop.json", { files: "connected" }, /left out: globalShortcut, preferences/],
    ["claude-code.json", BOTH, /left out: docs.headersHelper, docs.oauth\./],
    [
      "vscode.jsonc",
      { ...BOTH, asked: "failed" },
      /left out: files.dev, files.sandboxEnabled, docs.oauth\./,
    ],
    [
      "vscode-settings.json",
      { files: "connected" },
      /editor.fontSize, @azure.argTenant, security.workspace/,
    ],
    ["cursor.json", BOTH, /left out: docs.auth\./],
    ["windsurf.json", BOTH, /left out: files.alwaysAllow\./],
    ["cline.json", { files: "connected", docs: "disabled" }, /left out: files.autoApprove\./],
    ["roo.json", BOTH, /left out: files.alwaysAllow, files.watchPaths\./],
    [
      "gemini.json",
      { ...BOTH, old: "disabled" },
      /left out: theme, security, general, mcp, files.trust, docs.authProviderType, docs.oauth\./,
    ],
    ["amazon-q.json", BOTH, /name, description, prompt, tools, toolAliases/],
    [
      "zed.json",
      { ...BOTH, older: "connected", extension: "failed" },
      /left out: theme, vim_mode, files.source, older.settings\./,
    ],
    ["opencode.jsonc", { ...BOTH, off: "disabled" }, /left out: model, docs.oauth\./],
    ["opencode-2.jsonc", { files: "connected", off: "disabled" }, undefined],
    [
      "librechat.yaml",
      { ...BOTH, "per-user": "failed" },
      /version, cache, endpoints, mcpSettings, files.chatMenu/,
    ],
    ["codebuddy.json", { files: "connected" }, /left out: window.zoomLevel\./],
    ["record.json", BOTH, undefined],
    ["list.json", BOTH, undefined],
  ])(
    "%s: its servers connect, and one warning names what was left out",
    async (host, states, left) => {
      const { states: found, about, errors, warnings } = await opened(fileOf(host));
      expect({ states: found, errors }).toMatchObject({ states });
      expect(Object.keys(found).sort()).toEqual(Object.keys(states).sort());
      if (left === undefined) expect(about).toBe("");
      else expect(about).toMatch(left);
      expect(warnings.filter((text) => text.includes("CONFIG_KEYS_LEFT_OUT")).length).toBeLessThan(
        2,
      );
    },
  );

  it("are all tried", () => {
    expect(readdirSync(HOSTS)).toHaveLength(17);
  });

  it("say why a server of them cannot be used, with the file and the server", async () => {
    const [zed, libre, code] = await Promise.all(
      ["zed.json", "librechat.yaml", "vscode.jsonc"].map((host) => opened(fileOf(host))),
    );
    expect(zed!.errors["extension"]).toMatch(
      /zed.json": server "extension" cannot be used: .*give "command"/,
    );
    expect(libre!.errors["per-user"]).toMatch(/{{LIBRECHAT_USER_ID}} is filled in by its own host/);
    expect(code!.errors["asked"]).toMatch(/needs the variable input:api-key/);
  });
});

describe("entries of hosts", () => {
  it("mean what they mean there", async () => {
    const entries = await Promise.all(
      ["roo.json", "cline.json", "gemini.json", "opencode-2.jsonc", "librechat.yaml"].map(
        async (host) => (await loadMcpConfig(fileOf(host))).mcpServers["files"]!,
      ),
    );
    const [roo, cline, gemini, opencode, libre] = entries;
    expect(roo).toMatchObject({ toolTimeoutMs: 1_800_000, toolDeny: ["slow"], enabled: true });
    expect(cline).toMatchObject({ toolTimeoutMs: 60_000, transport: "stdio" });
    expect(gemini).toMatchObject({
      toolFilter: ["echo", "slow"],
      toolDeny: ["slow"],
      toolTimeoutMs: 30_000,
    });
    expect(opencode).toMatchObject({
      connectTimeoutMs: 20_000,
      toolTimeoutMs: 60_000,
      args: [SERVER, "{}"],
    });
    expect(libre).toMatchObject({ connectTimeoutMs: 20_000, env: { PORT: "8080" } });
  });

  it("get the variables of their host, and the file of variables", async () => {
    const code = await loadMcpConfig(fileOf("vscode.jsonc", ".vscode"));
    const place = join(root, "vscode.jsonc");
    expect(code.mcpServers["files"]!.env).toMatchObject({
      PLACE: `${place}/data`,
      FROM_FILE: "yes",
    });
    const { mcpServers } = await loadMcpConfig(fileOf("opencode.jsonc"));
    expect(mcpServers["docs"]!.headers).toEqual({
      Authorization: "Bearer ${PATH}",
      "X-Note": "a note",
    });
    const gemini = await loadMcpConfig(fileOf("gemini.json"));
    expect(gemini.mcpServers["docs"]!.headers).toEqual({ Authorization: "Bearer ${PATH}" });
  });
});

describe("several files", () => {
  it("are read in order: of servers with one name the last counts", async () => {
    const [user, project] = ["user.json", "project.json"].map((name) => join(root, name)) as [
      string,
      string,
    ];
    writeFileSync(
      user,
      JSON.stringify({ mcpServers: { a: { command: "one" }, b: { command: "two" } }, defer: true }),
    );
    writeFileSync(project, JSON.stringify({ servers: { b: { command: "three" } } }));
    expect(await loadMcpConfig([user, project])).toEqual({
      mcpServers: { a: { command: "one" }, b: { command: "three" } },
      defer: true,
    });
  });

  it("with a misspelt key that forbids something are refused, so that nothing is allowed by a slip", async () => {
    const path = join(root, "slip.json");
    writeFileSync(path, JSON.stringify({ mcpServers: { a: { command: "x", toolDny: ["*"] } } }));
    const { mcpServers } = await loadMcpConfig(path);
    await expect(Promise.resolve().then(() => mcpServers["a"]!.createTransport!())).rejects.toThrow(
      /server "a" cannot be used: unknown option "toolDny", did you mean "toolDeny"/,
    );
    writeFileSync(
      path,
      JSON.stringify({ mcpServers: { a: { command: "x" } }, polcy: { default: "deny" } }),
    );
    await expect(loadMcpConfig(path)).rejects.toThrow(
      /unknown option "polcy", did you mean "policy"/,
    );
  });

  it("with a wrong entry keep the others", async () => {
    const path = join(root, "wrong.json");
    const entries = {
      good: { command: process.execPath, args: [SERVER, "{}"] },
      text: "x",
      both: { command: "x", url: "http://x" },
    };
    writeFileSync(path, JSON.stringify({ mcpServers: entries }));
    const { states, errors } = await opened(path);
    expect(states).toEqual({ good: "connected", text: "failed", both: "failed" });
    expect(errors["text"]).toMatch(
      /wrong.json": server "text" cannot be used: it is not an object/,
    );
    expect(errors["both"]).toMatch(/give "command" or "url", not both/);
  });
});
