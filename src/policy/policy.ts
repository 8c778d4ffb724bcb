import { digest } from "../text/hash.js";
import type { ToolAnnotations } from "../catalog/toolEntry.js";
import {
  DECISIONS,
  type DecisionKind,
  type McpRunContext,
  type PolicyTier,
  type PolicyFunction,
  type PolicyOptions,
  type PolicyRules,
  type ToolClass,
} from "../config/policyOptions.js";
import type { ServerPolicySettings } from "../config/policyOptions.js";
import type { HubSettings, ServerSettings } from "../config/settings.js";
import { messageOf } from "../errors.js";
import { Requirements, type Audience } from "./audience.js";
import { permissionOf, targetOf, OPERATION_KINDS, type Operation } from "./operation.js";
import { isDecision, Overrides, type Overriding } from "./overrides.js";
import { Rules } from "./rules.js";
import { classOf, decideTier } from "./tiers.js";
import { isUnclear, spellUri } from "./uriSpellings.js";

/** Decision of the policy about an operation. */
export interface Decision {
  readonly kind: DecisionKind;
  readonly reason: string;
  /** The rule, tier, override or function that decided. */
  readonly decidedBy: string;
  readonly class: ToolClass;
  /** True when it is denied whatever the arguments are, so that it must stay invisible. */
  readonly isHidden: boolean;
}

/** A tool whose visibility is decided. */
export interface PolicyTool {
  readonly serverName: string;
  readonly toolName: string;
  readonly annotations?: ToolAnnotations | undefined;
}

/** The more restrictive of two decisions, the first of equal ones. */
export function moreRestrictive<Value extends { readonly kind: DecisionKind }>(
  first: Value,
  second: Value,
): Value {
  return DECISIONS.indexOf(second.kind) > DECISIONS.indexOf(first.kind) ? second : first;
}

/** A decision before it is put into words: most reasons are never read. */
interface Verdict {
  readonly kind: DecisionKind;
  readonly explain: () => Pick<Decision, "reason" | "decidedBy">;
}

const MAX_TARGET_CHARS = 2_048;

interface PolicyServer {
  readonly settings: ServerSettings;
  readonly overrides: Overrides;
}

/**
 * Decides who may do what by rules, tiers, overrides, scopes, workspaces and a function. Immutable:
 * new rules, new policy.
 */
export class Policy {
  static #count = 0;
  readonly version = (Policy.#count += 1);
  /** Equal for equal rules in every process; ignores the function. */
  readonly key: string;
  /** True when everything is allowed to everybody. */
  readonly isOpen: boolean;
  readonly audit: "digest" | "arguments";
  readonly #rules: Rules;
  readonly #decide: PolicyFunction | undefined;
  readonly #servers: ReadonlyMap<string, PolicyServer>;
  readonly #requirements: Requirements;

  /** @param options - The rules in force. @throws {McpConfigError} for a malformed permission. */
  constructor(settings: HubSettings, options: PolicyOptions | undefined) {
    const { decide, audit, ...lists }: PolicyRules =
      typeof options === "function" ? { decide: options } : (options ?? {});
    this.#rules = new Rules(lists);
    this.#decide = decide;
    this.audit = audit ?? "digest";
    this.#servers = new Map(
      [...settings.servers].map(([serverName, server]) => [
        serverName,
        { settings: server, overrides: new Overrides(server.policy.overrides) },
      ]),
    );
    const servers = [...this.#servers.values()];
    this.#requirements = new Requirements(
      servers.flatMap(({ settings: { policy } }) =>
        policy.workspaces === undefined ? [] : [policy.workspaces],
      ),
      servers
        .flatMap(({ settings: { policy }, overrides }) => [
          policy.scopes,
          ...overrides.scopeLists(),
        ])
        .filter(isNotEmpty),
    );
    this.isOpen =
      decide === undefined &&
      this.#rules.allowsAll &&
      servers.every(({ settings: { policy } }) => isOpenServer(policy));
    this.key = digest(
      JSON.stringify([
        lists,
        servers.map(({ settings: { serverName, policy } }) => [serverName, policy]),
      ]),
    );
  }

  get hasFunction(): boolean {
    return this.#decide !== undefined;
  }

  audienceOf(context: McpRunContext): Audience {
    return this.#requirements.audienceOf(context);
  }

  /** Decides about an operation with its arguments, by the function as well. */
  decide(operation: Operation, context: McpRunContext): Decision {
    const own = this.#overriding(operation);
    const fixed = this.#fixed(operation, own, this.audienceOf(context));
    if (fixed.kind === "deny" || this.#decide === undefined) {
      return {
        kind: fixed.kind,
        ...fixed.explain(),
        class: own.class,
        isHidden: fixed.kind === "deny",
      };
    }
    const verdict = moreRestrictive(fixed, this.#ask(operation, own.class, context));
    // Is it denied for these arguments or for any?
    const isHidden =
      verdict.kind === "deny" &&
      operation.kind === "call" &&
      this.#ask({ ...operation, arguments: undefined }, own.class, context).kind === "deny";
    return { kind: verdict.kind, ...verdict.explain(), class: own.class, isHidden };
  }

  allowsAlways(operation: Operation, context: McpRunContext): boolean {
    if (this.#decide !== undefined) return false;
    return (
      this.#fixed(operation, this.#overriding(operation), this.audienceOf(context)).kind === "allow"
    );
  }

  /** False for a server this audience may not use at all. */
  isServerVisible(serverName: string, audience: Audience): boolean {
    if (shutOut(this.#servers.get(serverName)!.settings, [], audience) !== undefined) return false;
    return !OPERATION_KINDS.every((kind) => this.#rules.deniesAll(kind, serverName));
  }

  /** False for a tool this audience may not call with any arguments. Does not ask the function. */
  isToolVisible(tool: PolicyTool, audience: Audience): boolean {
    const operation = callOf(tool);
    return this.#fixed(operation, this.#overriding(operation), audience).kind !== "deny";
  }

  /**
   * False when this audience may not list the server's prompts and resources. Does not ask the
   * function.
   */
  isListVisible(serverName: string, audience: Audience): boolean {
    const operation: Operation = { kind: "list", serverName };
    return this.#fixed(operation, this.#overriding(operation), audience).kind !== "deny";
  }

  /** Asks the function whether a tool may be shown; true without a function. */
  mayShow(tool: PolicyTool, context: McpRunContext): boolean {
    if (this.#decide === undefined) return true;
    const operation = callOf(tool);
    return this.#ask(operation, this.#overriding(operation).class, context).kind !== "deny";
  }

  /** Rules whose server part matches no configured server. */
  unusedRules(): string[] {
    return this.#rules.unused([...this.#servers.keys()]);
  }

  /** Servers with tier `cautious` or `readonly` of whose tools nothing tells the class. */
  serversWithoutClasses(): string[] {
    return [...this.#servers.values()]
      .filter(
        ({ settings: { policy, enabled }, overrides }) =>
          enabled &&
          (policy.tier === "cautious" || policy.tier === "readonly") &&
          !policy.trustAnnotations &&
          !overrides.tellsClasses,
      )
      .map(({ settings }) => settings.serverName);
  }

  /** Class and overrides of an operation; only tool calls can write. */
  #overriding(operation: Operation): Overriding {
    if (operation.kind !== "call") return READING;
    const { settings, overrides } = this.#servers.get(operation.serverName)!;
    return overrides.of(
      operation.toolName,
      classOf(operation.annotations, settings.policy.trustAnnotations),
    );
  }

  /** Decides without the function: by scopes, workspaces, rules and tier. */
  #fixed(operation: Operation, own: Overriding, audience: Audience): Verdict {
    const { settings } = this.#servers.get(operation.serverName)!;
    return (
      shutOut(settings, own.scopes, audience) ??
      moreRestrictive(
        this.#ruled(operation),
        tiered(settings.serverName, own, settings.policy.tier),
      )
    );
  }

  #ruled(operation: Operation): Verdict {
    const target = targetOf(operation);
    // Bounds the time to match a name that a server or a model made up.
    if (target.length > MAX_TARGET_CHARS)
      return denied(`its name has more than ${MAX_TARGET_CHARS} characters`, "length");
    if (operation.kind !== "read") return this.#ruledAs(operation, target);
    if (isUnclear(target))
      return denied("its URI has control characters, or spaces at its ends", "characters");
    // The server may follow any spelling of a URI.
    const { same, loose } = spellUri(target);
    const strict = same.map((spelling) => this.#ruledAs(operation, spelling));
    const related = loose
      .map((spelling) => this.#ruledAs(operation, spelling))
      .filter(({ isRule }) => isRule);
    return [...strict, ...related].reduce((first, second) => moreRestrictive(first, second));
  }

  #ruledAs(
    { kind, serverName }: Operation,
    target: string,
  ): Verdict & { readonly isRule: boolean } {
    const { kind: decision, rule } = this.#rules.decide(kind, serverName, target);
    return {
      kind: decision,
      isRule: rule !== undefined,
      explain: () =>
        rule === undefined
          ? {
              reason: `no rule matches, and by default the policy says ${decision}`,
              decidedBy: "default",
            }
          : { reason: `rule "${rule}" says ${decision}`, decidedBy: `rule ${rule}` },
    };
  }

  /** Asks the function; a wrong answer denies. */
  #ask(operation: Operation, toolClass: ToolClass, context: McpRunContext): Verdict {
    const broken = (what: string): Verdict => denied(`the policy function ${what}`, "function");
    try {
      const answer: unknown = this.#decide!(
        {
          operation: operation.kind,
          serverName: operation.serverName,
          target: targetOf(operation),
          arguments: "arguments" in operation ? structuredClone(operation.arguments) : undefined,
          permission: permissionOf(operation),
          class: toolClass,
          annotations:
            operation.kind === "call"
              ? (operation.annotations as Record<string, unknown>)
              : undefined,
          metadata: this.#servers.get(operation.serverName)!.settings.metadata,
        },
        context,
      );
      if (answer instanceof Promise) {
        answer.catch(() => undefined);
        return broken("returned a promise; it has to answer at once");
      }
      if (answer === null) return broken("gave no decision");
      if (answer === undefined) return said("allow", "the policy function has no objection");
      const { decision, reason } =
        typeof answer === "string" ? { decision: answer } : (answer as Record<string, unknown>);
      if (!(DECISIONS as readonly unknown[]).includes(decision)) return broken("gave no decision");
      const given = typeof reason === "string" && reason !== "" ? reason : undefined;
      return said(
        decision as DecisionKind,
        given ?? `the policy function says ${decision as string}`,
      );
    } catch (error) {
      return broken(`failed: ${messageOf(error)}`);
    }
  }
}

function isOpenServer({ tier, overrides, scopes, workspaces }: ServerPolicySettings): boolean {
  return (
    tier === "open" &&
    Object.keys(overrides).length + scopes.length === 0 &&
    workspaces === undefined
  );
}

const READING: Overriding = { class: "read", tier: undefined, scopes: [] };

/** The denial of a caller outside the workspaces or without the scopes; `undefined` for others. */
function shutOut(
  { serverName, policy }: ServerSettings,
  scopes: readonly string[],
  audience: Audience,
): Verdict | undefined {
  if (policy.workspaces !== undefined && !audience.isInWorkspace(policy.workspaces)) {
    return denied(`server "${serverName}" is not for this workspace`, "workspaces");
  }
  const hasScopes = audience.hasScopes(policy.scopes) && audience.hasScopes(scopes);
  return hasScopes ? undefined : denied("the caller has not the scopes it needs", "scopes");
}

/** Decision of the server's tier, or of the override in its place. */
function tiered(serverName: string, own: Overriding, tier: PolicyTier): Verdict {
  const name = own.tier?.name ?? tier;
  const kind = isDecision(name) ? name : decideTier(name, own.class);
  return {
    kind,
    explain: () => {
      const where = own.tier === undefined ? `tier "${tier}"` : `override "${own.tier.glob}"`;
      return {
        reason: `${where} of server "${serverName}" says ${kind} (${own.class})`,
        decidedBy: where,
      };
    },
  };
}

function denied(reason: string, decidedBy: string): Verdict {
  return { kind: "deny", explain: () => ({ reason, decidedBy }) };
}

function said(kind: DecisionKind, reason: string): Verdict {
  return { kind, explain: () => ({ reason, decidedBy: "function" }) };
}

function callOf({
  serverName,
  toolName,
  annotations,
}: PolicyTool): Extract<Operation, { kind: "call" }> {
  return { kind: "call", serverName, toolName, arguments: undefined, annotations };
}

function isNotEmpty(list: readonly unknown[]): boolean {
  return list.length > 0;
}
