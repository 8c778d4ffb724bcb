import type * as z from "zod";

import type { serverPolicyShape, PolicyTier, ToolOverride } from "./policyOptions.js";

/** Who may do what with one server: complete settings. */
export interface ServerPolicySettings {
  readonly permission: PolicyTier;
  readonly overrides: Readonly<Record<string, ToolOverride>>;
  readonly trustAnnotations: boolean;
  /** All of these are needed. */
  readonly scopes: readonly string[];
  /** One of these is needed, when there are any. */
  readonly workspaces: readonly string[] | undefined;
}

type ServerPolicyOptions = { readonly [Key in keyof typeof serverPolicyShape]?: z.output<(typeof serverPolicyShape)[Key]> };

/** Completes what a server entry says with what the hub says. */
export function serverPolicySettings(entry: ServerPolicyOptions, hubPermission: PolicyTier | undefined): ServerPolicySettings {
  return {
    permission: entry.permission ?? hubPermission ?? "open",
    overrides: entry.overrides ?? {},
    trustAnnotations: entry.trustAnnotations ?? false,
    scopes: entry.scopes ?? [],
    workspaces: entry.workspaces,
  };
}

/** True when anything was written that can ask or deny: only then do agents get the hook that asks. */
export function canAsk(
  hub: {
    readonly policy?: unknown;
    readonly permission?: unknown;
    readonly toolFingerprints?: { readonly onChange?: unknown } | undefined;
  },
  entries: Iterable<ServerPolicyOptions | undefined>,
): boolean {
  if (hub.policy !== undefined || hub.permission !== undefined || hub.toolFingerprints?.onChange === "ask") return true;
  return [...entries].some((entry) => entry?.permission !== undefined || entry?.overrides !== undefined);
}
