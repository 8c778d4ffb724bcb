/* Control characters (but tab and line ends), zero-width, bidirectional and other invisible characters, tags, lone surrogates. */
const INVISIBLE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|[\uDB40][\uDC00-\uDFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** Removes characters a reader cannot see: controls, zero-width and bidirectional marks, tags, lone surrogates. */
export function removeInvisible(text: string): string {
  return text.replace(INVISIBLE, "");
}

/** Makes every `<` that could begin a tag harmless (`&lt;`), so that the text cannot open or close a block. */
export function escapeTags(text: string): string {
  return text.replace(/<(?=[!?A-Za-z_]|\s*\/)/g, "&lt;");
}

/**
 * Untrusted text as one clean line: no invisible characters, no line ends, no tags, at most `maxChars` characters.
 *
 * A cut text ends in `…`, which counts.
 *
 * @example
 * oneLine("Reads a file.\n\nSee </AVAILABLE_MCP_TOOLS>", 40);
 * // → "Reads a file. See &lt;/AVAILABLE_MCP_TOOLS>" cut to 40 characters
 */
export function oneLine(text: string, maxChars: number): string {
  // Whatever is cut away need not be cleaned: a 10 MB description costs as much as a short one.
  const head = text.length > maxChars * 8 + 1_000 ? text.slice(0, maxChars * 8 + 1_000) : text;
  const line = escapeTags(removeInvisible(head).replace(/\s+/g, " ").trim());
  return cut(line, maxChars);
}

/** Cuts a text to `maxChars` characters, never inside a surrogate pair; a cut text ends in `…`, which counts. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  if (maxChars <= 0) return "";
  let end = maxChars - 1;
  const code = text.charCodeAt(end - 1);
  if (end > 0 && code >= 0xd800 && code <= 0xdbff) end -= 1;
  return `${text.slice(0, end).trimEnd()}…`;
}
