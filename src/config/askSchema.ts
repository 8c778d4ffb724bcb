import * as z from "zod";

import type { McpRunContext, ToolClass } from "./policyOptions.js";

/** One call that waits for a person, in the shape of LangChain's human-in-the-loop requests with what MCP adds. */
export interface ActionRequest {
  /** The bound name of the tool; the permission for anything else than a call. */
  readonly name: string;
  /** Exactly what would be sent. */
  readonly args: Readonly<Record<string, unknown>>;
  /** For a person to read. The server's words do not appear in it. */
  readonly description: string;
  /** Id of the tool call; an answer may name it. */
  readonly callId: string;
  /** `"start"`: the program of a stdio server would be started for the first time; see the option `consent`. */
  readonly operation: "call" | "invoke" | "read" | "list" | "start";
  readonly serverName: string;
  /** The server's own name of the tool; of a call only. */
  readonly toolName?: string;
  /** Tool, prompt, URI or command, as the policy function gets it. */
  readonly target: string;
  /** What the tool does, by the configuration or by hints that are trusted. */
  readonly class: ToolClass;
  /** Why a person is asked. */
  readonly reason: string;
}

/** What a person is asked: the value of the interrupt, and what `onAsk` gets. All calls of one step together. */
export interface AskRequest {
  readonly actionRequests: readonly ActionRequest[];
  readonly reviewConfigs: readonly {
    readonly actionName: string;
    readonly allowedDecisions: readonly ("approve" | "edit" | "reject")[];
  }[];
}

interface AnswerBase {
  /** The tool call this answers. Given in all answers or in none; then they are in the order of the requests. */
  readonly callId?: string;
  /** Who answered, for `policy` events. */
  readonly answeredBy?: string;
}

/** A person's answer to one request. */
export type AskDecision =
  | (AnswerBase & { readonly type: "approve" })
  | (AnswerBase & {
      readonly type: "edit";
      /** The arguments to run with. The name cannot be changed. */
      readonly editedAction: { readonly name?: string; readonly args: Readonly<Record<string, unknown>> };
    })
  | (AnswerBase & {
      readonly type: "reject";
      /** For the model. */
      readonly message?: string;
    });

/** What a person answers: `new Command({ resume: { decisions } })`, or what `onAsk` returns. */
export interface AskResponse {
  readonly decisions: readonly AskDecision[];
}

/** Asks a person where the run cannot be interrupted. May take its time; a throw or no answer refuses the calls. */
export type OnAsk = (
  request: AskRequest,
  info: { readonly context: McpRunContext; readonly signal: AbortSignal | undefined },
) => AskResponse | Promise<AskResponse>;

/** Option `onAsk`. */
export const onAskSchema = z.custom<OnAsk>((value) => typeof value === "function", "a function");
