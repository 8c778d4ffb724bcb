import type { DecisionKind, PolicyTier, ToolClass } from "../config/policyOptions.js";
import type { ToolAnnotations } from "../catalog/toolEntry.js";

const TIER_DECISIONS: Readonly<Record<PolicyTier, Readonly<Record<ToolClass, DecisionKind>>>> = {
  open: { read: "allow", write: "allow", destructive: "allow" },
  cautious: { read: "allow", write: "ask", destructive: "ask" },
  strict: { read: "ask", write: "ask", destructive: "ask" },
  readonly: { read: "allow", write: "deny", destructive: "deny" },
};

/** Decision of a tier about a class of tools. */
export function decideTier(tier: PolicyTier, toolClass: ToolClass): DecisionKind {
  return TIER_DECISIONS[tier][toolClass];
}

/**
 * Class of a tool by its server's hints; `"destructive"`, MCP's default, where these are missing or
 * not trusted.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations
 */
export function classOf(annotations: ToolAnnotations | undefined, isTrusted: boolean): ToolClass {
  if (!isTrusted || annotations === undefined) return "destructive";
  if (annotations.readOnlyHint === true) return "read";
  return annotations.destructiveHint === false ? "write" : "destructive";
}
