import { DECISIONS, type DecisionKind, type PolicyRules } from "../config/policyOptions.js";
import { McpConfigError } from "../errors.js";
import type { Operation } from "./operation.js";
import { parsePermission, type PermissionPattern } from "./permission.js";

/** What the rules say, and which one said it. */
export interface RuleAnswer {
  readonly kind: DecisionKind;
  /** The permission that matched; `undefined` when none did and the default holds. */
  readonly rule: string | undefined;
}

/** The rules of one decision that can match on one server, by kind of operation. */
class RuleIndex {
  readonly #literals = new Map<string, string>();
  readonly #patterns: PermissionPattern[] = [];
  /** True when there is a rule at all. */
  isEmpty = true;
  /** A rule that matches every target. */
  any: string | undefined;

  add(pattern: PermissionPattern): void {
    this.isEmpty = false;
    if (pattern.isAnyTarget) this.any ??= pattern.text;
    else if (pattern.literalTarget !== undefined) this.#literals.set(pattern.literalTarget, pattern.text);
    else this.#patterns.push(pattern);
  }

  match(target: string): string | undefined {
    return this.any ?? this.#literals.get(target) ?? this.#patterns.find(({ matchesTarget }) => matchesTarget(target))?.text;
  }
}

/**
 * The rule lists of a policy: `deny` beats `ask` beats `allow`; when nothing matches the default holds.
 *
 * Pure. The order within a list does not matter.
 */
export class Rules {
  readonly default: DecisionKind;
  readonly #patterns: readonly (readonly [DecisionKind, readonly PermissionPattern[]])[];
  /** By kind and server: only what can match there. As many as servers are configured. */
  readonly #indexes = new Map<string, readonly (readonly [DecisionKind, RuleIndex])[]>();

  /** @throws {McpConfigError} for a permission that cannot be read, and for an `allow` that allows nothing. */
  constructor(rules: PolicyRules) {
    if (rules.allow !== undefined && rules.default === undefined) {
      throw new McpConfigError(
        'policy: "allow" has no effect as long as everything is allowed. Add default: "ask" or default: "deny".',
      );
    }
    this.default = rules.default ?? "allow";
    this.#patterns = [...DECISIONS]
      .reverse()
      .map((kind) => [kind, (rules[kind] ?? []).map((text) => parsePermission(text, `policy.${kind}`))] as const);
  }

  /** What the rules say about a target of a server. */
  decide(kind: Operation["kind"], serverName: string, target: string): RuleAnswer {
    for (const [decision, index] of this.#indexesOf(kind, serverName)) {
      const rule = index.match(target);
      if (rule !== undefined) return { kind: decision, rule };
    }
    return { kind: this.default, rule: undefined };
  }

  /** True when no rule and no default says anything but allow. */
  get allowsAll(): boolean {
    return this.default === "allow" && this.#patterns.every(([decision, { length }]) => decision === "allow" || length === 0);
  }

  /** True when no operation of that kind on the server can be allowed or asked. */
  deniesAll(kind: Operation["kind"], serverName: string): boolean {
    const indexes = this.#indexesOf(kind, serverName);
    if (indexes.some(([decision, { any }]) => decision === "deny" && any !== undefined)) return true;
    return this.default === "deny" && indexes.every(([decision, { isEmpty }]) => decision === "deny" || isEmpty);
  }

  /** The rules whose server part matches none of these names. */
  unused(serverNames: readonly string[]): string[] {
    return this.#patterns.flatMap(([, patterns]) =>
      patterns.filter(({ matchesServer }) => !serverNames.some(matchesServer)).map(({ text }) => text),
    );
  }

  #indexesOf(kind: Operation["kind"], serverName: string): readonly (readonly [DecisionKind, RuleIndex])[] {
    const key = `${kind}:${serverName}`;
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    const indexes = this.#patterns.map(([decision, patterns]) => {
      const index = new RuleIndex();
      for (const pattern of patterns) {
        if (pattern.kinds.includes(kind) && pattern.matchesServer(serverName)) index.add(pattern);
      }
      return [decision, index] as const;
    });
    this.#indexes.set(key, indexes);
    return indexes;
  }
}
