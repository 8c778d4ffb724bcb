/*
 * Control characters (but tab and line ends), zero-width, bidirectional and other invisible characters, fillers, tags, lone
 * surrogates; variation selectors that do not stand alone behind a character, for text can be hidden in rows of them.
 */
const INVISIBLE =
  /(?![\t\n\r])\p{Cc}|(?![\uFE00-\uFE0F])\p{Default_Ignorable_Code_Point}|(?<=[\uFE00-\uFE0F])[\uFE00-\uFE0F]|[\u2028\u2029\uFFF9-\uFFFB]|\p{Cs}/gu;

/* Most texts have nothing but these. */
const PLAIN = /^[\t\n\r\x20-\x7E]*$/;

/** Removes characters a reader cannot see: controls, zero-width and bidirectional marks, tags, lone surrogates. */
export function removeInvisible(text: string): string {
  return PLAIN.test(text) ? text : text.replace(INVISIBLE, "");
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

/** The length at which all together fit: short ones stay whole, long ones share what is left. */
export function fairShare(lengths: readonly number[], maxChars: number): number {
  let left = maxChars;
  const ascending = lengths.filter((length) => length > 0).sort((a, b) => a - b);
  for (const [index, length] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (length > share) return share;
    left -= length;
  }
  return left;
}
