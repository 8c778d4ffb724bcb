import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { resolve } from "node:path";

import ipaddr from "ipaddr.js";
import * as z from "zod";

import { McpConfigError } from "../errors.js";
import { keptStoreSchema, type KeptStore } from "./store.js";

/** An address of a name. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Resolves a name to all of its addresses. */
export type HostLookup = (hostname: string) => Promise<readonly ResolvedAddress[]>;

const guardMode = z.enum(["checked", "pinned", "off"]);

/** Which URLs are followed; see `docs/security.md`. */
export const urlGuardSchema = z.union([
  guardMode,
  z.strictObject({
    /** `"pinned"`: the connection goes to the very address that was checked. `"off"`: nothing is checked. Default `"checked"`. */
    mode: guardMode.optional(),
    /**
     * Hosts that may be local: names (`"mcp"`, `"*.internal.example"`), addresses, ranges (`"10.1.0.0/16"`). Default: none.
     */
    allowHosts: z.array(z.string().min(1)).optional(),
    /** `"refuse"`: local addresses are refused also when they stand in the configuration. Default `"allow"`. */
    literals: z.enum(["allow", "refuse"]).optional(),
    /** Resolves names. Default: as the system does. */
    lookup: z.custom<HostLookup>((value) => typeof value === "function", "a function").optional(),
  }),
]);

/** Kinds of transports that a configuration may have. */
export const transportsSchema = z.array(z.enum(["stdio", "http", "sse", "websocket"]));

/** Which URLs are followed. */
export interface UrlGuardSettings {
  readonly mode: "checked" | "pinned" | "off";
  readonly allowHosts: readonly string[];
  readonly literals: "allow" | "refuse";
  readonly lookup: HostLookup;
}

const systemLookup: HostLookup = async (hostname) => (await lookup(hostname, { all: true })) as ResolvedAddress[];

/**
 * The option `urlGuard` with its defaults.
 *
 * @throws {McpConfigError} for a host that cannot be read.
 */
export function urlGuardSettings(option: z.output<typeof urlGuardSchema> | undefined): UrlGuardSettings {
  const given = typeof option === "string" ? { mode: option } : (option ?? {});
  const { mode = "checked", allowHosts = [], literals = "allow", lookup: own = systemLookup } = given;
  return { mode, allowHosts: allowHosts.map(readHost), literals, lookup: own };
}

/** A host as it is compared: a name in small letters and as URLs have it, an address without brackets, a range. */
function readHost(written: string): string {
  const refuse = (fix: string): never => {
    throw new McpConfigError(`"urlGuard.allowHosts" has "${written}", which matches nothing: ${fix}.`);
  };
  const lower = written.trim().toLowerCase();
  const host = lower.replace(/\.$/, "").replace(/^\[(.*)\](?=\/|$)/, "$1");
  if (/^[*.]+$/.test(host)) return "*";
  if (host.includes("://")) refuse("write the host alone");
  if (host.includes("/")) return ipaddr.isValidCIDR(host) ? host : refuse("a range looks like 10.1.0.0/16");
  if (isIP(host) !== 0) return host;
  if (/^[\d.*-]+$/.test(host) || /^[\da-f]*:[\da-f:*]*\*/.test(host)) refuse("of addresses, write a range such as 10.0.0.0/8");
  if (host.includes(":")) refuse("write the host without its port");
  if (host.startsWith(".")) refuse(`for all names below it, write *${host}`);
  if (/[*?{]/.test(host)) return host;
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : refuse("it is no name of a host");
}

/**
 * A program that wants to be started, for a person to read: one line each, characters that cannot be seen are written out.
 * Variables that were filled in are masked, and plain words joined to a flag that says that it is secret.
 */
export interface ConsentRequest {
  readonly serverName: string;
  readonly command: string;
  /** The file that the command is, as far as it was found. */
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Names of the environment variables it is given; values are not shown. */
  readonly env: readonly string[];
  /** The folder it would be approved for. */
  readonly workspace: string;
  /** Why a person is asked: it is new here, or it is not what was approved. */
  readonly reason: string;
  /** Stands for all of this with its values; an approval is for it alone. */
  readonly digest: string;
}

/** Where approvals are kept. */
export type ConsentStore = KeptStore;

/** Asks a person whether a program may be started. */
export type OnConsent = (request: ConsentRequest) => boolean | Promise<boolean>;

/** Whether stdio servers have to be approved by a person before they are started first; see `docs/security.md`. */
export const consentSchema = z.strictObject({
  /** Where approvals are kept: the path of a file, or a LangChain store. Whoever can write to it can approve. */
  store: keptStoreSchema,
  /** The folder that approvals are for. Default: the working directory of this process. */
  workspace: z.string().min(1).optional(),
  /** Asks a person. Default: an agent asks by an interrupt when its run begins, or by its `onAsk`. */
  onConsent: z.custom<OnConsent>((value) => typeof value === "function", "a function").optional(),
});

/** How stdio servers are approved. */
export interface ConsentSettings {
  readonly store: KeptStore | string;
  /** Absolute. */
  readonly workspace: string;
  readonly onConsent: OnConsent | undefined;
}

/** The option `consent` with its defaults. */
export function consentSettings(option: z.output<typeof consentSchema> | undefined): ConsentSettings | undefined {
  if (option === undefined) return undefined;
  return { store: option.store, workspace: resolve(option.workspace ?? "."), onConsent: option.onConsent };
}

/** What happens with a tool that is not what it was when it was seen first; see `docs/security.md`. */
export const toolFingerprintsSchema = z.strictObject({
  /** Where the tools are kept as they were seen first: the path of a file, or a LangChain store. Default: in this process. */
  store: keptStoreSchema.optional(),
  /**
   * `"note"`: the event `toolChanged`. `"ask"`: besides, each call is asked until a person approves one, or
   * `hub.acceptTools(…)`. `"deny"`: the tool is withheld until `hub.acceptTools(…)`. Default `"note"`.
   */
  onChange: z.enum(["note", "ask", "deny"]).optional(),
});

/** What happens with tools that changed. */
export interface ToolFingerprintSettings {
  readonly store: KeptStore | string | undefined;
  readonly onChange: "note" | "ask" | "deny";
}

/** The option `toolFingerprints` with its defaults. */
export function toolFingerprintSettings(option: z.output<typeof toolFingerprintsSchema> | undefined): ToolFingerprintSettings {
  return { store: option?.store, onChange: option?.onChange ?? "note" };
}
