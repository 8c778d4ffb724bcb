import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, extname, join, resolve } from "node:path";
import { parseEnv } from "node:util";

import type { ParseError } from "jsonc-parser";

import { McpConfigError, messageOf } from "../errors.js";
import { isRecord } from "../text/isRecord.js";
import { keepNotes } from "./fileNotes.js";
import { readHostEntry, refuseMisspelt } from "./hostEntry.js";
import { hubOptionsSchema, type McpHubOptions } from "./hubOptions.js";
import { withOwnVariables, workspaceOf } from "./hostVariables.js";
import { parseOptions } from "./parseOptions.js";
import { serverEntrySchema, type McpServerEntry } from "./serverOptions.js";
import { transportSettings } from "./transport.js";
import { mapTexts } from "./variables.js";

type Servers = Record<string, McpServerEntry>;

/** Where hosts keep their servers in a file, in the order they are looked for. */
const PLACES: readonly string[] = [
  "mcpServers",
  "servers",
  "mcp_servers",
  "context_servers",
  "mcp.servers",
  "mcp.mcpServers",
  "codebuddy.mcp.servers",
  "mcp",
];
const HUB_KEYS = Object.keys(hubOptionsSchema.shape);
/** Of these no misspelling is left out: that would allow what they forbid. */
const FORBIDDING = ["policy", "security", "tier"];
const IGNORED_SILENTLY = new Set(["$schema", "inputs"]);
const MAX_NAMED = 20;

/**
 * Reads configuration files of desktop hosts and editors: Claude Desktop, Claude Code, VS Code,
 * Cursor, Windsurf, Cline, Roo Code, Gemini CLI, Amazon Q, Zed, opencode, LibreChat (YAML) and our
 * own. Keys of hosts are mapped where they mean something here, and otherwise left out, with one
 * warning for a file when the hub is made. An entry that cannot be read fails alone: its server's
 * state is `failed`. `${NAME}` stays until the server connects.
 * @param paths - A file, or several: of servers with one name, that of the last file counts.
 * @returns Options for `new McpHub(…)`: the servers and the hub options in the files.
 * @throws {McpConfigError} when a file cannot be read or parsed, or names no servers.
 */
export async function loadMcpConfig(paths: string | readonly string[]): Promise<McpHubOptions> {
  const files = typeof paths === "string" ? [paths] : paths;
  const read = await Promise.all(files.map(readFileOf));
  const mcpServers = Object.assign({}, ...read.map(({ servers }) => servers)) as Servers;
  if (Object.keys(mcpServers).length === 0) throw noServers(files.join('", "'));
  keepNotes(
    mcpServers,
    read.flatMap(({ note }) => note ?? []),
  );
  return { ...(Object.assign({}, ...read.map(({ options }) => options)) as object), mcpServers };
}

interface ReadFile {
  readonly servers: Servers;
  readonly options: Record<string, unknown>;
  readonly note: string | undefined;
}

async function readFileOf(path: string): Promise<ReadFile> {
  const content = await parsed(path);
  if (!isRecord(content)) throw noServers(path);
  const place = PLACES.find((name) => hasServers(at(content, name)));
  const found = place === undefined ? bareRecord(content) : at(content, place);
  if (found === undefined) throw noServers(path);
  const rest = place === undefined ? {} : without(content, place);
  const { options, leftOut } = readOptions(rest, path);
  const named = [...namedEntries(found, path), ...projectEntries(content)];
  const servers: Servers = {};
  for (const [serverName, raw] of named) {
    const { entry, leftOut: keys } = await readEntry(serverName, raw, path);
    servers[serverName] = isSwitchedOff(content, serverName) ? { ...entry, enabled: false } : entry;
    leftOut.push(...keys.map((key) => `${serverName}.${key}`));
  }
  const more = leftOut.length > MAX_NAMED ? ` and ${leftOut.length - MAX_NAMED} more` : "";
  const note =
    leftOut.length === 0
      ? undefined
      : `"${path}": these keys have no meaning here and were left out: ${leftOut.slice(0, MAX_NAMED).join(", ")}${more}.`;
  return { servers, options, note };
}

async function parsed(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new McpConfigError(`Cannot read the MCP configuration "${path}": ${messageOf(error)}`, {
      cause: error,
    });
  }
  if ([".yaml", ".yml"].includes(extname(path))) {
    const { parse } = await import("yaml");
    try {
      return parse(text) as unknown;
    } catch (error) {
      throw new McpConfigError(`"${path}" is not YAML: ${messageOf(error)}`, { cause: error });
    }
  }
  const { parse, printParseErrorCode } = await import("jsonc-parser");
  const problems: ParseError[] = [];
  const content: unknown = parse(text.replace(/^\uFEFF/, ""), problems, {
    allowTrailingComma: true,
  });
  const [problem] = problems;
  if (problem === undefined) return content;
  const line = text.slice(0, problem.offset).split("\n").length;
  const code = printParseErrorCode(problem.error);
  throw new McpConfigError(`"${path}" is not JSON: ${code} in line ${line}.`);
}

/** The value at `a.b.c`: under a key of that name, or one level at a time. */
function at(content: Readonly<Record<string, unknown>>, place: string): unknown {
  if (Object.hasOwn(content, place)) return content[place];
  return place
    .split(".")
    .reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), content);
}

/** Servers by name, or a list of servers with names. */
function hasServers(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && value.every(isRecord);
  return isRecord(value) && Object.keys(value).length > 0 && Object.values(value).some(isServer);
}

function isServer(value: unknown): boolean {
  return (
    isRecord(value) &&
    ["command", "url", "serverUrl", "httpUrl", "type", "source"].some((key) => key in value)
  );
}

function bareRecord(content: Readonly<Record<string, unknown>>): unknown {
  const servers = without(content, "$schema");
  return Object.keys(servers).length > 0 && Object.values(servers).every(isServer)
    ? servers
    : undefined;
}

function without(content: Readonly<Record<string, unknown>>, place: string) {
  const key = Object.hasOwn(content, place) ? place : place.split(".")[0]!;
  return Object.fromEntries(Object.entries(content).filter(([name]) => name !== key));
}

/** Options of the hub in a file. Other root keys are of a host, and so are wrong values beside them. */
function readOptions(rest: Readonly<Record<string, unknown>>, path: string) {
  const options: Record<string, unknown> = {};
  const leftOut: string[] = [];
  const isOfHost = Object.keys(rest).some(
    (key) => !HUB_KEYS.includes(key) && !IGNORED_SILENTLY.has(key),
  );
  for (const [key, value] of Object.entries(rest)) {
    if (IGNORED_SILENTLY.has(key)) continue;
    const schema = HUB_KEYS.includes(key)
      ? hubOptionsSchema.shape[key as keyof typeof hubOptionsSchema.shape]
      : undefined;
    if (schema !== undefined && (!isOfHost || schema.safeParse(value).success)) {
      options[key] = value;
      continue;
    }
    try {
      refuseMisspelt(key, FORBIDDING);
    } catch (error) {
      throw new McpConfigError(`"${path}": ${messageOf(error)}`);
    }
    leftOut.push(key);
  }
  return { options, leftOut };
}

function namedEntries(servers: unknown, path: string): [string, unknown][] {
  const named: [string, unknown][] = Array.isArray(servers)
    ? servers.map((entry: unknown, position) => {
        const name = isRecord(entry) ? entry["name"] : undefined;
        if (typeof name === "string" && name !== "") return [name, entry];
        throw new McpConfigError(`"${path}": server ${position + 1} of the list has no "name".`);
      })
    : Object.entries(servers as Record<string, unknown>);
  // The JSON reader makes the value of a key `__proto__` the prototype.
  if (!Array.isArray(servers) && Object.getPrototypeOf(servers) !== Object.prototype) {
    named.push(["__proto__", undefined]);
  }
  const seen = new Set<string>();
  for (const [serverName] of named) {
    const fault =
      serverName === "__proto__"
        ? 'a server cannot be called "__proto__". Rename it.'
        : seen.has(serverName)
          ? `two servers are named "${serverName}". Rename one.`
          : undefined;
    if (fault !== undefined) throw new McpConfigError(`"${path}": ${fault}`, { serverName });
    seen.add(serverName);
  }
  return named;
}

/** Claude Code keeps servers of single projects in the file of the user. */
function projectEntries({ projects }: Readonly<Record<string, unknown>>): [string, unknown][] {
  const project = isRecord(projects) ? projects[process.cwd()] : undefined;
  const servers = isRecord(project) ? project["mcpServers"] : undefined;
  return isRecord(servers) ? Object.entries(servers) : [];
}

/** Gemini CLI switches servers on and off by name beside them. */
function isSwitchedOff({ mcp }: Readonly<Record<string, unknown>>, serverName: string): boolean {
  if (!isRecord(mcp)) return false;
  const { allowed, excluded } = mcp;
  return (
    (Array.isArray(excluded) && excluded.includes(serverName)) ||
    (Array.isArray(allowed) && !allowed.includes(serverName))
  );
}

/** An entry in our terms; one that cannot be read becomes a server that fails with the reason. */
async function readEntry(
  serverName: string,
  raw: unknown,
  path: string,
): Promise<{ readonly entry: McpServerEntry; readonly leftOut: readonly string[] }> {
  const subject = `"${path}": server "${serverName}"`;
  try {
    if (!isRecord(raw)) throw new Error("it is not an object");
    const folder = workspaceOf(path);
    const own = withOwnVariables(raw, folder) as Record<string, unknown>;
    const { entry, envFile, leftOut } = readHostEntry(own);
    if (envFile !== undefined) {
      const variables = parseEnv(await readFile(resolve(folder, expandHome(envFile)), "utf8"));
      entry["env"] = { ...variables, ...(isRecord(entry["env"]) ? entry["env"] : {}) };
    }
    const place = dirname(resolve(path));
    const withFiles = await mapTexts(entry, (text) => withFileContents(text, place));
    const checked = parseOptions(serverEntrySchema, withFiles, subject);
    transportSettings(serverName, checked);
    return { entry: checked, leftOut };
  } catch (cause) {
    const text = messageOf(cause);
    const message = text.startsWith(subject) ? text : `${subject} cannot be used: ${text}`;
    const error = new McpConfigError(message, { serverName, cause });
    const enabled = !(isRecord(raw) && raw["disabled"] === true);
    return { entry: { enabled, createTransport: () => Promise.reject(error) }, leftOut: [] };
  }
}

/** Fills in `{file:path}` and `${file:path}`; a path is relative to the configuration file. */
async function withFileContents(text: string, folder: string): Promise<string> {
  let filled = text;
  for (const [whole, path] of text.matchAll(/\$?\{file:([^}]+)\}/g)) {
    const content = await readFile(resolve(folder, expandHome(path!)), "utf8");
    filled = filled.replace(whole, () => content.trim());
  }
  return filled;
}

function expandHome(path: string): string {
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
}

function noServers(path: string): McpConfigError {
  return new McpConfigError(
    `"${path}" names no MCP servers. Expected { "mcpServers": { "<name>": { "command" or "url": … } } }.`,
  );
}
