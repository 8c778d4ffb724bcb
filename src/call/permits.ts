import type { McpRunContext } from "../config/policyOptions.js";
import { McpPolicyError } from "../errors.js";
import type { HubEvents } from "../events.js";
import { argumentsDigest, permissionOf, targetOf, type Operation } from "../policy/operation.js";
import type { ToolFingerprints } from "../catalog/toolFingerprints.js";
import { moreRestrictive, type Decision, type Policy } from "../policy/policy.js";
import type { McpAsked, McpDecisions } from "../state.js";
import type { Approval, Caller } from "./caller.js";

/** An operation with the decision about it and what a person would be told. */
export interface Wanted {
  readonly operation: Operation;
  readonly decision: Decision;
  /** The bound name of a tool; the permission of anything else. */
  readonly name: string;
  /** Content hash of a tool. */
  readonly toolHash?: string | undefined;
  /** The arguments as they were given, before they were repaired and changed by hooks. */
  readonly given?: unknown;
}

type Answer = Pick<McpDecisions[string], "type" | "answeredBy">;

/** Where nothing is decided and nobody reads the audit. */
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

/** Decides about operations, asks people, and writes the audit. The one place that lets an operation through. */
export class Permits {
  readonly #policyOf: () => Policy;
  readonly #events: HubEvents;
  readonly #fingerprints: ToolFingerprints;

  constructor(policyOf: () => Policy, events: HubEvents, fingerprints: ToolFingerprints) {
    this.#policyOf = policyOf;
    this.#events = events;
    this.#fingerprints = fingerprints;
  }

  /** Decides by the policy in force; a changed tool that nobody has accepted is asked about at least. */
  decide(operation: Operation, { context }: Caller): Decision {
    const isChanged = this.#isChanged(operation);
    if (this.#policyOf().isOpen && !this.#events.has("policy") && !isChanged) return OPEN;
    const decision = this.#policyOf().decide(operation, context ?? NOBODY);
    return isChanged ? moreRestrictive(decision, { ...decision, ...CHANGED }) : decision;
  }

  /** Changes with anything that may change a decision. */
  get version(): string {
    return `${this.#policyOf().version}/${this.#fingerprints.version}`;
  }

  /** True for a tool that is another one than when it was seen first, and that nobody has accepted. */
  isWithheld(serverName: string, toolName: string): boolean {
    return this.#fingerprints.isChanged(serverName, toolName);
  }

  /** True for an operation that is allowed whatever its arguments are. */
  isFree(operation: Operation, { context }: Caller): boolean {
    return !this.#isChanged(operation) && this.#policyOf().allowsAlways(operation, context ?? NOBODY);
  }

  /** True for an operation that is allowed, where nobody reads the audit: there is nothing more to do. */
  passesFreely({ decision }: Wanted): boolean {
    return decision.kind === "allow" && !this.#events.has("policy");
  }

  /**
   * Lets an operation through, or throws.
   *
   * @returns What a person who was asked here and now said: the operation is to be looked at again with that, for
   * everything may have changed meanwhile. `undefined` when it may run.
   * @throws {McpPolicyError} when it is denied, when a person has to be asked and was not, or said no.
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
          // Who approves a call takes the tool as it is.
          if (isSame && operation.kind === "call") this.#fingerprints.accept(operation.serverName, [operation.toolName]);
          if (isSame) return undefined;
          throw askError("APPROVAL_REQUIRED", operation, decision, "what would be sent is not what was approved");
        }
        if (ask !== undefined) return this.#ask(wanted, ask, caller);
        this.audit(operation, decision, caller, { type: "refuse" });
        throw askError("APPROVAL_REQUIRED", operation, decision, "a person has to approve it, and was not asked");
      }
    }
  }

  #isChanged(operation: Operation): boolean {
    return operation.kind === "call" && this.#fingerprints.isChanged(operation.serverName, operation.toolName);
  }

  /** Writes a `policy` event. */
  audit(operation: Operation, decision: Decision, { context, toolCallId, origin }: Caller, answer?: Answer): void {
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

  /** Asks a person here and now. */
  async #ask(wanted: Wanted, ask: NonNullable<Caller["ask"]>, caller: Caller): Promise<AskedNow> {
    const { operation, decision, toolHash = "" } = wanted;
    const callId = caller.toolCallId ?? "";
    const asked = { [callId]: askedCall(wanted, 0) };
    const answer = (await ask(structuredClone(asked)))[callId]!;
    const { type, answeredBy, digest } = answer;
    if (type === "approve") return { approval: { type, digest: asked[callId]!.digest, toolHash, answeredBy } };
    if (type === "edit" && operation.kind === "call") {
      return { approval: { type, digest, toolHash, answeredBy }, edited: answer.editedArguments ?? {} };
    }
    this.audit(operation, decision, caller, answer);
    const why = type === "edit" ? "only the arguments of tools can be edited" : (answer.message ?? "a person rejected it");
    throw askError("APPROVAL_REFUSED", operation, decision, why);
  }
}

/** What a person said who was asked at the gate. */
export interface AskedNow {
  readonly approval: Approval;
  /** Arguments in place of those that were wanted. */
  readonly edited?: Readonly<Record<string, unknown>>;
}

/** True when a person approved just this. */
function isApproved({ operation, toolHash = "", given }: Wanted, { type, digest, toolHash: approved }: Approval): boolean {
  return toolHash === approved && digest === argumentsDigest(type === "edit" ? given : argumentsOf(operation));
}

/** The record of an operation that waits for a person. */
export function askedCall({ operation, decision, name, toolHash = "" }: Wanted, order: number): McpAsked[string] {
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

/** The arguments that would be sent. */
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
  return new McpPolicyError(code, `${permissionOf(operation)} was not run: ${why} (${decision.reason}).`, {
    ...namesOf(operation),
    reason: why,
  });
}

function namesOf(operation: Operation): { serverName: string; toolName?: string } {
  const { serverName } = operation;
  return operation.kind === "call" ? { serverName, toolName: operation.toolName } : { serverName };
}
