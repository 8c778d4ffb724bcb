import { readFile } from "node:fs/promises";

import type { ParseError } from "jsonc-parser";

import { isRecord } from "../text/isRecord.js";
import { McpConfigError } from "../errors.js";
import type { McpHubOptions } from "./hubOptions.js";
import type { McpServerEntry } from "./serverOptions.js";

/** Keys that other hosts write into files and entries and that mean nothing here. */
const FOREIGN_FILE_KEYS = new Set(["$schema", "inputs"]);
const FOREIGN_ENTRY_KEYS = new Set([
  "name",
  "disabled",
  "autoApprove",
  "alwaysAllow",
  "gallery",
  "version",
  "$schema",
]);

/**
 * Reads an `mcp.json` file of a desktop host or an editor. The file has the form `{ mcpServers }`,
 * `{ servers }`, `{ mcp: { servers } }` or a bare record, with servers by name or as an array of
 * entries with a `name`; comments and trailing commas are allowed. `disabled: true` becomes
 * `enabled: false`. `${NAME}` stays as it is until the server connects.
 * @returns Options for `new McpHub(…)`: the servers and other hub options in the file.
 * @throws {McpConfigError} when the file cannot be read, is not JSON, or has none of these forms.
 */
export async function loadMcpConfig(path: string): Promise<McpHubOptions> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new McpConfigError(
      `Cannot read the MCP configuration "${path}": ${(error as Error).message}`,
      { cause: error },
    );
  }
  const { parse, printParseErrorCode } = await import("jsonc-parser");
  const problems: ParseError[] = [];
  const content: unknown = parse(text, problems, { allowTrailingComma: true });
  const [problem] = problems;
  if (problem !== undefined) {
    const line = text.slice(0, problem.offset).split("\n").length;
    throw new McpConfigError(
      `"${path}" is not JSON: ${printParseErrorCode(problem.error)} in line ${line}.`,
    );
  }
  return parseMcpConfig(content, path);
}

/**
 * Turns the content of a file into hub options.
 * @throws {McpConfigError} when it has none of the known forms.
 */
export function parseMcpConfig(content: unknown, path: string): McpHubOptions {
  if (!isRecord(content)) throw noServers(path);
  const { mcpServers, servers, mcp, ...rest } = content;
  const found =
    mcpServers ?? servers ?? (isRecord(mcp) ? (mcp["servers"] ?? mcp["mcpServers"]) : undefined);
  if (found === undefined) {
    const entries = Object.entries(content).filter(([key]) => !FOREIGN_FILE_KEYS.has(key));
    const isBareRecord =
      entries.length > 0 &&
      entries.every(([, entry]) => isRecord(entry) && ("command" in entry || "url" in entry));
    if (!isBareRecord) throw noServers(path);
    return { mcpServers: toServers(Object.fromEntries(entries), path) };
  }
  const options = Object.fromEntries(
    Object.entries(rest).filter(([key]) => !FOREIGN_FILE_KEYS.has(key)),
  );
  return { ...options, mcpServers: toServers(found, path) };
}

function toServers(servers: unknown, path: string): Record<string, McpServerEntry> {
  const named: [string, unknown][] = Array.isArray(servers)
    ? servers.map((entry: unknown, position) => {
        const name = isRecord(entry) ? entry["name"] : undefined;
        if (typeof name !== "string" || name === "") {
          throw new McpConfigError(`"${path}": server ${position + 1} of the list has no "name".`);
        }
        return [name, entry];
      })
    : isRecord(servers)
      ? Object.entries(servers)
      : [];
  if (named.length === 0) throw noServers(path);
  const result: Record<string, McpServerEntry> = {};
  for (const [serverName, entry] of named) {
    if (!isRecord(entry))
      throw new McpConfigError(`"${path}": server "${serverName}" is not an object.`, {
        serverName,
      });
    if (serverName === "__proto__") {
      throw new McpConfigError(`"${path}": a server cannot be called "__proto__". Rename it.`, {
        serverName,
      });
    }
    if (Object.hasOwn(result, serverName)) {
      throw new McpConfigError(`"${path}": two servers are named "${serverName}". Rename one.`, {
        serverName,
      });
    }
    const kept = Object.fromEntries(
      Object.entries(entry).filter(([key]) => !FOREIGN_ENTRY_KEYS.has(key)),
    );
    result[serverName] = entry["disabled"] === true ? { ...kept, enabled: false } : kept;
  }
  return result;
}

function noServers(path: string): McpConfigError {
  return new McpConfigError(
    `"${path}" names no MCP servers. Expected { "mcpServers": { "<name>": { "command" or "url": … } } }.`,
  );
}
