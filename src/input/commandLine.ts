import { nearest } from "../text/nearest.js";

/** An argument that a prompt declares. */
export interface PromptArgument {
  readonly name: string;
  readonly description?: string;
  readonly required: boolean;
}

/** The arguments typed after a command, or why they cannot be read. */
export type CommandLine =
  | { readonly kind: "arguments"; readonly arguments: Readonly<Record<string, string>> }
  | { readonly kind: "problem"; readonly problem: string };

interface Token {
  /** The part before the first `=`, when it could be an argument's name. */
  readonly key: string | undefined;
  /** Without quotes; after the `=` when there is a key. */
  readonly value: string;
  readonly raw: string;
  readonly before: string;
}

const KEY = /[\p{L}_][\p{L}\p{N}_.-]*=/uy;

/**
 * Reads the arguments of a command. Pure; never throws. `key=value` may stand anywhere. Values may
 * be quoted; `\` escapes a quote or a backslash. Other values fill missing arguments in declared
 * order, and the last one takes the rest as typed. An undeclared key is a problem, except inside
 * that rest.
 * @example
 * const names = [{ name: "priority", required: true }, { name: "note", required: false }];
 * readCommandLine('high "it broke" today', names);
 * // → { kind: "arguments", arguments: { priority: "high", note: "\"it broke\" today" } }
 */
export function readCommandLine(text: string, declared: readonly PromptArgument[]): CommandLine {
  const values = new Map<string, string>();
  const names = declared.map(({ name }) => name);
  const others: Token[] = [];
  for (const token of tokenize(text, new Set(names))) {
    if (token.key === undefined || !names.includes(token.key)) others.push(token);
    else if (values.has(token.key)) return problem(`"${token.key}" is given twice`);
    else values.set(token.key, token.value);
  }
  const open = names.filter((name) => !values.has(name));
  for (const [position, token] of others.entries()) {
    if (token.key !== undefined) return problem(unknownArgument(token.key, names));
    const name = open[position];
    if (name === undefined)
      return problem(names.length === 0 ? "it takes no arguments" : "there are too many values");
    if (position < open.length - 1) {
      values.set(name, token.value);
      continue;
    }
    const rest = others.slice(position);
    values.set(
      name,
      rest.length === 1
        ? token.value
        : rest.map(({ before, raw }, index) => (index === 0 ? raw : before + raw)).join(""),
    );
    break;
  }
  const missing = declared
    .filter(({ name, required }) => required && !values.has(name))
    .map(({ name }) => `"${name}"`);
  if (missing.length > 0)
    return problem(`${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing`);
  return { kind: "arguments", arguments: Object.fromEntries(values) };
}

/** Usage text of a command's arguments, such as `city=… [state=…]`. */
export function usageOf(declared: readonly PromptArgument[]): string {
  return declared.map(({ name, required }) => (required ? `${name}=…` : `[${name}=…]`)).join(" ");
}

function unknownArgument(key: string, names: readonly string[]): string {
  const guess = nearest(key, names);
  const hint = guess === undefined ? "" : `; did you mean "${guess}"?`;
  return `"${key}" is not an argument of it${hint} (text with "=" is put in quotes)`;
}

function problem(text: string): CommandLine {
  return { kind: "problem", problem: text };
}

function tokenize(text: string, names: ReadonlySet<string>): Token[] {
  const tokens: Token[] = [];
  let gap = "";
  for (let at = 0; at < text.length;) {
    const space = stickyMatch(/\s+/y, text, at);
    if (space !== "") {
      gap = space;
      at += space.length;
      continue;
    }
    const keyPart = stickyMatch(KEY, text, at);
    const value = readValue(text, at + keyPart.length);
    const raw = text.slice(at, value.end);
    const key = keyPart === "" ? undefined : keyPart.slice(0, -1);
    tokens.push({ key, value: value.text, raw, before: gap });
    // Removing a named argument from the middle of a text leaves one gap.
    if (key === undefined || !names.has(key)) gap = "";
    at = value.end;
  }
  return tokens;
}

/** Reads a value: quoted, or up to the next space. */
function readValue(text: string, start: number): { readonly text: string; readonly end: number } {
  const quote = text[start];
  if (quote === '"' || quote === "'") {
    let value = "";
    for (let at = start + 1; at < text.length; at += 1) {
      const char = text[at]!;
      if (char === quote) {
        const end = at + 1;
        if (end === text.length || /\s/.test(text[end]!)) return { text: value, end };
        break;
      }
      // Only quotes and backslashes are escaped: `"C:\dir"` stays a path.
      if (char === "\\" && (text[at + 1] === quote || text[at + 1] === "\\")) at += 1;
      value += text[at]!;
    }
  }
  const word = stickyMatch(/\S+/y, text, start);
  return { text: word, end: start + word.length };
}

function stickyMatch(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
