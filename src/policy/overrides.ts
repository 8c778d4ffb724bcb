import { matchGlob } from "../text/globs.js";
import {
  CLASSES,
  DECISIONS,
  type DecisionKind,
  type PolicyTier,
  type ToolClass,
  type ToolOverride,
} from "../config/policyOptions.js";
import { decideTier } from "./tiers.js";

/** Combined overrides of one tool. */
export interface Overriding {
  readonly class: ToolClass;
  /** Replaces the server's tier. */
  readonly tier: { readonly name: PolicyTier | DecisionKind; readonly glob: string } | undefined;
  /** Needed besides those of the server. */
  readonly scopes: readonly string[];
}

interface Override {
  readonly glob: string;
  readonly tier: PolicyTier | DecisionKind | undefined;
  readonly class: ToolClass | undefined;
  readonly scopes: readonly string[];
  readonly matches: (toolName: string) => boolean;
}

const nothing = (toolClass: ToolClass): Overriding => ({
  class: toolClass,
  tier: undefined,
  scopes: [],
});
const NOTHING: Readonly<Record<ToolClass, Overriding>> = {
  read: nothing("read"),
  write: nothing("write"),
  destructive: nothing("destructive"),
};

/**
 * Overrides of one server. An exact name beats globs; of several globs the harshest tier and class
 * win, and all scopes count.
 */
export class Overrides {
  readonly #exact = new Map<string, Override>();
  readonly #globs: Override[] = [];

  constructor(overrides: Readonly<Record<string, ToolOverride>>) {
    for (const [glob, value] of Object.entries(overrides)) {
      const {
        tier,
        class: toolClass,
        scopes = [],
      } = typeof value === "string" ? { tier: value } : value;
      const override = { glob, tier, class: toolClass, scopes, matches: matchGlob(glob) };
      this.#exact.set(glob, override);
      this.#globs.push(override);
    }
  }

  scopeLists(): (readonly string[])[] {
    return this.#globs.map(({ scopes }) => scopes).filter((scopes) => scopes.length > 0);
  }

  /** True when an override gives a class, or a tier that needs none. */
  get tellsClasses(): boolean {
    return this.#globs.some(
      ({ class: toolClass, tier }) => toolClass !== undefined || tier !== undefined,
    );
  }

  /** Overrides of a tool that has this class without them. */
  of(toolName: string, ownClass: ToolClass): Overriding {
    if (this.#globs.length === 0) return NOTHING[ownClass];
    const exact = this.#exact.get(toolName);
    const matching = this.#globs.filter(({ matches }) => matches(toolName));
    if (matching.length === 0 && exact === undefined) return NOTHING[ownClass];
    const classRank = ({ class: given }: Override): number =>
      given === undefined ? -1 : CLASSES.indexOf(given);
    const toolClass = exact?.class ?? harshest(matching, classRank)?.class ?? ownClass;
    const effect = ({ tier }: Override): number => {
      if (tier === undefined) return -1;
      return DECISIONS.indexOf(isDecision(tier) ? tier : decideTier(tier, toolClass));
    };
    const deciding = exact?.tier === undefined ? harshest(matching, effect) : exact;
    return {
      class: toolClass,
      tier: deciding?.tier === undefined ? undefined : { name: deciding.tier, glob: deciding.glob },
      scopes: [...new Set([...(exact?.scopes ?? []), ...matching.flatMap(({ scopes }) => scopes)])],
    };
  }
}

/** True for a decision, false for a tier. */
export function isDecision(name: PolicyTier | DecisionKind): name is DecisionKind {
  return (DECISIONS as readonly string[]).includes(name);
}

/** The override with the highest rank; `undefined` when all rank below 0. */
function harshest(
  overrides: readonly Override[],
  rank: (override: Override) => number,
): Override | undefined {
  let best: Override | undefined;
  for (const override of overrides)
    if (rank(override) > (best === undefined ? -1 : rank(best))) best = override;
  return best;
}
