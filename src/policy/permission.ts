import { matchGlob } from "../text/globs.js";
import { nearest } from "../text/nearest.js";
import { McpConfigError } from "../errors.js";
import { OPERATION_KINDS, type Operation } from "./operation.js";

/** One permission of a rule list, taken apart. */
export interface PermissionPattern {
  /** As it was written. */
  readonly text: string;
  readonly kinds: readonly Operation["kind"][];
  readonly matchesServer: (serverName: string) => boolean;
  /** The target when it is one name, without wildcards. */
  readonly literalTarget: string | undefined;
  readonly matchesTarget: (target: string) => boolean;
  /** True for a target of `*`. */
  readonly isAnyTarget: boolean;
}

const SHAPES =
  'mcp:call:<server>:<tool>, mcp:invoke:<server>:<prompt>, mcp:read:<server>:<uri> or mcp:list:<server>, with * for "any"';
const GLOB_CHARS = /[*?[\]{}()!+@|\\]/;

/**
 * Takes a permission of a rule list apart: kind, server and target, each a glob. Everything behind the third colon is
 * the target; a colon in a server's name is written `\:`.
 *
 * @param option - What the message of an error calls the list, such as `policy.deny`.
 * @throws {McpConfigError} for a text that has not these parts, and for a kind that there is not.
 * @example
 * parsePermission("mcp:read:docs:file:///a/*", "policy.deny").matchesTarget("file:///a/b/c");
 * // → true
 */
export function parsePermission(text: string, option: string): PermissionPattern {
  const [scheme = "", kind = "", server = "", ...rest] = text.split(/(?<!\\):/);
  const fail = (what: string): never => {
    throw new McpConfigError(`"${option}" has "${text}": ${what}. Write ${SHAPES}.`);
  };
  if (scheme !== "mcp") fail('a permission begins with "mcp:"');
  const kinds = kind === "" ? [] : OPERATION_KINDS.filter(matchGlob(kind));
  if (kinds.length === 0) {
    const guess = nearest(kind, OPERATION_KINDS);
    fail(`there is no kind "${kind}"${guess === undefined ? "" : `, did you mean "${guess}"?`}`);
  }
  if (server === "") fail("the server is missing");
  const target = rest.join(":");
  if (target === "" && (kinds.length > 1 || kinds[0] !== "list")) fail("the part behind the server is missing");
  const isAnyTarget = target === "" || /^\*+$/.test(target);
  return {
    text,
    kinds,
    matchesServer: matchGlob(server),
    literalTarget: isAnyTarget || GLOB_CHARS.test(target) ? undefined : target,
    matchesTarget: isAnyTarget ? () => true : matchGlob(target),
    isAnyTarget,
  };
}
