import { matchGlobs } from "../text/globs.js";
import type { McpRunContext } from "../config/policyOptions.js";

/** The part of a run's context that decides what is visible; equal keys mean equal answers. */
export interface Audience {
  readonly key: string;
  /**
   * True when the workspace matches one of these globs; takes only lists given to {@link
   * Requirements}.
   */
  readonly isInWorkspace: (workspaces: readonly string[]) => boolean;
  readonly hasScopes: (scopes: readonly string[]) => boolean;
}

/**
 * Workspace and scope lists of a configuration: fixed and few, so that audiences are few for any
 * number of contexts.
 */
export class Requirements {
  readonly #workspaces: readonly {
    readonly list: readonly string[];
    readonly matches: (text: string) => boolean;
  }[];
  readonly #scopes: readonly (readonly string[])[];

  constructor(workspaces: Iterable<readonly string[]>, scopes: Iterable<readonly string[]>) {
    this.#workspaces = [...workspaces].map((list) => ({ list, matches: matchGlobs(list) }));
    this.#scopes = [...scopes];
  }

  /** The audience of a context; missing or malformed parts count as absent. */
  audienceOf(context: McpRunContext): Audience {
    if (this.#workspaces.length + this.#scopes.length === 0) return EVERYBODY;
    const workspace = plainPath(context.workspace);
    const scopes = new Set(Array.isArray(context.scopes) ? (context.scopes as unknown[]) : []);
    const workspaceHolds = this.#workspaces.map(
      ({ matches }) => workspace !== undefined && matches(workspace),
    );
    const scopesHold = this.#scopes.map((list) => list.every((scope) => scopes.has(scope)));
    return {
      key: [...workspaceHolds, ...scopesHold].map(Number).join(""),
      isInWorkspace: (list) =>
        workspaceHolds[this.#workspaces.findIndex((known) => known.list === list)] === true,
      hasScopes: (list) => list.every((scope) => scopes.has(scope)),
    };
  }
}

const EVERYBODY: Audience = { key: "", isInWorkspace: () => true, hasScopes: () => true };

/**
 * A folder without a slash at its end; `undefined` for one with `..` and for anything but a string.
 */
function plainPath(workspace: unknown): string | undefined {
  if (typeof workspace !== "string" || workspace === "" || workspace.split(/[/\\]/).includes(".."))
    return undefined;
  return workspace.length > 1 && workspace.endsWith("/") ? workspace.slice(0, -1) : workspace;
}
