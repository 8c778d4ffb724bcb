import { InMemoryStore } from "@langchain/core/stores";

import { Approvals } from "../../../src/call/approvals.js";
import { storeOf } from "../../../src/connect/stores.js";

const NAMES = { serverName: "s", toolName: "t" };
const caller = (digest = "d", threadId: string | undefined = "1") =>
  ({
    approval: { type: "approve", boundName: "t", toolHash: "h", digest },
    origin: { threadId, runId: "r" },
    toolCallId: "c",
  }) as never;

describe("approvals", () => {
  it("are used once, where a store remembers", async () => {
    const store = storeOf(new InMemoryStore());
    await new Approvals(store).use(caller(), NAMES);
    await expect(new Approvals(store).use(caller(), NAMES)).rejects.toMatchObject({
      code: "APPROVAL_REQUIRED",
      reason: "its approval was used before",
    });
    await new Approvals(store).use(caller("of other arguments"), NAMES);
  });

  it("given at the same time are used once", async () => {
    const approvals = new Approvals(storeOf(new InMemoryStore()));
    const uses = await Promise.allSettled([1, 2, 3].map(() => approvals.use(caller(), NAMES)));
    expect(uses.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("are not used while the store fails", async () => {
    const store = {
      mget: () => Promise.reject(new Error("down")),
      mset: () => Promise.reject(new Error("down")),
    };
    await expect(new Approvals(storeOf(store)).use(caller(), NAMES)).rejects.toMatchObject({
      code: "APPROVAL_REQUIRED",
      reason: "the store of approvals does not answer",
    });
  });

  it("without a store or a thread are not counted", async () => {
    const none = new Approvals(undefined);
    await none.use(caller(), NAMES);
    await none.use(caller(), NAMES);
    const kept = new Approvals(storeOf(new InMemoryStore()));
    const outside = { ...(caller() as object), origin: undefined } as never;
    await kept.use(outside, NAMES);
    await kept.use(outside, NAMES);
  });
});
