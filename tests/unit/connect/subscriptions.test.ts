import type { Peer, PeerRequest, RawResult } from "../../../src/connect/peer.js";
import { Subscriptions } from "../../../src/connect/lists/subscriptions.js";

const UPDATED = "notifications/resources/updated";
const LIST_CHANGED = "notifications/resources/list_changed";

function watching(
  options: {
    readonly isOffered?: boolean;
    readonly isReliable?: boolean;
    readonly refuse?: boolean;
  } = {},
) {
  const sent: string[] = [];
  const request = async ({
    method,
    params,
  }: Pick<PeerRequest, "method" | "params">): Promise<RawResult> => {
    sent.push(`${method.slice("resources/".length)} ${String(params["uri"])}`);
    if (options.refuse === true) throw new Error("no");
    return {};
  };
  const client = {
    getServerCapabilities: () => ({ resources: { subscribe: options.isOffered ?? true } }),
  };
  const subscriptions = new Subscriptions({
    current: {
      announces: () => options.isReliable ?? true,
      request,
      client: client as unknown as Peer["client"],
    },
    send: request,
  });
  return { subscriptions, sent };
}

describe("Subscriptions", () => {
  it("marks a resource that was updated since it was read, once", async () => {
    const { subscriptions, sent } = watching();
    await Promise.all([subscriptions.watch("a"), subscriptions.watch("a")]);
    await subscriptions.watch("a");
    expect(sent).toEqual(["subscribe a"]);
    const mark = subscriptions.mark("a");
    expect([subscriptions.isMarked("a", mark), subscriptions.isWatched("a")]).toEqual([
      false,
      true,
    ]);
    subscriptions.notified(UPDATED, { uri: "ab" });
    subscriptions.notified(UPDATED, {});
    expect(subscriptions.isMarked("a", mark)).toBe(false);
    subscriptions.notified(UPDATED, { uri: "a" });
    expect(subscriptions.isMarked("a", mark)).toBe(true);
    expect(subscriptions.isMarked("a", subscriptions.mark("a"))).toBe(false);
  });

  it("marks a resource when a part of it was updated", async () => {
    const { subscriptions } = watching();
    await subscriptions.watch("dir://a");
    const mark = subscriptions.mark("dir://a");
    subscriptions.notified(UPDATED, { uri: "dir://ab" });
    expect(subscriptions.isMarked("dir://a", mark)).toBe(false);
    subscriptions.notified(UPDATED, { uri: "dir://a/x" });
    expect(subscriptions.isMarked("dir://a", mark)).toBe(true);
  });

  it("does not treat a resource as unchanged when it was not watched for a while", async () => {
    const { subscriptions } = watching();
    await subscriptions.watch("a");
    const mark = subscriptions.mark("a");
    await subscriptions.unsubscribe("a");
    expect(subscriptions.isMarked("a", mark)).toBe(true);
    await subscriptions.watch("a");
    expect(subscriptions.isMarked("a", mark)).toBe(true);
  });

  it("marks all resources when the list changed, watched or not", async () => {
    const { subscriptions } = watching({ isOffered: false });
    await subscriptions.watch("a");
    const mark = subscriptions.mark("a");
    expect([subscriptions.isMarked("a", mark), subscriptions.isWatched("a")]).toEqual([
      false,
      false,
    ]);
    subscriptions.notified(LIST_CHANGED, {});
    expect(subscriptions.isMarked("a", mark)).toBe(true);
  });

  it("marks resources that were watched on another connection or in another process, and no others", async () => {
    const here = watching();
    const there = watching({ isOffered: false });
    await here.subscriptions.watch("a");
    const mark = here.subscriptions.mark("a");
    expect(there.subscriptions.isMarked("a", mark)).toBe(true);
    here.subscriptions.expire();
    expect([here.subscriptions.isMarked("a", mark), here.subscriptions.isWatched("a")]).toEqual([
      true,
      false,
    ]);
    const unwatched = there.subscriptions.mark("a");
    there.subscriptions.expire();
    expect([
      there.subscriptions.isMarked("a", unwatched),
      here.subscriptions.isMarked("a", unwatched),
    ]).toEqual([false, false]);
  });

  it("treats a server that refuses subscriptions as one that does not offer them", async () => {
    const { subscriptions, sent } = watching({ refuse: true });
    await subscriptions.watch("a");
    await subscriptions.watch("b");
    expect(subscriptions.isWatched("a")).toBe(false);
    expect(sent).toEqual(["subscribe a"]);
    await expect(subscriptions.subscribe("a")).rejects.toThrow("no");
  });

  it("treats nothing as unchanged where notifications may not arrive", async () => {
    const { subscriptions } = watching({ isReliable: false });
    await subscriptions.watch("a");
    expect(subscriptions.isWatched("a")).toBe(false);
    const mark = subscriptions.mark("a");
    subscriptions.notified(UPDATED, { uri: "a" });
    expect(subscriptions.isMarked("a", mark)).toBe(true);
  });

  it("subscribes again for programs after a reconnect, not for threads", async () => {
    const { subscriptions, sent } = watching();
    await subscriptions.subscribe("wanted");
    await subscriptions.watch("read");
    subscriptions.expire();
    await Promise.resolve().then(() => undefined);
    expect(sent).toEqual(["subscribe wanted", "subscribe read", "subscribe wanted"]);
    await subscriptions.unsubscribe("wanted");
    subscriptions.expire();
    await Promise.resolve().then(() => undefined);
    expect(sent.slice(3)).toEqual(["unsubscribe wanted"]);
  });

  it("watches a limited number: the one read longest ago is dropped, unless a program subscribed to it", async () => {
    const { subscriptions, sent } = watching();
    await subscriptions.subscribe("r0");
    for (let index = 0; index < 202; index += 1) await subscriptions.watch(`r${index}`);
    await Promise.resolve().then(() => undefined);
    expect(sent.filter((line) => line.startsWith("unsubscribe"))).toEqual(["unsubscribe r1"]);
    expect([subscriptions.isWatched("r1"), subscriptions.isWatched("r201")]).toEqual([false, true]);
  });
});
