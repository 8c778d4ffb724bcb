import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { resolve } from "node:path";

import ipaddr from "ipaddr.js";
import * as z from "zod";

import { McpConfigError } from "../errors.js";
import { keptStoreSchema, type KeptStore } from "./store.js";
import { environmentResolver, type SecretResolver } from "./variables.js";

/** One address of a host name. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Resolves a host name to all of its addresses. */
export type HostLookup = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** Which URLs may be requested; `"off"` checks nothing. See `docs/security.md`. */
export type UrlGuardOptions =
  | "off"
  | {
      /**
       * Hosts that may be local: names (`"mcp"`, `"*.internal.example"`), addresses, ranges
       * (`"10.1.0.0/16"`).
       * @default none
       */
      readonly allowHosts?: readonly string[] | undefined;
      /**
       * `"refuse"`: local addresses are refused even when the configuration names them.
       * @default "allow"
       */
      readonly literals?: "allow" | "refuse" | undefined;
      /** Resolves host names. @default as the system does */
      readonly lookup?: HostLookup | undefined;
    };

/**
 * A program about to start, for a person to read: single lines, invisible characters written out.
 * Filled-in variables are masked, and so are plain words joined to a flag whose name says that it
 * is secret.
 */
export interface ConsentRequest {
  readonly serverName: string;
  readonly command: string;
  /** The file that the command starts, as far as it was found. */
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /**
   * Environment variables as `NAME=value`, filled-in values masked; names alone of those taken from
   * this process.
   */
  readonly env: readonly string[];
  /** The folder the approval is for. */
  readonly workspace: string;
  /** Why a person is asked: the program is new here, or differs from what was approved. */
  readonly reason: string;
  /** Identifies the program with all of its values; an approval is for this digest alone. */
  readonly digest: string;
}

/** Keeps approvals: a LangChain store, or anything with its `mget` and `mset`. */
export type ConsentStore = KeptStore;

/** Asks a person whether a program may be started. */
export type OnConsent = (request: ConsentRequest) => boolean | Promise<boolean>;

/** Requires a person's approval before a stdio server starts for the first time. */
export interface ConsentOptions {
  /**
   * Keeps approvals: the path of a file, or a LangChain store. Whoever can write to it can approve.
   */
  readonly store: ConsentStore | string;
  /** The folder approvals are for. @default the working directory of this process */
  readonly workspace?: string | undefined;
  /**
   * Asks a person.
   * @default an agent asks by an interrupt when its run begins, or by its `onAsk`
   */
  readonly onConsent?: OnConsent | undefined;
}

/** How tools are compared with what they were when first seen. */
export interface ToolFingerprintOptions {
  /** Keeps fingerprints: the path of a file, or a LangChain store. @default in this process */
  readonly store?: KeptStore | string | undefined;
  /**
   * A changed tool: `"note"` emits `toolChanged`; `"ask"` also asks a person at each call until one
   * is approved or `hub.acceptTools(…)`; `"deny"` withholds it until `hub.acceptTools(…)`.
   * @default "note"
   */
  readonly onChange?: "note" | "ask" | "deny" | undefined;
}

/** Security options of a wrapped client, whose owner starts programs and requests URLs. */
export interface WrapSecurityOptions {
  /** Which URLs are warned about; the client's owner requests them. */
  readonly urlGuard?: UrlGuardOptions | undefined;
  /** How changed tools are handled. */
  readonly toolFingerprints?: ToolFingerprintOptions | undefined;
}

/**
 * Which programs and URLs are trusted, where secrets come from, and how changed tools are handled.
 */
export interface SecurityOptions extends WrapSecurityOptions {
  /**
   * Which URLs may be requested.
   * @default local and private ones only where you wrote them yourself
   */
  readonly urlGuard?: UrlGuardOptions | undefined;
  /**
   * Transports a configuration may name; `createTransport` and `client`, made in code, are always
   * allowed.
   * @default all
   */
  readonly transports?: ("stdio" | "http" | "sse" | "websocket")[] | undefined;
  /**
   * Requires a person's approval before a stdio server starts for the first time.
   * @default nobody is asked
   */
  readonly consent?: ConsentOptions | undefined;
  /** Looks up the `NAME` of `${NAME}`; `undefined` means unknown. @default the environment */
  readonly secretResolver?: SecretResolver | undefined;
}

function aFunction<Type>() {
  return z.custom<Type>((value) => typeof value === "function", "a function");
}

const wrapSecurityShape = {
  urlGuard: z
    .union([
      z.literal("off"),
      z.strictObject({
        allowHosts: z.array(z.string().min(1)).optional(),
        literals: z.enum(["allow", "refuse"]).optional(),
        lookup: aFunction<HostLookup>().optional(),
      }),
    ])
    .optional(),
  toolFingerprints: z
    .strictObject({
      store: keptStoreSchema.optional(),
      onChange: z.enum(["note", "ask", "deny"]).optional(),
    })
    .optional(),
  approvalStore: keptStoreSchema.optional(),
};

/** Checks {@link WrapSecurityOptions}. */
export const wrapSecuritySchema = z.strictObject(wrapSecurityShape);

/** Checks {@link SecurityOptions}. */
export const securitySchema = z.strictObject({
  ...wrapSecurityShape,
  transports: z.array(z.enum(["stdio", "http", "sse", "websocket"])).optional(),
  consent: z
    .strictObject({
      store: keptStoreSchema,
      workspace: z.string().min(1).optional(),
      onConsent: aFunction<OnConsent>().optional(),
    })
    .optional(),
  secretResolver: aFunction<SecretResolver>().optional(),
});

/** URL guard with its defaults. */
export interface UrlGuardSettings {
  readonly allowHosts: readonly string[];
  readonly literals: "allow" | "refuse";
  readonly lookup: HostLookup;
}

/** Consent options with their defaults. */
export interface ConsentSettings {
  readonly store: KeptStore | string;
  /** An absolute path. */
  readonly workspace: string;
  readonly onConsent: OnConsent | undefined;
}

/** Security options with their defaults. */
export interface SecuritySettings {
  /** `undefined`: URLs are not checked. */
  readonly urlGuard: UrlGuardSettings | undefined;
  readonly toolFingerprints: {
    readonly store: KeptStore | string | undefined;
    readonly onChange: "note" | "ask" | "deny";
  };
  /** `undefined`: nothing remembers which approvals were used. */
  readonly approvalStore: KeptStore | string | undefined;
  /** `undefined`: programs start without approval. */
  readonly consent: ConsentSettings | undefined;
  readonly secretResolver: SecretResolver;
}

const systemLookup: HostLookup = async (hostname) =>
  (await lookup(hostname, { all: true })) as ResolvedAddress[];

/** Completes the option group `security`. @throws {McpConfigError} for a host that cannot match. */
export function securitySettings(options: z.output<typeof securitySchema> = {}): SecuritySettings {
  const {
    urlGuard = {},
    toolFingerprints,
    approvalStore,
    consent,
    secretResolver = environmentResolver,
  } = options;
  const {
    allowHosts = [],
    literals = "allow",
    lookup: own = systemLookup,
  } = urlGuard === "off" ? {} : urlGuard;
  return {
    urlGuard:
      urlGuard === "off"
        ? undefined
        : { allowHosts: allowHosts.map(readHost), literals, lookup: own },
    toolFingerprints: {
      store: toolFingerprints?.store,
      onChange: toolFingerprints?.onChange ?? "note",
    },
    approvalStore,
    consent: consent && {
      store: consent.store,
      workspace: resolve(consent.workspace ?? "."),
      onConsent: consent.onConsent,
    },
    secretResolver,
  };
}

/**
 * A host as it is compared: a lower-case name as URLs have it, an address without brackets, or a
 * range.
 */
function readHost(written: string): string {
  const refuse = (fix: string): never => {
    throw new McpConfigError(
      `"security.urlGuard.allowHosts" has "${written}", which matches nothing: ${fix}.`,
    );
  };
  const lower = written.trim().toLowerCase();
  const host = lower.replace(/\.$/, "").replace(/^\[(.*)\](?=\/|$)/, "$1");
  if (/^[*.]+$/.test(host)) return "*";
  if (host.includes("://")) refuse("write the host alone");
  if (host.includes("/"))
    return ipaddr.isValidCIDR(host) ? host : refuse("a range looks like 10.1.0.0/16");
  if (isIP(host) !== 0) return host;
  if (/^[\d.*-]+$/.test(host) || /^[\da-f]*:[\da-f:*]*\*/.test(host))
    refuse("of addresses, write a range such as 10.0.0.0/8");
  if (host.includes(":")) refuse("write the host without its port");
  if (host.startsWith(".")) refuse(`for all names below it, write *${host}`);
  if (/[*?{]/.test(host)) return host;
  return URL.canParse(`http://${host}`)
    ? new URL(`http://${host}`).hostname
    : refuse("it is not the name of a host");
}
