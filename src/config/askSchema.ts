import * as z from "zod";

import type { McpRunContext, ToolClass } from "./policyOptions.js";

/** One call that waits for a person: LangChain's human-in-the-loop request with MCP's additions. */
export interface ActionRequest {
  /** The bound name of the tool; for other operations the permission. */
  readonly name: string;
  /** Exactly what would be sent. */
  readonly args: Readonly<Record<string, unknown>>;
  /** Text for a person; it contains no text of the server. */
  readonly description: string;
  /** Id of the tool call; a decision may name it. */
  readonly callId: string;
  /**
   * `"start"`: a stdio server's program would start for the first time; see the option `consent`.
   */
  readonly operation: "call" | "invoke" | "read" | "list" | "start";
  readonly serverName: string;
  /** The raw tool name; calls only. */
  readonly toolName?: string;
  /** Tool, prompt, URI or command, as policy functions get it. */
  readonly target: string;
  /** Effect of the tool, by the configuration or by trusted hints. */
  readonly class: ToolClass;
  readonly reason: string;
}

/** Value of the interrupt and argument of `onAsk`: all calls of one step that wait for a person. */
export interface AskRequest {
  readonly actionRequests: readonly ActionRequest[];
  readonly reviewConfigs: readonly {
    readonly actionName: string;
    readonly allowedDecisions: readonly ("approve" | "edit" | "reject")[];
  }[];
}

interface AnswerBase {
  /**
   * The tool call this answers; given in all decisions or in none, which are then in the order of
   * the requests.
   */
  readonly callId?: string;
  /** Who answered, for `policy` events. */
  readonly answeredBy?: string;
}

/** A person's decision about one request. */
export type AskDecision =
  | (AnswerBase & { readonly type: "approve" })
  | (AnswerBase & {
      readonly type: "edit";
      /** The arguments to run with; the name cannot change. */
      readonly editedAction: {
        readonly name?: string;
        readonly args: Readonly<Record<string, unknown>>;
      };
    })
  | (AnswerBase & {
      readonly type: "reject";
      /** Shown to the model. */
      readonly message?: string;
    });

/** A person's answer: `new Command({ resume: { decisions } })`, or the result of `onAsk`. */
export interface AskResponse {
  readonly decisions: readonly AskDecision[];
}

/**
 * Asks a person where the run cannot be interrupted. It may take its time; a throw or no answer
 * refuses the calls.
 */
export type OnAsk = (
  request: AskRequest,
  info: { readonly context: McpRunContext; readonly signal: AbortSignal | undefined },
) => AskResponse | Promise<AskResponse>;

/** Checks the option `onAsk`. */
export const onAskSchema = z.custom<OnAsk>((value) => typeof value === "function", "a function");
