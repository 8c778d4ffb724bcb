/**
 * Controls but tab and line ends, ignorable characters, lone surrogates, rows of variation
 * selectors that can hide text.
 */
const INVISIBLE =
  /(?![\t\n\r])\p{Cc}|(?![\uFE00-\uFE0F])\p{Default_Ignorable_Code_Point}|(?<=[\uFE00-\uFE0F])[\uFE00-\uFE0F]|[\u2028\u2029\uFFF9-\uFFFB]|\p{Cs}/gu;

const PLAIN = /^[\t\n\r\x20-\x7E]*$/;

/**
 * Removes characters a reader cannot see: controls, zero-width and bidirectional marks, tags, lone
 * surrogates.
 */
export function removeInvisible(text: string): string {
  return PLAIN.test(text) ? text : text.replace(INVISIBLE, "");
}

/* Everything that changes the line a person reads, or could hide in it. */
const UNREADABLE = /\p{C}|\p{Default_Ignorable_Code_Point}|[\u2028\u2029]/gu;

/**
 * A text for a person in which nothing hides: characters that cannot be seen are written out as
 * `\u{200b}`.
 */
export function visible(text: string): string {
  return text.replace(UNREADABLE, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`);
}

/**
 * Escapes every `<` that could begin a tag (`&lt;`), so that the text cannot open or close a block.
 */
export function escapeTags(text: string): string {
  return text.replace(/<(?=[!?A-Za-z_]|\s*\/)/g, "&lt;");
}

/**
 * Untrusted text as one line of at most `maxChars`: no invisible characters, line ends or tags; a
 * cut text ends in `…`.
 */
export function oneLine(text: string, maxChars: number): string {
  // Cut before cleaning: a 10 MB description costs as much as a short one.
  const head = text.length > maxChars * 8 + 1_000 ? text.slice(0, maxChars * 8 + 1_000) : text;
  const line = escapeTags(removeInvisible(head).replace(/\s+/g, " ").trim());
  return cut(line, maxChars);
}

/**
 * Cuts a text to `maxChars` characters, never inside a surrogate pair; a cut text ends in `…`,
 * which counts.
 */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  if (maxChars <= 0) return "";
  let end = maxChars - 1;
  const code = text.charCodeAt(end - 1);
  if (end > 0 && code >= 0xd800 && code <= 0xdbff) end -= 1;
  return `${text.slice(0, end).trimEnd()}…`;
}

/**
 * The length to cut each text to so that all fit: short ones stay whole, long ones share the rest.
 */
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
