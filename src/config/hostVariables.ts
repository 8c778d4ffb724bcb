import { homedir } from "node:os";
import { basename, dirname, resolve, sep } from "node:path";

/** Fields in which hosts fill in a bare `$NAME`: in arguments it may be meant for the program. */
const BARE_FIELDS = new Set(["env", "environment", "headers", "url", "serverUrl", "httpUrl"]);
const BARE = /(^|\s)\$([A-Z_][A-Z0-9_]*)(?=$|\s)/g;
const OF_HOST = /\{\{\s*[\w.]+\s*\}\}/;

/**
 * Writes the variables of other hosts in an entry as ours: `{env:NAME}` and a bare `$NAME` become
 * `${NAME}`; folders that an editor knows are filled in. Pure.
 * @throws {Error} for `{{NAME}}`, which only its host can fill in.
 */
export function withOwnVariables(value: unknown, folder: string, isBare = false): unknown {
  if (typeof value === "string") return ownText(value, folder, isBare);
  if (Array.isArray(value)) return value.map((part) => withOwnVariables(part, folder, isBare));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      withOwnVariables(part, folder, isBare || BARE_FIELDS.has(key)),
    ]),
  );
}

/** The folder that `${workspaceFolder}` is for a file: that which holds it, or its dot folder. */
export function workspaceOf(path: string): string {
  const folder = dirname(resolve(path));
  const outer = basename(folder).startsWith(".") ? dirname(folder) : folder;
  return outer === homedir() ? process.cwd() : outer;
}

function ownText(text: string, folder: string, isBare: boolean): string {
  const [template] = OF_HOST.exec(text) ?? [];
  if (template !== undefined) {
    throw new Error(`${template} is filled in by its own host; write a value or \${NAME}`);
  }
  const known: Readonly<Record<string, string>> = {
    workspaceFolder: folder,
    workspaceRoot: folder,
    workspaceFolderBasename: basename(folder),
    userHome: homedir(),
    cwd: process.cwd(),
    pathSeparator: sep,
    "/": sep,
  };
  const filled = text
    .replace(/(?<!\$)\{env:([A-Za-z_]\w*)\}/g, (_whole, name: string) => `\${${name}}`)
    .replace(/\$\{([A-Za-z]+|\/)\}/g, (whole, name: string) =>
      Object.hasOwn(known, name) ? known[name]! : whole,
    );
  return isBare
    ? filled.replace(BARE, (_whole, before: string, name: string) => `${before}\${${name}}`)
    : filled;
}
