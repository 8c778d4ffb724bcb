/**
 * JSON values of one message: reading more would take memory and time out of all proportion to its
 * bytes.
 */
const MAX_JSON_VALUES = 1_000_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/* Each begins a value or an element. */
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

const TOO_LARGE = "it sent a message larger than";

/** Says that a message has more bytes than `limits.maxMessageBytes`. */
export function tooManyBytes(maxBytes: number): string {
  return `${TOO_LARGE} ${Number((maxBytes / 2 ** 20).toPrecision(3))} MB (limits.maxMessageBytes)`;
}

/** The part of a text of an error that says that a message was too large. */
export function tooLargeIn(text: string): string | undefined {
  const at = text.indexOf(TOO_LARGE);
  return at < 0 ? undefined : text.slice(at);
}

/**
 * True for the reason of an end, or the text of an error of a transport, that says that a message
 * was too large.
 */
export function saysTooLarge(text: string): boolean {
  return text.startsWith(TOO_LARGE);
}

/**
 * Counts bytes and JSON values of one message while it arrives, before anything is parsed. Linear.
 */
export class MessageBudget {
  readonly #maxBytes: number;
  #bytes = 0;
  #values = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts a part of the message. @throws when it is too large. */
  take(part: Uint8Array): void {
    this.#bytes += part.byteLength;
    if (this.#bytes > this.#maxBytes) {
      throw new Error(tooManyBytes(this.#maxBytes));
    }
    // Locals and an index, three times as fast: this runs for every byte that a server sends.
    let [values, isInString, isEscaped] = [this.#values, this.#isInString, this.#isEscaped];
    for (let at = 0; at < part.length; at += 1) {
      const byte = part[at]!;
      if (isEscaped) isEscaped = false;
      else if (isInString) {
        if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) isInString = false;
      } else if (byte === QUOTE) isInString = true;
      else if (byte === COMMA || byte === BRACKET || byte === BRACE) values += 1;
    }
    [this.#values, this.#isInString, this.#isEscaped] = [values, isInString, isEscaped];
    if (this.#values > MAX_JSON_VALUES)
      throw new Error(`${TOO_LARGE} ${MAX_JSON_VALUES} JSON values`);
  }

  /** Begins the next message. */
  reset(): void {
    this.#bytes = 0;
    this.#values = 0;
    this.#isInString = false;
    this.#isEscaped = false;
  }
}
