import stringify from "safe-stable-stringify";

import type { ToolAnnotations } from "../catalog/toolEntry.js";
import { digest } from "../text/hash.js";

/** Something an agent or a program wants of a server. Names are raw names. */
export type Operation =
  | {
      /** Calls a tool. */
      readonly kind: "call";
      readonly serverName: string;
      readonly toolName: string;
      /** Exactly what would be sent. */
      readonly arguments: unknown;
      /** The server's hints about the tool, where they are known. */
      readonly annotations?: ToolAnnotations | undefined;
    }
  | {
      /** Gets a prompt. */
      readonly kind: "invoke";
      readonly serverName: string;
      readonly promptName: string;
      readonly arguments: unknown;
    }
  /** Reads a resource. */
  | { readonly kind: "read"; readonly serverName: string; readonly uri: string }
  /** Lists prompts, resources or resource templates. */
  | { readonly kind: "list"; readonly serverName: string };

/** The kinds of operations, as the second part of a permission names them. */
export const OPERATION_KINDS = ["call", "invoke", "read", "list"] as const satisfies Operation["kind"][];

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

/**
 * The permission an operation needs, as rules name it.
 *
 * @example
 * permissionOf({ kind: "call", serverName: "docs", toolName: "read", arguments: {} });
 * // → "mcp:call:docs:read"
 */
export function permissionOf(operation: Operation): string {
  const target = targetOf(operation);
  return `mcp:${operation.kind}:${operation.serverName}${operation.kind === "list" ? "" : `:${target}`}`;
}

/** Digest of arguments: equal for equal values, in whatever order their keys are. */
export function argumentsDigest(value: unknown): string {
  return digest(stringify(value) ?? "undefined", 32);
}
