import { matchGlobs } from "../text/globs.js";
import type { McpRunContext } from "../config/policyOptions.js";

/** What of a run's context decides about what can be seen. Equal keys mean equal answers. */
export interface Audience {
  readonly key: string;
  /** True when the run's workspace is one of these. */
  readonly isInWorkspace: (workspaces: readonly string[]) => boolean;
  /** True when the run has all of these scopes. */
  readonly hasScopes: (scopes: readonly string[]) => boolean;
}

/**
 * What a configuration asks of contexts: the lists of workspaces and of scopes in it. They are few and fixed, so there
 * are few audiences however many contexts there are.
 */
export class Requirements {
  readonly #workspaces: readonly { readonly list: readonly string[]; readonly matches: (text: string) => boolean }[];
  readonly #scopes: readonly (readonly string[])[];

  constructor(workspaces: Iterable<readonly string[]>, scopes: Iterable<readonly string[]>) {
    this.#workspaces = [...workspaces].map((list) => ({ list, matches: matchGlobs(list) }));
    this.#scopes = [...scopes];
  }

  /** The audience a context belongs to. What is missing or malformed in it counts as not there. */
  audienceOf(context: McpRunContext): Audience {
    if (this.#workspaces.length + this.#scopes.length === 0) return EVERYBODY;
    const workspace = plainPath(context.workspace);
    const scopes = new Set(Array.isArray(context.scopes) ? (context.scopes as unknown[]) : []);
    const workspaceHolds = this.#workspaces.map(({ matches }) => workspace !== undefined && matches(workspace));
    const scopesHold = this.#scopes.map((list) => list.every((scope) => scopes.has(scope)));
    return {
      key: [...workspaceHolds, ...scopesHold].map(Number).join(""),
      isInWorkspace: (list) => workspaceHolds[this.#workspaces.findIndex((known) => known.list === list)] === true,
      hasScopes: (list) => list.every((scope) => scopes.has(scope)),
    };
  }
}

const EVERYBODY: Audience = { key: "", isInWorkspace: () => true, hasScopes: () => true };

/** A folder without a slash at its end; `undefined` for what is no text or climbs with `..`. */
function plainPath(workspace: unknown): string | undefined {
  if (typeof workspace !== "string" || workspace === "" || workspace.split(/[/\\]/).includes("..")) return undefined;
  return workspace.length > 1 && workspace.endsWith("/") ? workspace.slice(0, -1) : workspace;
}
