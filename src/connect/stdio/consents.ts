import { createHmac, randomBytes } from "node:crypto";
import { delimiter, resolve } from "node:path";

import { LRUCache } from "lru-cache";
import pLimit, { type LimitFunction } from "p-limit";
import stringify from "safe-stable-stringify";
import which from "which";

import type { ConsentRequest, ConsentSettings } from "../../config/securityOptions.js";
import { isRecord } from "../../text/isRecord.js";
import type { KeptStore } from "../../config/store.js";
import { maskSecrets } from "../../config/variables.js";
import { McpPolicyError, messageOf } from "../../errors.js";
import { rejectOnAbort } from "../../text/abort.js";
import { storeOf } from "../fileStore.js";
import { isSecretName, withSpellings } from "../secrets.js";
import { rejectAfter } from "../../text/abort.js";
import type { StdioParameters } from "./stdioTransport.js";

/** An approval, as it is kept. JSON. */
export interface ConsentRecord {
  readonly serverName: string;
  /** What was approved. */
  readonly digest: string;
  /** The program, without its arguments; empty when it was approved by its digest alone. */
  readonly command: string;
  /** ISO date. */
  readonly approvedAt: string;
  readonly approvedBy?: string;
}

/** What {@link McpConsents} tells its hub. */
export interface ConsentEvents {
  /** The store failed; approvals then last as long as this process. */
  readonly onStoreFailed: (error: unknown) => void;
  /** A server may be started now. */
  readonly onApproved: (serverName: string) => void;
  /** A server may not run, or not any more. */
  readonly onForbidden: (serverName: string, error: McpPolicyError) => void;
}

/** A program with its variables filled in. */
export interface Program {
  readonly serverName: string;
  readonly parameters: StdioParameters;
  /** Values that were filled in. */
  readonly secrets: readonly string[];
}

const KEY = "mcp-consent-key";
const STORE_WAIT_MS = 2_000;
const NOBODY = "a person has to approve it before it is started";
/* What would change the line a person reads, or could hide in it. */
const UNREADABLE = /\p{C}|\p{Default_Ignorable_Code_Point}|[\u2028\u2029]/gu;

/**
 * Which programs a person has approved to be started in a workspace folder.
 *
 * An approval is for a digest of the program that is found, its arguments, its folder, names and values of the environment
 * that the configuration gives it: what changes any of these is asked again. Values go into the digest with a secret key of
 * the store, so that they cannot be guessed from it. The store is read at each start: what another process approved or took
 * back counts.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices#local-mcp-server-compromise
 */
export class McpConsents {
  readonly #settings: ConsentSettings;
  readonly #store: KeptStore;
  readonly #events: ConsentEvents;
  /** What waits for a person, by server. */
  readonly #pending = new Map<string, ConsentRequest>();
  /** What was looked at last, by server: it waits again when its approval is taken back. */
  readonly #last = new Map<string, ConsentRequest>();
  /** Digests that a person refused, by server, with their words: for as long as this process runs. */
  readonly #refused = new Map<string, { readonly digest: string; readonly reason: string }>();
  /** Approvals that could not be kept: for as long as this process runs. */
  readonly #unkept = new Map<string, ConsentRecord>();
  /** Where the store has none that can be read. */
  readonly #ownKey = randomBytes(32).toString("hex");

  /** @internal Made by the hub. */
  constructor(settings: ConsentSettings, events: ConsentEvents) {
    this.#settings = settings;
    this.#events = events;
    this.#store = storeOf(settings.store);
  }

  /** @internal Whether the hub asks; otherwise an agent does. */
  get asksItself(): boolean {
    return this.#settings.onConsent !== undefined;
  }

  /** The programs that wait for a person. */
  pending(): ConsentRequest[] {
    return [...this.#pending.values()];
  }

  /** The approvals of this workspace folder, those of servers that are not configured any more included. */
  async list(): Promise<ConsentRecord[]> {
    const kept = await Promise.all((await this.#names()).map((serverName) => this.#recordOf(serverName)));
    return [...kept.flatMap((record) => record ?? []), ...this.#unkept.values()];
  }

  /**
   * Approves what waits, and starts it.
   *
   * @param options - `digest`: approves only this; without it, what waits now. `by`: who approves, for the record.
   */
  async approve(serverName: string, options: { readonly digest?: string; readonly by?: string | undefined } = {}): Promise<void> {
    const waiting = this.#pending.get(serverName);
    const digest = options.digest ?? waiting?.digest;
    if (digest === undefined) return;
    const isWaiting = waiting?.digest === digest;
    const record = await this.#recordOf(serverName);
    // An answer to an old question replaces nothing that was approved since.
    if (!isWaiting && record !== undefined && record.digest !== digest) return;
    if (isWaiting) this.#pending.delete(serverName);
    this.#refused.delete(serverName);
    if (record?.digest !== digest) {
      const by = options.by === undefined ? {} : { approvedBy: options.by };
      const command = isWaiting ? waiting.command : "";
      await this.#keep({ serverName, digest, command, approvedAt: new Date().toISOString(), ...by });
    }
    this.#events.onApproved(serverName);
  }

  /**
   * Refuses what waits, until this process ends, `hub.reconnect(serverName)` is called, or the program changes. What was
   * approved before is taken back.
   */
  async refuse(
    serverName: string,
    options: { readonly digest?: string; readonly reason?: string | undefined } = {},
  ): Promise<void> {
    const digest = options.digest ?? this.#pending.get(serverName)?.digest;
    if (digest === undefined) return;
    const record = await this.#recordOf(serverName);
    // An answer to an old question says nothing about the program of today.
    const current = [this.#pending.get(serverName)?.digest, this.#last.get(serverName)?.digest, record?.digest];
    if (!current.includes(digest)) return;
    const words = options.reason === undefined || options.reason === "" ? "" : `: ${options.reason}`;
    const reason = `a person refused to have it started${words}`;
    this.#refused.set(serverName, { digest, reason });
    if (this.#pending.get(serverName)?.digest === digest) this.#pending.delete(serverName);
    if (record?.digest === digest) await this.#forget(serverName);
    this.#events.onForbidden(serverName, refusal("CONSENT_REFUSED", serverName, reason));
  }

  /** Takes an approval back. A server that runs is stopped. */
  async revoke(serverName: string): Promise<void> {
    await this.#forget(serverName);
    const reason = "its approval was taken back";
    const last = this.#last.get(serverName);
    if (last !== undefined) this.#pending.set(serverName, { ...last, reason });
    this.#events.onForbidden(serverName, refusal("CONSENT_REQUIRED", serverName, reason));
  }

  /** Takes all approvals of this workspace folder back. */
  async reset(): Promise<void> {
    for (const { serverName } of await this.list()) await this.revoke(serverName);
    this.#refused.clear();
  }

  /** @internal A person wants the server opened: a refusal is asked about again. */
  forgetRefusal(serverName: string): void {
    this.#refused.delete(serverName);
  }

  /**
   * @internal Passes when the program was approved; asks `onConsent` when it was not and there is one.
   *
   * @throws {McpPolicyError} `CONSENT_REQUIRED` when nobody has been asked yet, `CONSENT_REFUSED` when a person refused.
   */
  async ask(program: Program, signal: AbortSignal): Promise<void> {
    const request = await this.#check(program);
    const { onConsent } = this.#settings;
    if (request === undefined) return;
    const { serverName, digest } = request;
    if (onConsent === undefined) throw refusal("CONSENT_REQUIRED", serverName, NOBODY);
    let answer: unknown;
    try {
      answer = await rejectOnAbort(
        Promise.resolve().then(() => onConsent(request)),
        signal,
      );
    } catch (error) {
      if (signal.aborted) throw error;
      throw refusal("CONSENT_REQUIRED", serverName, `asking for consent failed: ${messageOf(error)}`);
    }
    if (answer !== true) {
      await this.refuse(serverName, { digest });
      throw refusal("CONSENT_REFUSED", serverName, this.#refused.get(serverName)!.reason);
    }
    await this.approve(serverName, { digest });
  }

  /** @internal Passes when just this program was approved. @throws {McpPolicyError} as {@link ask}. */
  async verify(program: Program): Promise<void> {
    if ((await this.#check(program)) !== undefined) throw refusal("CONSENT_REQUIRED", program.serverName, NOBODY);
  }

  /** What a person has to be asked about a program; `undefined` when it was approved. */
  async #check(program: Program): Promise<ConsentRequest | undefined> {
    const { serverName } = program;
    const request = await this.#requestOf(program);
    this.#last.set(serverName, request);
    const record = await this.#recordOf(serverName);
    if (record?.digest === request.digest) {
      this.#pending.delete(serverName);
      return undefined;
    }
    const refused = this.#refused.get(serverName);
    if (refused?.digest === request.digest) throw refusal("CONSENT_REFUSED", serverName, refused.reason);
    const reason = record === undefined ? "it was never approved here" : "it is not what was approved here";
    const waiting = { ...request, reason };
    this.#pending.set(serverName, waiting);
    return waiting;
  }

  async #requestOf({ serverName, parameters, secrets }: Program): Promise<ConsentRequest> {
    const { command, args, env, inheritEnv, cwd } = parameters;
    const { workspace } = this.#settings;
    const folder = resolve(cwd ?? ".");
    // Loaded when a program is looked at: it brings a part of the SDK.
    const { childEnvironment, inheritedEnvironment } = await import("./environment.js");
    const program = await programOf(command, folder, childEnvironment(parameters));
    const whole = [workspace, serverName, command, program, args, folder, env, inheritEnv, inheritedEnvironment(parameters)];
    const digest = createHmac("sha256", (await this.#keyOf()).key)
      .update(stringify(whole))
      .digest("hex");
    const hidden = withSpellings(secrets);
    const shown = (text: string): string => readable(maskSecrets(text, hidden));
    return {
      serverName,
      command: shown(command),
      program: shown(program),
      args: args.map((arg) => shown(withoutValue(arg))),
      cwd: shown(folder),
      env: [...Object.keys(env), ...inheritEnv].map(readable),
      workspace,
      reason: "",
      digest,
    };
  }

  /** The key of the store; `isKept`: whether it could be read. What is made with another key is not for the store. */
  async #keyOf(): Promise<{ readonly key: string; readonly isKept: boolean }> {
    const read = async (): Promise<string | undefined> => {
      const [known] = await this.#store.mget([KEY]);
      return typeof known === "string" && known.length >= 32 ? known : undefined;
    };
    const readOrMake = async (): Promise<{ readonly key: string; readonly isKept: boolean }> => {
      const known = await read();
      if (known !== undefined) return { key: known, isKept: true };
      await this.#store.mset([[KEY, this.#ownKey]]);
      // Another process may have made one at the same time.
      const made = await read();
      return made === undefined ? { key: this.#ownKey, isKept: false } : { key: made, isKept: true };
    };
    // The wait ends inside of the lock: a store that hangs holds nobody else for longer.
    return lockOf(this.#settings.store)(() => this.#guarded(readOrMake, { key: this.#ownKey, isKept: false }));
  }

  async #recordOf(serverName: string): Promise<ConsentRecord | undefined> {
    const kept = await this.#guarded(async () => (await this.#store.mget([this.#storeKey(serverName)]))[0], undefined);
    return readRecord(kept) ?? this.#unkept.get(serverName);
  }

  async #names(): Promise<string[]> {
    const kept = await this.#guarded(async () => (await this.#store.mget([this.#storeKey()]))[0], undefined);
    const names: unknown = isRecord(kept) ? kept["names"] : undefined;
    return Array.isArray(names) ? (names as unknown[]).filter((name) => typeof name === "string") : [];
  }

  async #keep(record: ConsentRecord): Promise<void> {
    const { serverName } = record;
    const keep = async (): Promise<boolean> => {
      // What is in a store that cannot be read is not written over.
      if (!(await this.#keyOf()).isKept) return false;
      const names = [...new Set([...(await this.#names()), serverName])];
      await this.#store.mset([
        [this.#storeKey(), { v: 1, names }],
        [this.#storeKey(serverName), record],
      ]);
      return true;
    };
    const isKept = await this.#guarded(keep, false, 3 * STORE_WAIT_MS);
    if (isKept) this.#unkept.delete(serverName);
    else this.#unkept.set(serverName, record);
  }

  async #forget(serverName: string): Promise<void> {
    this.#unkept.delete(serverName);
    await this.#guarded(() => this.#store.mset([[this.#storeKey(serverName), null]]), undefined);
  }

  #storeKey(serverName?: string): string {
    const { workspace } = this.#settings;
    return serverName === undefined ? `mcp-consents:${workspace}` : `mcp-consent:${workspace}\n${serverName}`;
  }

  /** A store that fails, or does not answer, approves nothing. */
  async #guarded<Value>(use: () => Promise<Value>, otherwise: Value, waitMs = STORE_WAIT_MS): Promise<Value> {
    try {
      return await rejectAfter(use(), waitMs, "consent.store");
    } catch (error) {
      this.#events.onStoreFailed(error);
      return otherwise;
    }
  }
}

/** Hubs of one process that make the key of a new store do so one after the other. */
const locks = new LRUCache<KeptStore | string, LimitFunction>({ max: 100 });

function lockOf(store: KeptStore | string): LimitFunction {
  const lock = locks.get(store) ?? pLimit(1);
  locks.set(store, lock);
  return lock;
}

/** The file that a command starts, as far as it is found. */
async function programOf(command: string, folder: string, { PATH, Path }: Readonly<Record<string, string>>): Promise<string> {
  if (/[\\/]/.test(command)) return resolve(folder, command);
  // As the child finds it: from its folder.
  const path = (PATH ?? Path ?? "").split(delimiter).map((entry) => resolve(folder, entry));
  return (await which(command, { nothrow: true, path: path.join(delimiter) })) ?? command;
}

/**
 * An argument without a value that is joined to a flag which says that it is secret, where it is one plain word. All else is
 * shown: whoever wrote the configuration must not choose what a person does not see.
 */
function withoutValue(arg: string): string {
  const [, flag, value] = /^(-{0,2}([\w.-]+)=)([\w.+=-]{8,200})$/.exec(arg) ?? [];
  return flag !== undefined && value !== undefined && isSecretName(value) && /\d/.test(arg.slice(flag.length))
    ? `${flag}***`
    : arg;
}

/** A text in which nothing hides, and that changes nothing around it. */
function readable(text: string): string {
  return text.replace(UNREADABLE, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`);
}

/** Reads what was stored, which may be of another version or by another hand. */
function readRecord(stored: unknown): ConsentRecord | undefined {
  if (!isRecord(stored) || typeof stored["serverName"] !== "string" || typeof stored["digest"] !== "string") return undefined;
  return stored as unknown as ConsentRecord;
}

function refusal(code: "CONSENT_REQUIRED" | "CONSENT_REFUSED", serverName: string, reason: string): McpPolicyError {
  const fix =
    code === "CONSENT_REQUIRED"
      ? ` See hub.consents.pending(); hub.consents.approve("${serverName}") starts it.`
      : ` hub.reconnect("${serverName}") asks again.`;
  return new McpPolicyError(code, `Server "${serverName}" was not started: ${reason}.${fix}`, { serverName, reason });
}
