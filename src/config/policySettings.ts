import type * as z from "zod";

import type { governShape, PermissionTier, ToolOverride } from "./policyOptions.js";

/** Who may do what with one server: complete settings. */
export interface GovernSettings {
  readonly permission: PermissionTier;
  readonly overrides: Readonly<Record<string, ToolOverride>>;
  readonly trustAnnotations: boolean;
  /** All of these are needed. */
  readonly scopes: readonly string[];
  /** One of these is needed, when there are any. */
  readonly workspaces: readonly string[] | undefined;
}

type GovernOptions = { readonly [Key in keyof typeof governShape]?: z.output<(typeof governShape)[Key]> };

/** Completes what a server entry says with what the hub says. */
export function governSettings(entry: GovernOptions, hubPermission: PermissionTier | undefined): GovernSettings {
  return {
    permission: entry.permission ?? hubPermission ?? "open",
    overrides: entry.overrides ?? {},
    trustAnnotations: entry.trustAnnotations ?? false,
    scopes: entry.scopes ?? [],
    workspaces: entry.workspaces,
  };
}

/** True when anything was written that can ask or deny: only then do agents get the hook that asks. */
export function isGoverned(
  hub: {
    readonly policy?: unknown;
    readonly permission?: unknown;
    readonly toolPins?: { readonly onChange?: unknown } | undefined;
  },
  entries: Iterable<GovernOptions | undefined>,
): boolean {
  if (hub.policy !== undefined || hub.permission !== undefined || hub.toolPins?.onChange === "ask") return true;
  return [...entries].some((entry) => entry?.permission !== undefined || entry?.overrides !== undefined);
}
