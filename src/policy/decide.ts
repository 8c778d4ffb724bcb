/** Something an agent or a program wants of a server. Names are raw names. */
export interface Operation {
  readonly kind: "call";
  readonly serverName: string;
  readonly toolName: string;
  /** Exactly what would be sent. */
  readonly arguments: unknown;
}

/** What the policy says about an operation. */
export type Decision = { readonly kind: "allow" } | { readonly kind: "deny"; readonly reason: string };

/** Decides about an operation. Pure. */
export type Decide = (operation: Operation) => Decision;

/** The policy of a hub that was given none. */
export const allowAll: Decide = () => ({ kind: "allow" });

/**
 * The permission an operation needs, as rules name it.
 *
 * @example
 * permissionOf({ kind: "call", serverName: "docs", toolName: "read", arguments: {} });
 * // → "mcp:call:docs:read"
 */
export function permissionOf({ kind, serverName, toolName }: Operation): string {
  return `mcp:${kind}:${serverName}:${toolName}`;
}
