import { distance } from "fastest-levenshtein";

import { isRecord } from "../text/isRecord.js";
import { serverEntrySchema } from "./serverOptions.js";

/** An entry of a configuration file in our own terms. */
export interface HostEntry {
  readonly entry: Record<string, unknown>;
  /** Path of a file with more environment variables. */
  readonly envFile: string | undefined;
  /** Keys that mean nothing here. */
  readonly leftOut: readonly string[];
}

type Change = (value: unknown) => Record<string, unknown> | undefined;

const OWN_KEYS = Object.keys(serverEntrySchema.shape);
/** Of these no misspelling is left out: that would allow what they forbid. */
const FORBIDDING = ["toolDeny", "toolFilter", "tier", "overrides", "enabled", "disabled"];
/** Seconds at most, in the hosts that count in seconds; anything larger is milliseconds. */
const MAX_SECONDS = 3_600;
const TRANSPORTS: readonly string[] = serverEntrySchema.shape.type.unwrap().options;

const toolNames =
  (key: string): Change =>
  (value) =>
    Array.isArray(value) ? { [key]: value.map(String) } : undefined;
const text =
  (key: string): Change =>
  (value) =>
    typeof value === "string" ? { [key]: value } : undefined;
const milliseconds =
  (key: string): Change =>
  (value) =>
    typeof value === "number" && value > 0
      ? { [key]: value <= MAX_SECONDS ? value * 1_000 : value }
      : undefined;
const transport: Change = (value) =>
  typeof value === "string" && TRANSPORTS.includes(value) ? { transport: value } : undefined;

/** Keys of other hosts, and of our own with values of other hosts, in our terms. */
const CHANGES: Readonly<Record<string, Change>> = {
  serverUrl: text("url"),
  httpUrl: text("url"),
  type: (value) => (value === "local" || value === "remote" ? {} : transport(value)),
  transport,
  transportType: transport,
  command: readCommand,
  args: (value) => (Array.isArray(value) ? { args: value.map(String) } : { args: value }),
  env: (value) => ({ env: texts(value) }),
  environment: (value) => ({ env: texts(value) }),
  headers: (value) => ({ headers: texts(value) }),
  requestInit: (value) => (isRecord(value) ? { headers: texts(value["headers"]) } : undefined),
  workingDirectory: text("cwd"),
  disabled: (value) => (typeof value === "boolean" ? { enabled: !value } : undefined),
  isActive: (value) => (typeof value === "boolean" ? { enabled: value } : undefined),
  disabledTools: toolNames("toolDeny"),
  excludeTools: toolNames("toolDeny"),
  enabledTools: toolNames("toolFilter"),
  includeTools: toolNames("toolFilter"),
  alwaysLoad: (value) =>
    typeof value === "boolean" ? (value ? { defer: false } : {}) : { alwaysLoad: value },
  timeout: (value) =>
    isRecord(value)
      ? {
          ...milliseconds("connectTimeoutMs")(value["startup"]),
          ...milliseconds("toolTimeoutMs")(value["request"]),
        }
      : milliseconds("toolTimeoutMs")(value),
  initTimeout: milliseconds("connectTimeoutMs"),
  auth: (value) =>
    isRecord(value) && isRecord(value["headers"])
      ? { auth: { headers: texts(value["headers"]) } }
      : undefined,
  name: () => ({}),
  envFile: () => ({}),
};

/**
 * Reads an entry of a configuration file: keys of other hosts are mapped where they mean something
 * here, and left out otherwise. Pure.
 * @throws {Error} for a misspelt key that forbids something.
 */
export function readHostEntry(raw: Readonly<Record<string, unknown>>): HostEntry {
  const entry: Record<string, unknown> = {};
  const leftOut: string[] = [];
  for (const [key, value] of Object.entries(raw)) {
    if (value === null || value === undefined) continue;
    const change = Object.hasOwn(CHANGES, key) ? CHANGES[key]! : undefined;
    const changed =
      change === undefined && OWN_KEYS.includes(key) ? { [key]: value } : change?.(value);
    if (changed === undefined) {
      refuseMisspelt(key, FORBIDDING);
      leftOut.push(key);
      continue;
    }
    for (const [name, part] of Object.entries(changed)) entry[name] = join(entry[name], part);
  }
  const { envFile } = raw;
  return { entry, envFile: typeof envFile === "string" ? envFile : undefined, leftOut };
}

/** @throws {Error} for a key that is nearly one of those that forbid something. */
export function refuseMisspelt(key: string, forbidding: readonly string[]): void {
  const meant = forbidding.find((own) => distance(own.toLowerCase(), key.toLowerCase()) === 1);
  if (meant !== undefined) throw new Error(`unknown option "${key}", did you mean "${meant}"?`);
}

/** A program with its arguments: as a text, a list, or as `{ path, args, env }`. */
function readCommand(value: unknown): Record<string, unknown> {
  if (Array.isArray(value)) {
    const [command, ...args] = value.map(String);
    return { command, args };
  }
  if (!isRecord(value)) return { command: value };
  const { path, args = [], env } = value;
  return { command: path, args, ...(env === undefined ? {} : { env: texts(env) }) };
}

/** The same record with texts; numbers and booleans become texts, `null` is left out. */
function texts(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== null);
  return Object.fromEntries(
    entries.map(([key, part]) => [
      key,
      typeof part === "number" || typeof part === "boolean" ? String(part) : part,
    ]),
  );
}

/** Lists and records under two names are joined; of other values the last counts. */
function join(before: unknown, value: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(value))
    return [...(before as unknown[]), ...(value as unknown[])];
  return isRecord(before) && isRecord(value) ? { ...before, ...value } : value;
}
