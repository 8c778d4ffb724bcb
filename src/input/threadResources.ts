import { fairShare } from "../text/clean.js";
import type { View } from "../disclose/view.js";
import type { CachedMcpResource, ThreadResource } from "../state.js";
import type { ResourceRef } from "../call/serverReads.js";
import type { Reading } from "./readMentions.js";
import { excerptChars, renderFailure, renderResource } from "./resourceContents.js";

export interface ResourceLimits {
  readonly maxResourceChars: number;
  readonly maxTurnResourceChars: number;
  readonly maxCachedResources: number;
}

export interface ResourceTurn {
  /** The message of this turn; `undefined` when nothing was typed. */
  readonly messageId: string | undefined;
  /** Each once, in order. */
  readonly mentioned: readonly ResourceRef[];
  readonly readings: readonly Reading[];
  /** Ids of all messages of the thread. */
  readonly messageIds: ReadonlySet<string>;
}

const IS_DISABLED = "Its server is disabled in this conversation.";
const IS_DENIED = "The policy does not allow this resource.";

/** Characters of all images of a thread together: about 15 MB. */
const MAX_IMAGE_CHARS_OF_ALL = 20_000_000;
const LEFT_OUT =
  "It is not shown any more: other resources need the room. Mention it again if it is needed.";

/**
 * The resources of a thread after a turn: known ones keep their place, new ones follow. Pure. Drops
 * resources that no message mentions. Over the limits, those mentioned first go first, but none of
 * this turn's.
 */
export function afterTurn(
  before: readonly ThreadResource[],
  turn: ResourceTurn,
  limits: ResourceLimits,
): ThreadResource[] {
  const { messageId, mentioned, messageIds } = turn;
  const isMentioned = new Set(mentioned.map(keyOf));
  const readings = new Map(turn.readings.map((reading) => [keyOf(reading), reading]));
  const share = readingShare(turn.readings, limits);
  const kept = new Map<string, ThreadResource>();
  const take = (key: string, old: ThreadResource | undefined): void => {
    const reading = readings.get(key);
    const resource = reading === undefined ? old : readAs(reading, old, share);
    if (resource === undefined) return;
    // An edited message may mention other resources than before.
    const ids = new Set(resource.messageIds.filter((id) => messageIds.has(id) && id !== messageId));
    if (messageId !== undefined && isMentioned.has(key)) ids.add(messageId);
    if (ids.size > 0) kept.set(key, { ...resource, messageIds: [...ids] });
  };
  for (const resource of before) take(keyOf(resource), resource);
  for (const key of isMentioned) if (!kept.has(key)) take(key, undefined);
  return withinLimits([...kept.values()], isMentioned, (key) => readings.has(key), limits);
}

/** The public summary of the resources in the state. */
export function cachedView(resources: readonly ThreadResource[]): CachedMcpResource[] {
  return resources.map((resource) => {
    const { serverName, uri, mimeType, images, isError } = resource;
    const type = mimeType === undefined ? {} : { mimeType };
    return { serverName, uri, ...type, chars: charsOf(resource), images: images.length, isError };
  });
}

/** The resource with a reason in place of its contents. */
function withoutContents(
  { serverName, uri, messageIds }: ThreadResource,
  why: string,
): ThreadResource {
  return {
    serverName,
    uri,
    messageIds,
    block: renderFailure(serverName, uri, why),
    images: [],
    isError: true,
    mark: "",
  };
}

/** Key of a resource. Equal URIs of two servers have two keys. */
export function keyOf({ serverName, uri }: ResourceRef): string {
  return JSON.stringify([serverName, uri]);
}

/** Characters for each resource read in one turn. */
function readingShare(
  readings: readonly Reading[],
  { maxResourceChars, maxTurnResourceChars }: ResourceLimits,
): number {
  const lengths = readings.map((reading) =>
    reading.kind === "read" ? Math.min(excerptChars(reading.excerpt), maxResourceChars) : 0,
  );
  const total = lengths.reduce((sum, length) => sum + length, 0);
  return total > maxTurnResourceChars ? fairShare(lengths, maxTurnResourceChars) : maxResourceChars;
}

function readAs(
  reading: Reading,
  old: ThreadResource | undefined,
  maxChars: number,
): ThreadResource {
  const { serverName, uri, mark } = reading;
  const base = { serverName, uri, messageIds: old?.messageIds ?? [], mark };
  if (reading.kind === "read") {
    const { excerpt } = reading;
    const mimeType = excerpt.parts[0]?.mimeType;
    return {
      ...base,
      block: renderResource(serverName, uri, excerpt, maxChars),
      images: [...excerpt.images],
      ...(mimeType === undefined ? {} : { mimeType }),
      isError: false,
    };
  }
  if (old === undefined || old.isError)
    return {
      ...base,
      block: renderFailure(serverName, uri, reading.why),
      images: [],
      isError: true,
    };
  // Keeps the earlier contents. They are read again after the next change or mention.
  const why = `It may have changed, and could not be read again. ${reading.why} What follows was read before.`;
  return { ...old, failure: renderFailure(serverName, uri, why), mark };
}

/** Keeps the number and size of resources within the limits. Those read in this turn go last. */
function withinLimits(
  resources: readonly ThreadResource[],
  isMentioned: ReadonlySet<string>,
  isRead: (key: string) => boolean,
  { maxCachedResources, maxTurnResourceChars }: ResourceLimits,
): ThreadResource[] {
  let over = resources.length - maxCachedResources;
  const kept = resources.filter(
    (resource) => over <= 0 || isMentioned.has(keyOf(resource)) || (over -= 1) < 0,
  );
  const byAge = [
    ...kept.filter((resource) => !isMentioned.has(keyOf(resource))),
    ...kept.filter((resource) => isMentioned.has(keyOf(resource)) && !isRead(keyOf(resource))),
  ];
  let chars = kept.reduce((sum, resource) => sum + charsOf(resource), 0);
  const leaving = new Set<ThreadResource>();
  for (const resource of byAge) {
    if (chars <= maxTurnResourceChars) break;
    if (resource.isError) continue;
    leaving.add(resource);
    chars -= charsOf(resource);
  }
  return withinImages(
    kept.map((resource) =>
      leaving.has(resource) ? withoutContents(resource, LEFT_OUT) : resource,
    ),
  );
}

/** Keeps the size of all images within the limit, newest first. */
function withinImages(resources: readonly ThreadResource[]): ThreadResource[] {
  let left = MAX_IMAGE_CHARS_OF_ALL;
  return resources
    .toReversed()
    .map((resource) => {
      left -= resource.images.reduce((sum, image) => sum + image.length, 0);
      if (left >= 0 || resource.images.length === 0) return resource;
      const failure = renderFailure(
        resource.serverName,
        resource.uri,
        "Its images are not shown: there are too many.",
      );
      return { ...resource, images: [], failure };
    })
    .reverse();
}

function charsOf({ block, failure = "" }: ThreadResource): number {
  return block.length + failure.length;
}

/**
 * Resources as this run may see them: a denied one, or one of a disabled server, shows only the
 * reason.
 */
export function shownResources(
  resources: readonly ThreadResource[],
  { serverNames, disabledNames }: Pick<View, "serverNames" | "disabledNames">,
  isDenied: (resource: ThreadResource) => boolean,
): ThreadResource[] {
  return resources.flatMap((resource) => {
    const { serverName } = resource;
    if (disabledNames.includes(serverName)) return [withoutContents(resource, IS_DISABLED)];
    if (!serverNames.includes(serverName)) return [];
    return [
      isDenied(resource) && !resource.isError ? withoutContents(resource, IS_DENIED) : resource,
    ];
  });
}
