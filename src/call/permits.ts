import type { McpRunContext } from "../config/policyOptions.js";
import { McpPolicyError } from "../errors.js";
import type { HubEvents } from "../events.js";
import { argumentsDigest, permissionOf, targetOf, type Operation } from "../policy/operation.js";
import type { ToolFingerprints } from "../catalog/toolFingerprints.js";
import { moreRestrictive, type Decision, type Policy } from "../policy/policy.js";
import type { McpAsked, McpDecisions } from "../state.js";
import type { Approval, Caller } from "./caller.js";

/** An operation, the decision about it, and the facts that a person is shown. */
export interface Wanted {
  readonly operation: Operation;
  readonly decision: Decision;
  /** Bound name of a tool; for any other operation its permission. */
  readonly name: string;
  readonly toolHash?: string | undefined;
  /** The arguments before repairs and hooks. */
  readonly given?: unknown;
}

type Answer = Pick<McpDecisions[string], "type" | "answeredBy">;

/** The decision when there is no policy and nobody listens to `policy` events. */
const OPEN: Decision = Object.freeze({
  kind: "allow",
  reason: "there is no policy",
  decidedBy: "default",
  class: "destructive",
  isHidden: false,
});
const CHANGED: Pick<Decision, "kind" | "reason" | "decidedBy" | "isHidden"> = Object.freeze({
  kind: "ask",
  reason:
    "its text or arguments are not what they were when it was seen first (hub.toolChanges() shows the difference, hub.acceptTools() accepts it)",
  decidedBy: "toolFingerprints",
  isHidden: false,
});
const NOBODY: McpRunContext = Object.freeze({});

/**
 * Decides about operations, asks people and emits `policy` events. Every operation passes here
 * before it is sent.
 */
export class Permits {
  readonly #policyOf: () => Policy;
  readonly #events: HubEvents;
  readonly #fingerprints: ToolFingerprints;

  constructor(policyOf: () => Policy, events: HubEvents, fingerprints: ToolFingerprints) {
    this.#policyOf = policyOf;
    this.#events = events;
    this.#fingerprints = fingerprints;
  }

  /** Decides by the current policy. A changed tool that nobody accepted is at least asked about. */
  decide(operation: Operation, { context }: Caller): Decision {
    const isChanged = this.#isChanged(operation);
    if (this.#policyOf().isOpen && !this.#events.has("policy") && !isChanged) return OPEN;
    const decision = this.#policyOf().decide(operation, context ?? NOBODY);
    return isChanged ? moreRestrictive(decision, { ...decision, ...CHANGED }) : decision;
  }

  /** A new value means that decisions may differ. */
  get version(): string {
    return `${this.#policyOf().version}/${this.#fingerprints.version}`;
  }

  /** True for a tool that changed since it was first seen and that nobody accepted. */
  isWithheld(serverName: string, toolName: string): boolean {
    return this.#fingerprints.isChanged(serverName, toolName);
  }

  /** True when the operation is allowed with any arguments. */
  isFree(operation: Operation, { context }: Caller): boolean {
    return (
      !this.#isChanged(operation) && this.#policyOf().allowsAlways(operation, context ?? NOBODY)
    );
  }

  /** True when the operation is allowed and nobody listens to `policy` events. */
  passesFreely({ decision }: Wanted): boolean {
    return decision.kind === "allow" && !this.#events.has("policy");
  }

  /**
   * Lets an operation run, or throws.
   * @returns `undefined` when it may run. When a person was asked here, their answer: decide again
   * with it.
   * @throws {McpPolicyError} when it is denied or rejected, or has no valid approval.
   */
  async pass(wanted: Wanted, caller: Caller): Promise<AskedNow | undefined> {
    const { operation, decision } = wanted;
    const { approval, ask } = caller;
    switch (decision.kind) {
      case "deny":
        this.audit(operation, decision, caller);
        throw deniedError(operation, decision);
      case "allow":
        this.audit(operation, decision, caller, approval);
        return undefined;
      case "ask": {
        if (approval !== undefined) {
          const isSame = isApproved(wanted, approval);
          this.audit(operation, decision, caller, isSame ? approval : { type: "refuse" });
          if (isSame) return undefined;
          throw askError(
            "APPROVAL_REQUIRED",
            operation,
            decision,
            "what would be sent is not what was approved",
          );
        }
        if (ask !== undefined) return this.#ask(wanted, ask, caller);
        this.audit(operation, decision, caller, { type: "refuse" });
        throw askError(
          "APPROVAL_REQUIRED",
          operation,
          decision,
          "a person has to approve it, and was not asked",
        );
      }
    }
  }

  /** An approved call is about to be sent: its changed tool is accepted as it is now. */
  accept({
    serverName,
    toolName,
  }: {
    readonly serverName: string;
    readonly toolName: string;
  }): void {
    this.#fingerprints.accept(serverName, [toolName]);
  }

  #isChanged(operation: Operation): boolean {
    return (
      operation.kind === "call" &&
      this.#fingerprints.isChanged(operation.serverName, operation.toolName)
    );
  }

  audit(
    operation: Operation,
    decision: Decision,
    { context, toolCallId, origin }: Caller,
    answer?: Answer,
  ): void {
    if (!this.#events.has("policy")) return;
    const args = argumentsOf(operation);
    this.#events.emit("policy", {
      ...origin,
      permission: permissionOf(operation),
      operation: operation.kind,
      serverName: operation.serverName,
      target: targetOf(operation),
      class: decision.class,
      decision: decision.kind,
      reason: decision.reason,
      decidedBy: decision.decidedBy,
      toolCallId,
      ...(answer === undefined ? {} : { answer: answer.type }),
      ...(answer?.answeredBy === undefined ? {} : { answeredBy: answer.answeredBy }),
      ...(context?.user === undefined ? {} : { user: context.user }),
      argumentsDigest: argumentsDigest(args),
      ...(this.#policyOf().audit === "arguments" ? { arguments: args } : {}),
    });
  }

  async #ask(wanted: Wanted, ask: NonNullable<Caller["ask"]>, caller: Caller): Promise<AskedNow> {
    const { operation, decision, toolHash = "" } = wanted;
    const callId = caller.toolCallId ?? "";
    const asked = { [callId]: askedCall(wanted, 0) };
    const answer = (await ask(structuredClone(asked)))[callId]!;
    const { type, answeredBy, digest } = answer;
    if (type === "approve")
      return { approval: { type, digest: asked[callId]!.digest, toolHash, answeredBy } };
    if (type === "edit" && operation.kind === "call") {
      return {
        approval: { type, digest, toolHash, answeredBy },
        edited: answer.editedArguments ?? {},
      };
    }
    this.audit(operation, decision, caller, answer);
    const why =
      type === "edit"
        ? "only the arguments of tools can be edited"
        : (answer.message ?? "a person rejected it");
    throw askError("APPROVAL_REFUSED", operation, decision, why);
  }
}

/** The answer of a person who was asked during a call. */
export interface AskedNow {
  readonly approval: Approval;
  readonly edited?: Readonly<Record<string, unknown>>;
}

/** True when the approval covers exactly this tool and these arguments. */
function isApproved(
  { operation, toolHash = "", given }: Wanted,
  { type, digest, toolHash: approved }: Approval,
): boolean {
  return (
    toolHash === approved &&
    digest === argumentsDigest(type === "edit" ? given : argumentsOf(operation))
  );
}

/** Makes the record of an operation that waits for a person. */
export function askedCall(
  { operation, decision, name, toolHash = "" }: Wanted,
  order: number,
): McpAsked[string] {
  const args = argumentsOf(operation);
  return {
    boundName: name,
    toolHash,
    digest: argumentsDigest(args),
    order,
    request: {
      operation: operation.kind,
      serverName: operation.serverName,
      target: targetOf(operation),
      class: decision.class,
      arguments: args,
      reason: decision.reason,
    },
  };
}

function argumentsOf(operation: Operation): unknown {
  if (operation.kind === "read") return { uri: operation.uri };
  return "arguments" in operation ? (operation.arguments ?? {}) : {};
}

function deniedError(operation: Operation, { reason, isHidden }: Decision): McpPolicyError {
  return new McpPolicyError("POLICY_DENIED", `${permissionOf(operation)} is denied: ${reason}.`, {
    ...namesOf(operation),
    reason,
    isHidden,
  });
}

function askError(
  code: "APPROVAL_REQUIRED" | "APPROVAL_REFUSED",
  operation: Operation,
  decision: Decision,
  why: string,
): McpPolicyError {
  return new McpPolicyError(
    code,
    `${permissionOf(operation)} was not run: ${why} (${decision.reason}).`,
    {
      ...namesOf(operation),
      reason: why,
    },
  );
}

function namesOf(operation: Operation): { serverName: string; toolName?: string } {
  const { serverName } = operation;
  return operation.kind === "call" ? { serverName, toolName: operation.toolName } : { serverName };
}
