import { DECISIONS, type DecisionKind, type PolicyRules } from "../config/policyOptions.js";
import { McpConfigError } from "../errors.js";
import type { Operation } from "./operation.js";
import { parsePermission, type PermissionPattern } from "./permission.js";

/** Decision of the rules, with the rule that made it. */
export interface RuleAnswer {
  readonly kind: DecisionKind;
  /** `undefined` when no rule matches and the default decides. */
  readonly rule: string | undefined;
}

/** Rules of one decision for one server and one kind of operation. */
class RuleIndex {
  readonly #literals = new Map<string, string>();
  readonly #patterns: PermissionPattern[] = [];
  isEmpty = true;
  /** A rule that matches every target. */
  any: string | undefined;

  add(pattern: PermissionPattern): void {
    this.isEmpty = false;
    if (pattern.isAnyTarget) this.any ??= pattern.text;
    else if (pattern.literalTarget !== undefined)
      this.#literals.set(pattern.literalTarget, pattern.text);
    else this.#patterns.push(pattern);
  }

  match(target: string): string | undefined {
    return (
      this.any ??
      this.#literals.get(target) ??
      this.#patterns.find(({ matchesTarget }) => matchesTarget(target))?.text
    );
  }
}

/**
 * Rule lists of a policy: `deny` beats `ask` beats `allow`; the default decides when nothing
 * matches.
 */
export class Rules {
  readonly default: DecisionKind;
  readonly #patterns: readonly (readonly [DecisionKind, readonly PermissionPattern[]])[];
  /** By kind and server; bounded by the configured servers. */
  readonly #indexes = new Map<string, readonly (readonly [DecisionKind, RuleIndex])[]>();

  /** @throws {McpConfigError} for a malformed permission, and for an `allow` without effect. */
  constructor(rules: PolicyRules) {
    if (rules.allow !== undefined && rules.default === undefined) {
      throw new McpConfigError(
        'policy: "allow" has no effect as long as everything is allowed. Add default: "ask" or default: "deny".',
      );
    }
    this.default = rules.default ?? "allow";
    this.#patterns = [...DECISIONS]
      .reverse()
      .map(
        (kind) =>
          [
            kind,
            (rules[kind] ?? []).map((text) => parsePermission(text, `policy.${kind}`)),
          ] as const,
      );
  }

  decide(kind: Operation["kind"], serverName: string, target: string): RuleAnswer {
    for (const [decision, index] of this.#indexesOf(kind, serverName)) {
      const rule = index.match(target);
      if (rule !== undefined) return { kind: decision, rule };
    }
    return { kind: this.default, rule: undefined };
  }

  get allowsAll(): boolean {
    return (
      this.default === "allow" &&
      this.#patterns.every(([decision, { length }]) => decision === "allow" || length === 0)
    );
  }

  deniesAll(kind: Operation["kind"], serverName: string): boolean {
    const indexes = this.#indexesOf(kind, serverName);
    if (indexes.some(([decision, { any }]) => decision === "deny" && any !== undefined))
      return true;
    return (
      this.default === "deny" &&
      indexes.every(([decision, { isEmpty }]) => decision === "deny" || isEmpty)
    );
  }

  unused(serverNames: readonly string[]): string[] {
    return this.#patterns.flatMap(([, patterns]) =>
      patterns
        .filter(({ matchesServer }) => !serverNames.some(matchesServer))
        .map(({ text }) => text),
    );
  }

  #indexesOf(
    kind: Operation["kind"],
    serverName: string,
  ): readonly (readonly [DecisionKind, RuleIndex])[] {
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
