import { createHash } from "node:crypto";

/** The first `length` lower-case hex characters of a text's SHA-256. */
export function digest(text: string, length = 16): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}
