import type { Store } from "../connect/stores.js";
import { McpPolicyError } from "../errors.js";
import { rejectAfter } from "../text/abort.js";
import { digest } from "../text/hash.js";
import type { Caller } from "./caller.js";

const STORE_WAIT_MS = 10_000;

/** Lets each approval of a thread be used once, where a store can say which were. */
export class Approvals {
  readonly #store: Store | undefined;

  constructor(store: Store | undefined) {
    this.#store = store;
  }

  /**
   * Uses an approval up, before its call is sent.
   *
   * @throws {McpPolicyError} `APPROVAL_REQUIRED` when it was used before, or the store does not
   * answer.
   */
  async use(
    { approval, origin, toolCallId }: Caller,
    names: { readonly serverName: string; readonly toolName: string },
  ): Promise<void> {
    // Without a thread and a call it was given here and now, and nothing can replay it.
    if (
      this.#store === undefined ||
      approval === undefined ||
      origin?.threadId === undefined ||
      toolCallId === undefined
    )
      return;
    const key = `mcp-approval:${digest(JSON.stringify([origin.threadId, toolCallId, approval.digest, approval.toolHash]), 32)}`;
    let isFirst = false;
    const update = this.#store.update(key, (used) => {
      isFirst = used === undefined || used === null;
      return isFirst ? { usedAt: new Date().toISOString() } : used;
    });
    const reason = await rejectAfter(update, STORE_WAIT_MS, "approvalStore").then(
      () => (isFirst ? undefined : "its approval was used before"),
      () => "the store of approvals does not answer",
    );
    if (reason === undefined) return;
    throw new McpPolicyError(
      "APPROVAL_REQUIRED",
      `mcp:call:${names.serverName}:${names.toolName} was not run: ${reason}.`,
      {
        ...names,
        reason,
      },
    );
  }
}
