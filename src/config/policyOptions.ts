import * as z from "zod";

/** Decisions, the most restrictive last. */
export const DECISIONS = ["allow", "ask", "deny"] as const;

/** Decision of a policy: run the operation, ask a person first, or refuse it. */
export type DecisionKind = (typeof DECISIONS)[number];

/**
 * `"open"` allows all, `"cautious"` asks for all but reading, `"strict"` asks for all, `"readonly"`
 * denies all but reading.
 */
export type PolicyTier = (typeof TIERS)[number];

/** Every {@link PolicyTier}. */
export const TIERS = ["open", "cautious", "strict", "readonly"] as const;

/** Effect of a tool: it reads, adds, or may destroy something. */
export type ToolClass = (typeof CLASSES)[number];

/** Every {@link ToolClass}, the most harmful last. */
export const CLASSES = ["read", "write", "destructive"] as const;

/**
 * Caller of an operation: `runtime.context` of a run, or the `context` given to a method of the
 * hub.
 */
export interface McpRunContext {
  /** Folder the person works in; compared with `workspaces` of servers. */
  readonly workspace?: unknown;
  /** Scopes of the person; compared with `scopes` of servers and overrides. */
  readonly scopes?: unknown;
  /** The person; passed unread to policy functions and events. */
  readonly user?: unknown;
  readonly [key: string]: unknown;
}

/** An operation as policy functions get it, by raw names. Texts of servers are untrusted. */
export interface PolicyRequest {
  readonly operation: "call" | "invoke" | "read" | "list";
  readonly serverName: string;
  /** Tool, prompt or URI; empty for `list`. */
  readonly target: string;
  /** Exactly what would be sent; `undefined` when the question is whether to show the tool. */
  readonly arguments: unknown;
  /** As rules name it, such as `mcp:call:<server>:<tool>`. */
  readonly permission: string;
  readonly class: ToolClass;
  /** The server's own hints about the tool; no proof of anything. */
  readonly annotations: Readonly<Record<string, unknown>> | undefined;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Answer of a policy function: a decision, one with its reason, or nothing when it has no opinion.
 */
export type PolicyAnswer =
  DecisionKind | { readonly decision: DecisionKind; readonly reason?: string } | undefined;

/**
 * Decides about an operation, synchronously: load what it needs before the run and put it into
 * `context`. Runs at a call and, with `arguments: undefined`, for tools about to be shown, where
 * `"deny"` hides the tool. A throw or any other answer denies the operation.
 */
export type PolicyFunction = (request: PolicyRequest, context: McpRunContext) => PolicyAnswer;

const policyFunction = z.custom<PolicyFunction>(
  (value) => typeof value === "function",
  "a function",
);
const permissions = z.array(z.string().min(1));

/** Rules of a policy. In any order, `deny` beats `ask` beats `allow`. */
export interface PolicyRules {
  /** Permissions to refuse; beats `ask` and `allow`. */
  readonly deny?: readonly string[] | undefined;
  /** Permissions to ask a person for; beats `allow`. */
  readonly ask?: readonly string[] | undefined;
  /** Permissions to grant where `default` is not `"allow"`. */
  readonly allow?: readonly string[] | undefined;
  /** The decision when no rule matches. @default "allow" */
  readonly default?: DecisionKind | undefined;
  /** A function that decides as well; the most restrictive decision wins. */
  readonly decide?: PolicyFunction | undefined;
  /** Arguments in `policy` events: their digest, or all of them. @default "digest" */
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

/** Checks {@link PolicyOptions}. */
export const policySchema = z.union([rulesSchema, policyFunction]);

/**
 * Policy of a hub: rules, or a function in their place. The most restrictive decision of rules,
 * tiers and functions wins. Permissions are globs on raw names, compared part by part:
 * `mcp:call:<server>:<tool>`, `mcp:invoke:<server>:<prompt>`, `mcp:read:<server>:<uri>`,
 * `mcp:list:<server>`.
 */
export type PolicyOptions = PolicyRules | PolicyFunction;

const tierOrDecision = z.enum([...TIERS, ...DECISIONS]);

/** Replaces a server's tier for some of its tools: a tier, a decision, or more than that. */
export type ToolOverride =
  | PolicyTier
  | DecisionKind
  | {
      /** A tier or a decision in place of the server's `tier`. */
      readonly tier?: PolicyTier | DecisionKind | undefined;
      /** Class of the tools, whatever their annotations say. */
      readonly class?: ToolClass | undefined;
      /** The tools are invisible unless `context.scopes` holds all of these. */
      readonly scopes?: readonly string[] | undefined;
    };

/** Options of a server entry about who may do what. */
export interface ServerPolicyOptions {
  /**
   * Tier of the server's tools: `"open"`, `"cautious"`, `"strict"` or `"readonly"`.
   * @default that of the hub, else "open"
   */
  readonly tier?: PolicyTier | undefined;
  /**
   * Exceptions by globs on raw tool names: a tier, a decision, or `{ tier, class, scopes }`. Only
   * they loosen a tier. An exact name beats globs; of several globs the most restrictive wins.
   */
  readonly overrides?: Record<string, ToolOverride> | undefined;
  /**
   * Takes the class of tools from the server's own hints (`readOnlyHint`, `destructiveHint`).
   * @default false
   */
  readonly trustAnnotations?: boolean | undefined;
  /** The server is invisible unless `context.scopes` holds all of these. @default none */
  readonly scopes?: readonly string[] | undefined;
  /**
   * Globs: the server is invisible unless `context.workspace` matches one.
   * @default visible in all
   */
  readonly workspaces?: readonly string[] | undefined;
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

/** Complete policy settings of one server. */
export interface ServerPolicySettings {
  readonly tier: PolicyTier;
  readonly overrides: Readonly<Record<string, ToolOverride>>;
  readonly trustAnnotations: boolean;
  readonly scopes: readonly string[];
  /** The caller needs one of these; `undefined`: any workspace. */
  readonly workspaces: readonly string[] | undefined;
}

type PolicyInput = {
  readonly [Key in keyof typeof serverPolicyShape]?: z.output<(typeof serverPolicyShape)[Key]>;
};

/** Completes a server entry with the hub's tier and the defaults. */
export function serverPolicySettings(
  entry: PolicyInput,
  hubTier: PolicyTier | undefined,
): ServerPolicySettings {
  const {
    tier = hubTier ?? "open",
    overrides = {},
    trustAnnotations = false,
    scopes = [],
    workspaces,
  } = entry;
  return { tier, overrides, trustAnnotations, scopes, workspaces };
}

/** True when an option can ask or deny: only then do agents get the hook that asks. */
export function canAsk(
  hub: {
    readonly policy?: unknown;
    readonly tier?: unknown;
    readonly security?:
      { readonly toolFingerprints?: { readonly onChange?: unknown } | undefined } | undefined;
  },
  entries: Iterable<PolicyInput | undefined>,
): boolean {
  if (
    hub.policy !== undefined ||
    hub.tier !== undefined ||
    hub.security?.toolFingerprints?.onChange === "ask"
  )
    return true;
  return [...entries].some((entry) => entry?.tier !== undefined || entry?.overrides !== undefined);
}
