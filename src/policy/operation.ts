import stringify from "safe-stable-stringify";

import type { ToolAnnotations } from "../catalog/toolEntry.js";
import { digest } from "../text/hash.js";

/** A request of an agent or a program to a server, by raw names. */
export type Operation =
  | {
      readonly kind: "call";
      readonly serverName: string;
      readonly toolName: string;
      readonly arguments: unknown;
      readonly annotations?: ToolAnnotations | undefined;
    }
  | {
      /** Gets a prompt. */
      readonly kind: "invoke";
      readonly serverName: string;
      readonly promptName: string;
      readonly arguments: unknown;
    }
  | { readonly kind: "read"; readonly serverName: string; readonly uri: string }
  /** Lists prompts, resources or resource templates. */
  | { readonly kind: "list"; readonly serverName: string };

/** Kinds of operations, the second part of a permission. */
export const OPERATION_KINDS = [
  "call",
  "invoke",
  "read",
  "list",
] as const satisfies Operation["kind"][];

/** Tool, prompt or URI of an operation; `""` for a list. */
export function targetOf(operation: Operation): string {
  switch (operation.kind) {
    case "call":
      return operation.toolName;
    case "invoke":
      return operation.promptName;
    case "read":
      return operation.uri;
    case "list":
      return "";
  }
}

/** The permission an operation needs, such as `mcp:call:docs:read`. */
export function permissionOf(operation: Operation): string {
  const target = targetOf(operation);
  return `mcp:${operation.kind}:${operation.serverName}${operation.kind === "list" ? "" : `:${target}`}`;
}

/** Digest of arguments; the order of keys does not matter. */
export function argumentsDigest(value: unknown): string {
  return digest(stringify(value) ?? "undefined", 32);
}
