import { LangChainError, ns } from "@langchain/core/errors";

/** Every error code of this package; each has a section in `docs/reference/errors.md`. */
export type McpErrorCode =
  | "INVALID_CONFIG"
  | "CONNECT_FAILED"
  | "CONNECT_TIMEOUT"
  | "REQUEST_TIMEOUT"
  | "SESSION_LOST"
  | "UNANSWERED"
  | "SERVER_BUSY"
  | "MESSAGE_TOO_LARGE"
  | "BREAKER_OPEN"
  | "CLOSED"
  | "AUTH_REQUIRED"
  | "POLICY_DENIED"
  | "APPROVAL_REQUIRED"
  | "APPROVAL_REFUSED"
  | "URL_REFUSED"
  | "CONSENT_REQUIRED"
  | "CONSENT_REFUSED"
  | "NOT_FOUND"
  | "INVALID_ARGUMENTS"
  | "SERVER_ERROR"
  | "STEP_LIMIT";

/** Details of an error besides its message. */
export interface McpErrorDetails {
  /** Configured name of the server. */
  readonly serverName?: string | undefined;
  /** Raw name of the tool. */
  readonly toolName?: string | undefined;
  readonly cause?: unknown;
}

const mcpErrors = ns.sub("mcp-middleware");

/**
 * Base of all errors of this package. `isInstance(error)` compares a brand, so it works across two
 * copies of the package.
 */
export abstract class McpMiddlewareError extends mcpErrors.brand(LangChainError, "base") {
  override readonly name: string = "McpMiddlewareError";
  /** Error code, to switch on. */
  readonly code: McpErrorCode;
  readonly serverName: string | undefined;
  readonly toolName: string | undefined;
  override readonly cause: unknown;

  constructor(code: McpErrorCode, message: string, details: McpErrorDetails = {}) {
    super(message);
    this.code = code;
    this.serverName = details.serverName;
    this.toolName = details.toolName;
    this.cause = details.cause;
  }
}

/**
 * A wrong option, configuration file or `${VAR}`: fix the code or the file. Code `INVALID_CONFIG`.
 */
export class McpConfigError extends mcpErrors.brand(McpMiddlewareError, "config") {
  override readonly name = "McpConfigError";

  constructor(message: string, details?: McpErrorDetails) {
    super("INVALID_CONFIG", message, details);
  }
}

/** Codes of {@link McpConnectionError}. */
export type McpConnectionErrorCode = Extract<
  McpErrorCode,
  | "CONNECT_FAILED"
  | "CONNECT_TIMEOUT"
  | "REQUEST_TIMEOUT"
  | "SESSION_LOST"
  | "UNANSWERED"
  | "SERVER_BUSY"
  | "MESSAGE_TOO_LARGE"
  | "BREAKER_OPEN"
  | "CLOSED"
>;

const MAY_HAVE_RUN: ReadonlySet<McpConnectionErrorCode> = new Set([
  "UNANSWERED",
  "REQUEST_TIMEOUT",
  "MESSAGE_TOO_LARGE",
]);

/**
 * A server cannot be reached or did not answer in time: wait, call `hub.reconnect(name)`, or go on
 * without it.
 */
export class McpConnectionError extends mcpErrors.brand(McpMiddlewareError, "connection") {
  override readonly name = "McpConnectionError";
  declare readonly code: McpConnectionErrorCode;
  /**
   * For `BREAKER_OPEN`, and `SERVER_BUSY` where the server said so: when it may be tried again, in
   * milliseconds since 1970.
   */
  readonly untilMs: number | undefined;
  /** HTTP status that the server answered with. */
  readonly httpStatus: number | undefined;
  /** True when the request was sent and may have run; false when it surely did not. */
  readonly mayHaveRun: boolean;

  constructor(
    code: McpConnectionErrorCode,
    message: string,
    details?: McpErrorDetails & { readonly untilMs?: number; readonly httpStatus?: number },
  ) {
    super(code, message, details);
    this.untilMs = details?.untilMs;
    this.httpStatus = details?.httpStatus;
    this.mayHaveRun = MAY_HAVE_RUN.has(code);
  }
}

/** A server refused missing or invalid credentials. Code `AUTH_REQUIRED`. */
export class McpAuthRequiredError extends mcpErrors.brand(McpMiddlewareError, "auth-required") {
  override readonly name = "McpAuthRequiredError";

  constructor(message: string, details?: McpErrorDetails) {
    super("AUTH_REQUIRED", message, details);
  }
}

/** Codes of {@link McpPolicyError}. */
export type McpPolicyErrorCode = Extract<
  McpErrorCode,
  | "POLICY_DENIED"
  | "APPROVAL_REQUIRED"
  | "APPROVAL_REFUSED"
  | "URL_REFUSED"
  | "CONSENT_REQUIRED"
  | "CONSENT_REFUSED"
>;

/** The policy denied an operation, or a person did not approve it. Nothing was sent. */
export class McpPolicyError extends mcpErrors.brand(McpMiddlewareError, "policy") {
  override readonly name = "McpPolicyError";
  declare readonly code: McpPolicyErrorCode;
  /** The rule, tier, override or function that decided, in words. */
  readonly reason: string;
  /**
   * True when the operation is denied whatever its arguments; a model is told that it does not
   * exist.
   */
  readonly isHidden: boolean;

  constructor(
    code: McpPolicyErrorCode,
    message: string,
    details: McpErrorDetails & { readonly reason: string; readonly isHidden?: boolean },
  ) {
    super(code, message, details);
    this.reason = details.reason;
    this.isHidden = details.isHidden ?? false;
  }
}

/** An unknown server or tool; the message names the known ones. Code `NOT_FOUND`. */
export class McpNotFoundError extends mcpErrors.brand(McpMiddlewareError, "not-found") {
  override readonly name = "McpNotFoundError";

  constructor(message: string, details?: McpErrorDetails) {
    super("NOT_FOUND", message, details);
  }
}

/** Codes of {@link McpProtocolError}. */
export type McpProtocolErrorCode = Extract<McpErrorCode, "INVALID_ARGUMENTS" | "SERVER_ERROR">;

/** A request was refused, by the server (JSON-RPC code in `rpcCode`) or before it was sent. */
export class McpProtocolError extends mcpErrors.brand(McpMiddlewareError, "protocol") {
  override readonly name = "McpProtocolError";
  declare readonly code: McpProtocolErrorCode;
  /** The server's JSON-RPC error code, if it sent one. */
  readonly rpcCode: number | undefined;
  /** The server's message, with secrets masked. Untrusted. */
  readonly serverText: string | undefined;
  /** `data` of the server's JSON-RPC error, with secrets masked. Untrusted. */
  readonly data: unknown;

  constructor(
    code: McpProtocolErrorCode,
    message: string,
    details?: McpErrorDetails & {
      readonly rpcCode?: number;
      readonly serverText?: string;
      readonly data?: unknown;
    },
  ) {
    super(code, message, details);
    this.rpcCode = details?.rpcCode;
    this.serverText = details?.serverText;
    this.data = details?.data;
  }
}

/**
 * A tool-calling loop reached its limit of model calls, and the last one still called tools. Code
 * `STEP_LIMIT`.
 */
export class McpStepLimitError extends mcpErrors.brand(McpMiddlewareError, "step-limit") {
  override readonly name = "McpStepLimitError";
  /** The messages so far, with the results of the last calls; continue with them. */
  readonly messages: readonly unknown[];

  constructor(message: string, messages: readonly unknown[]) {
    super("STEP_LIMIT", message);
    this.messages = messages;
  }
}

/** The text of any thrown value. */
export function messageOf(error: unknown): string {
  try {
    // Not `instanceof`: errors of `fetch` may come from another realm.
    const message =
      typeof error === "object" && error !== null && "message" in error ? error.message : undefined;
    return typeof message === "string" ? message : String(error);
  } catch {
    return "something was thrown that cannot be read";
  }
}
