import { MessageBudget } from "../messageBudget.js";

const NEWLINE = 0x0a;
const FIRST_BYTES = 64 * 1024;

/**
 * Splits a stream of bytes into lines, in linear time however small its pieces are, with a limit
 * for each line.
 */
export class LineSplitter {
  readonly #budget: MessageBudget;
  #held = Buffer.alloc(0);
  #length = 0;

  constructor(maxBytes: number) {
    this.#budget = new MessageBudget(maxBytes);
  }

  /** The lines that a piece completes, without their ends. @throws when a line is too large. */
  push(piece: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      this.#hold(piece.subarray(start, end));
      const line = this.#held.toString("utf8", 0, this.#length);
      lines.push(line.endsWith("\r") ? line.slice(0, -1) : line);
      this.#length = 0;
      this.#budget.reset();
      start = end + 1;
    }
    this.#hold(piece.subarray(start));
    return lines;
  }

  #hold(part: Buffer): void {
    this.#budget.take(part);
    const length = this.#length + part.length;
    if (length > this.#held.length) {
      const next = Buffer.allocUnsafe(Math.max(FIRST_BYTES, length, this.#held.length * 2));
      this.#held.copy(next, 0, 0, this.#length);
      this.#held = next;
    }
    part.copy(this.#held, this.#length);
    this.#length = length;
  }
}
