import { fairShare } from "../text/clean.js";
import type { View } from "../disclose/view.js";
import type { CachedMcpResource, ThreadResource } from "../state.js";
import type { ResourceRef } from "../call/serverReads.js";
import type { Reading } from "./readMentions.js";
import { excerptChars, renderFailure, renderResource } from "./resourceContents.js";

/** How much a thread keeps. */
export interface ResourceLimits {
  readonly maxResourceChars: number;
  readonly maxTurnResourceChars: number;
  readonly maxCachedResources: number;
}

/** What happened in a turn. */
export interface ResourceTurn {
  /** The message of this turn; `undefined` when nothing was typed. */
  readonly messageId: string | undefined;
  /** The resources it names, each once, in order. */
  readonly mentioned: readonly ResourceRef[];
  readonly readings: readonly Reading[];
  /** Ids of the messages of the thread. */
  readonly messageIds: ReadonlySet<string>;
}

/** Why a resource is not shown whose server the thread has disabled. */
const IS_DISABLED = "Its server is disabled in this conversation.";
/** Why a resource is not shown that was read before. */
const IS_DENIED = "The policy does not allow this resource.";

/** Characters of all images of a thread together, about 15 MB. */
const MAX_IMAGE_CHARS_OF_ALL = 20_000_000;
/** Why a resource is shown no more. */
const LEFT_OUT = "It is not shown any more: other resources need the room. Mention it again if it is needed.";

/**
 * The resources of a thread after a turn: what is new behind what was there, what was read again in its old place. Pure.
 *
 * What no message of the thread names is dropped. Over the limits, those go first that were mentioned first and not in
 * this turn.
 */
export function afterTurn(before: readonly ThreadResource[], turn: ResourceTurn, limits: ResourceLimits): ThreadResource[] {
  const { messageId, mentioned, messageIds } = turn;
  const isMentioned = new Set(mentioned.map(keyOf));
  const readings = new Map(turn.readings.map((reading) => [keyOf(reading), reading]));
  const share = readingShare(turn.readings, limits);
  const kept = new Map<string, ThreadResource>();
  const take = (key: string, old: ThreadResource | undefined): void => {
    const reading = readings.get(key);
    const resource = reading === undefined ? old : readAs(reading, old, share);
    if (resource === undefined) return;
    // An edited message names what it names now.
    const ids = new Set(resource.messageIds.filter((id) => messageIds.has(id) && id !== messageId));
    if (messageId !== undefined && isMentioned.has(key)) ids.add(messageId);
    if (ids.size > 0) kept.set(key, { ...resource, messageIds: [...ids] });
  };
  for (const resource of before) take(keyOf(resource), resource);
  for (const key of isMentioned) if (!kept.has(key)) take(key, undefined);
  return withinLimits([...kept.values()], isMentioned, (key) => readings.has(key), limits);
}

/** What readers of the state are told. */
export function cachedView(resources: readonly ThreadResource[]): CachedMcpResource[] {
  return resources.map((resource) => {
    const { serverName, uri, mimeType, images, isError } = resource;
    const type = mimeType === undefined ? {} : { mimeType };
    return { serverName, uri, ...type, chars: charsOf(resource), images: images.length, isError };
  });
}

/** A resource as it is shown while what was read of it may not be. */
function withoutContents({ serverName, uri, messageIds }: ThreadResource, why: string): ThreadResource {
  return { serverName, uri, messageIds, block: renderFailure(serverName, uri, why), images: [], isError: true, mark: "" };
}

/** Identifies a resource: equal URIs of two servers are two resources. */
export function keyOf({ serverName, uri }: ResourceRef): string {
  return JSON.stringify([serverName, uri]);
}

/** Characters of each of the resources that are read in one turn. */
function readingShare(readings: readonly Reading[], { maxResourceChars, maxTurnResourceChars }: ResourceLimits): number {
  const lengths = readings.map((reading) =>
    reading.kind === "read" ? Math.min(excerptChars(reading.excerpt), maxResourceChars) : 0,
  );
  const total = lengths.reduce((sum, length) => sum + length, 0);
  return total > maxTurnResourceChars ? fairShare(lengths, maxTurnResourceChars) : maxResourceChars;
}

function readAs(reading: Reading, old: ThreadResource | undefined, maxChars: number): ThreadResource {
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
    return { ...base, block: renderFailure(serverName, uri, reading.why), images: [], isError: true };
  // What was read before is better than nothing. It is tried again when it changes again or is mentioned.
  const why = `It may have changed, and could not be read again. ${reading.why} What follows was read before.`;
  return { ...old, failure: renderFailure(serverName, uri, why), mark };
}

/** Keeps number and size of all within the limits. What was read in this turn goes last. */
function withinLimits(
  resources: readonly ThreadResource[],
  isMentioned: ReadonlySet<string>,
  isRead: (key: string) => boolean,
  { maxCachedResources, maxTurnResourceChars }: ResourceLimits,
): ThreadResource[] {
  let over = resources.length - maxCachedResources;
  const kept = resources.filter((resource) => over <= 0 || isMentioned.has(keyOf(resource)) || (over -= 1) < 0);
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
  return withinImages(kept.map((resource) => (leaving.has(resource) ? withoutContents(resource, LEFT_OUT) : resource)));
}

/** Keeps the images of all within what a request can hold: the newest stay. */
function withinImages(resources: readonly ThreadResource[]): ThreadResource[] {
  let left = MAX_IMAGE_CHARS_OF_ALL;
  return resources
    .toReversed()
    .map((resource) => {
      left -= resource.images.reduce((sum, image) => sum + image.length, 0);
      if (left >= 0 || resource.images.length === 0) return resource;
      const failure = renderFailure(resource.serverName, resource.uri, "Its images are not shown: there are too many.");
      return { ...resource, images: [], failure };
    })
    .reverse();
}

function charsOf({ block, failure = "" }: ThreadResource): number {
  return block.length + failure.length;
}

/** The resources of a thread as this run may see them: those of disabled servers, and those that are denied, say so. */
export function shownResources(
  resources: readonly ThreadResource[],
  { serverNames, disabledNames }: Pick<View, "serverNames" | "disabledNames">,
  isDenied: (resource: ThreadResource) => boolean,
): ThreadResource[] {
  return resources.flatMap((resource) => {
    const { serverName } = resource;
    if (disabledNames.includes(serverName)) return [withoutContents(resource, IS_DISABLED)];
    if (!serverNames.includes(serverName)) return [];
    return [isDenied(resource) && !resource.isError ? withoutContents(resource, IS_DENIED) : resource];
  });
}
