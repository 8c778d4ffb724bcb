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

/** Rules of a policy. The order in a list does not matter: `deny` beats `ask` beats `allow`. */
export interface PolicyRules {
  /** Permissions that are refused. Beats `ask` and `allow`. */
  readonly deny?: string[] | undefined;
  /** Permissions a person is asked for. Beats `allow`. */
  readonly ask?: string[] | undefined;
  /** Permissions that are granted where `default` is not `"allow"`. */
  readonly allow?: string[] | undefined;
  /** The decision when no rule matches. @default "allow" */
  readonly default?: DecisionKind | undefined;
  /** Decides as well; the most restrictive decision wins. */
  readonly decide?: PolicyFunction | undefined;
  /** What `policy` events hold of arguments: a digest, or all. @default "digest" */
  readonly audit?: "digest" | "arguments" | undefined;
}

const rulesSchema = z.strictObject({
  deny: permissions.optional(),
  ask: permissions.optional(),
  allow: permissions.optional(),
  default: z.enum(DECISIONS).optional(),
  decide: policyFunction.optional(),
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
export type PolicyOptions = PolicyRules | PolicyFunction;

const tierOrDecision = z.enum([...TIERS, ...DECISIONS]);

/** What holds for some tools of a server in place of its tier: a tier, a decision, or more than that. */
export type ToolOverride =
  | PolicyTier
  | DecisionKind
  | {
      /** A tier or a decision in place of the server's `tier`. */
      readonly tier?: PolicyTier | DecisionKind | undefined;
      /** What the tools do, whatever their annotations say. */
      readonly class?: ToolClass | undefined;
      /** The tools are invisible unless `context.scopes` holds all of these. */
      readonly scopes?: string[] | undefined;
    };

/** Options of a server entry that say who may do what with it. */
export interface ServerPolicyOptions {
  /** What the server's tools may do: `"open"`, `"cautious"`, `"strict"` or `"readonly"`. @default that of the hub, else "open" */
  readonly tier?: PolicyTier | undefined;
  /** Exceptions by globs on raw tool names: a tier, a decision, or `{ tier, class, scopes }`. Only they loosen a tier. An exact name beats globs; of several globs the most restrictive holds. */
  readonly overrides?: Record<string, ToolOverride> | undefined;
  /** Whether the server's own hints (`readOnlyHint`, `destructiveHint`) tell what its tools do. @default false */
  readonly trustAnnotations?: boolean | undefined;
  /** The server is invisible unless `context.scopes` holds all of these. @default none */
  readonly scopes?: string[] | undefined;
  /** Globs: the server is invisible unless `context.workspace` matches one. @default visible in all */
  readonly workspaces?: string[] | undefined;
}

/** Checks a {@link PolicyTier}. */
export const tierSchema = z.enum(TIERS);

const namesSchema = z.array(z.string().min(1));

/** Checks {@link ServerPolicyOptions}. */
export const serverPolicyShape = {
  tier: tierSchema.optional(),
  overrides: z
    .record(
      z.string().min(1),
      z.union([
        tierOrDecision,
        z.strictObject({
          tier: tierOrDecision.optional(),
          class: z.enum(CLASSES).optional(),
          scopes: namesSchema.optional(),
        }),
      ]),
    )
    .optional(),
  trustAnnotations: z.boolean().optional(),
  scopes: namesSchema.optional(),
  workspaces: namesSchema.optional(),
};

/** Who may do what with one server: complete settings. */
export interface ServerPolicySettings {
  readonly tier: PolicyTier;
  readonly overrides: Readonly<Record<string, ToolOverride>>;
  readonly trustAnnotations: boolean;
  /** All of these are needed. */
  readonly scopes: readonly string[];
  /** One of these is needed, when there are any. */
  readonly workspaces: readonly string[] | undefined;
}

type PolicyInput = { readonly [Key in keyof typeof serverPolicyShape]?: z.output<(typeof serverPolicyShape)[Key]> };

/** Completes what a server entry says with what the hub says. */
export function serverPolicySettings(entry: PolicyInput, hubTier: PolicyTier | undefined): ServerPolicySettings {
  const { tier = hubTier ?? "open", overrides = {}, trustAnnotations = false, scopes = [], workspaces } = entry;
  return { tier, overrides, trustAnnotations, scopes, workspaces };
}

/** True when anything was written that can ask or deny: only then do agents get the hook that asks. */
export function canAsk(
  hub: {
    readonly policy?: unknown;
    readonly tier?: unknown;
    readonly security?: { readonly toolFingerprints?: { readonly onChange?: unknown } | undefined } | undefined;
  },
  entries: Iterable<PolicyInput | undefined>,
): boolean {
  if (hub.policy !== undefined || hub.tier !== undefined || hub.security?.toolFingerprints?.onChange === "ask") return true;
  return [...entries].some((entry) => entry?.tier !== undefined || entry?.overrides !== undefined);
}
