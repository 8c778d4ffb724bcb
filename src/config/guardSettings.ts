import { lookup } from "node:dns/promises";

import * as z from "zod";

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

/** The option `urlGuard` with its defaults. */
export function urlGuardSettings(option: z.output<typeof urlGuardSchema> | undefined): UrlGuardSettings {
  const given = typeof option === "string" ? { mode: option } : (option ?? {});
  const { mode = "checked", allowHosts = [], literals = "allow", lookup: own = systemLookup } = given;
  return { mode, allowHosts, literals, lookup: own };
}
