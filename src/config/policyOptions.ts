import * as z from "zod";

/** What a policy says about an operation, the most restrictive last. */
export const DECISIONS = ["allow", "ask", "deny"] as const;

/** What a policy says about an operation: run it, ask a person first, or refuse it. */
export type DecisionKind = (typeof DECISIONS)[number];

/**
 * What a server's tools may do, by what they do:
 *
 * - `"open"`: everything is allowed;
 * - `"cautious"`: reading is allowed, anything else is asked;
 * - `"strict"`: everything is asked;
 * - `"readonly"`: reading is allowed, anything else is denied.
 */
export type PolicyTier = (typeof TIERS)[number];

/** Names of the tiers. */
export const TIERS = ["open", "cautious", "strict", "readonly"] as const;

/** What a tool does to the world: reads it, adds to it, or may destroy something. */
export type ToolClass = (typeof CLASSES)[number];

/** Names of the classes. */
export const CLASSES = ["read", "write", "destructive"] as const;

/** Who an operation is for: `runtime.context` of a run, or the `context` given to a method of the hub. */
export interface McpRunContext {
  /** Folder the person works in; compared with `workspaces` of servers. */
  readonly workspace?: unknown;
  /** Names of what the person may use; compared with `scopes` of servers and overrides. */
  readonly scopes?: unknown;
  /** Who it is. Handed to policy functions and events, unread. */
  readonly user?: unknown;
  readonly [key: string]: unknown;
}

/** An operation as a policy function sees it. Names are raw names; texts of servers are untrusted. */
export interface PolicyRequest {
  readonly operation: "call" | "invoke" | "read" | "list";
  readonly serverName: string;
  /** Tool, prompt or URI; empty for `list`. */
  readonly target: string;
  /** Exactly what would be sent. `undefined` when the question is only whether to show the tool. */
  readonly arguments: unknown;
  /** `mcp:call:<server>:<tool>` and so on, as rules name it. */
  readonly permission: string;
  readonly class: ToolClass;
  /** The server's own hints about the tool. Not proof of anything. */
  readonly annotations: Readonly<Record<string, unknown>> | undefined;
  /** `metadata` of the server's configuration. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** What a policy function answers: a decision, one with its reason, or nothing when it has no opinion. */
export type PolicyAnswer = DecisionKind | { readonly decision: DecisionKind; readonly reason?: string } | undefined;

/**
 * Decides about an operation. Answers at once: what it needs to know is loaded before the run and put into `context`.
 *
 * Never run over the catalog: it is asked at a call, and, with `arguments: undefined`, for tools that are about to be
 * shown; `"deny"` hides such a tool. When it throws or answers with anything else, the operation is denied.
 */
export type PolicyFunction = (request: PolicyRequest, context: McpRunContext) => PolicyAnswer;

const policyFunction = z.custom<PolicyFunction>((value) => typeof value === "function", "a function");
const permissions = z.array(z.string().min(1));

const rulesSchema = z.strictObject({
  /** Permissions that are refused. Beats `ask` and `allow`. */
  deny: permissions.optional(),
  /** Permissions a person is asked for. Beats `allow`. */
  ask: permissions.optional(),
  /** Permissions that are granted where `default` is not `"allow"`. */
  allow: permissions.optional(),
  /** What holds when no rule matches. Default `"allow"`. */
  default: z.enum(DECISIONS).optional(),
  /** Decides as well; the most restrictive answer holds. */
  decide: policyFunction.optional(),
  /** What `policy` events hold of arguments: a digest, or all. Default `"digest"`. */
  audit: z.enum(["digest", "arguments"]).optional(),
});

/** Option `policy`: rules, or a function that decides. */
export const policySchema = z.union([rulesSchema, policyFunction]);

/**
 * Rules of a hub: `{ deny, ask, allow, default, decide }`, or a function in place of all.
 *
 * Permissions are globs of four parts, `mcp:<kind>:<server>:<target>` with raw names, compared part by part:
 * `mcp:call:<server>:<tool>`, `mcp:invoke:<server>:<prompt>`, `mcp:read:<server>:<uri>`, `mcp:list:<server>`. The order
 * in a list does not matter: `deny` beats `ask` beats `allow`, and when nothing matches `default` holds. With tiers and
 * functions the most restrictive answer holds.
 */
export type PolicyOptions = z.input<typeof policySchema>;

/** The rules of a policy, written as an object. */
export type PolicyRules = z.output<typeof rulesSchema>;

const tierOrDecision = z.enum([...TIERS, ...DECISIONS]);

const overrideSchema = z.union([
  tierOrDecision,
  z.strictObject({
    /** A tier or a decision in place of the server's `permission`. */
    permission: tierOrDecision.optional(),
    /** What the tools do, whatever their annotations say. */
    class: z.enum(CLASSES).optional(),
    /** The tools are invisible unless `context.scopes` holds all of these. */
    scopes: z.array(z.string().min(1)).optional(),
  }),
]);

/** What holds for some tools of a server in place of the server's `permission`. */
export type ToolOverride = z.input<typeof overrideSchema>;

/** Tier of all servers or of one. */
export const tierSchema = z.enum(TIERS);

/** Options of a server entry that say who may do what with it. */
export const serverPolicyShape = {
  /** What the server's tools may do. Default: that of the hub, else `"open"`. */
  permission: tierSchema.optional(),
  /**
   * Exceptions by globs on raw tool names: a tier, a decision, or `{ permission, class, scopes }`. Only they loosen a
   * tier. An exact name beats globs; of several globs the most restrictive holds.
   */
  overrides: z.record(z.string().min(1), overrideSchema).optional(),
  /** Whether the server's own hints (`readOnlyHint`, `destructiveHint`) tell what its tools do. Default false. */
  trustAnnotations: z.boolean().optional(),
  /** The server is invisible unless `context.scopes` holds all of these. */
  scopes: z.array(z.string().min(1)).optional(),
  /** Globs: the server is invisible unless `context.workspace` matches one. */
  workspaces: z.array(z.string().min(1)).optional(),
};
