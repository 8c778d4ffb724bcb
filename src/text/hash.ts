import { createHash } from "node:crypto";

/** A short, stable digest of a text: `length` lower-case hex characters of its SHA-256. */
export function digest(text: string, length = 16): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}
