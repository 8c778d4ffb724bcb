import { matchGlob } from "../text/globs.js";
import { nearest } from "../text/nearest.js";
import { McpConfigError } from "../errors.js";
import { OPERATION_KINDS, type Operation } from "./operation.js";

/** A parsed permission of a rule list. */
export interface PermissionPattern {
  readonly text: string;
  readonly kinds: readonly Operation["kind"][];
  readonly matchesServer: (serverName: string) => boolean;
  /** The target, if it has no wildcards. */
  readonly literalTarget: string | undefined;
  readonly matchesTarget: (target: string) => boolean;
  readonly isAnyTarget: boolean;
}

const SHAPES =
  'mcp:call:<server>:<tool>, mcp:invoke:<server>:<prompt>, mcp:read:<server>:<uri> or mcp:list:<server>, with * for "any"';
const GLOB_CHARS = /[*?[\]{}()!+@|\\]/;

/**
 * Parses a permission of the list `option`; a server's name writes colons `\:`.
 * @throws {McpConfigError} for a malformed one.
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
  if (target === "" && (kinds.length > 1 || kinds[0] !== "list"))
    fail("the part behind the server is missing");
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
