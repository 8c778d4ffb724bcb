import { createHmac, randomBytes } from "node:crypto";
import { resolve } from "node:path";

import stringify from "safe-stable-stringify";

import type { ConsentRequest, ConsentSettings, ConsentStore } from "../config/guardSettings.js";
import { isRecord } from "../config/isRecord.js";
import { maskSecrets } from "../config/variables.js";
import { McpPolicyError, messageOf } from "../errors.js";
import { rejectOnAbort } from "./abort.js";
import { fileStore } from "./fileStore.js";
import type { StdioParameters } from "./stdioTransport.js";

/** An approval, as it is kept. JSON. */
export interface ConsentRecord {
  readonly serverName: string;
  /** What was approved. */
  readonly digest: string;
  /** The command line, secrets masked. */
  readonly program: string;
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
  /** Values that nobody is to see. */
  readonly secrets: readonly string[];
}

const KEY = "mcp-consent-key";
const NOBODY = "a person has to approve it before it is started";

/**
 * Which programs a person has approved to be started in a workspace folder.
 *
 * An approval is for a digest of command, arguments, folder, names and values of the environment: what changes any of
 * these is asked again. Values go into the digest with a secret key of the store, so that they cannot be guessed from it.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices#local-mcp-server-compromise
 */
export class McpConsents {
  readonly #settings: ConsentSettings;
  readonly #store: ConsentStore;
  readonly #events: ConsentEvents;
  /** What waits for a person, by server. */
  readonly #pending = new Map<string, ConsentRequest>();
  /** Digests that a person refused, by server, with their words: for as long as this process runs. */
  readonly #refused = new Map<string, { readonly digest: string; readonly reason: string }>();
  #records: Promise<Map<string, ConsentRecord>> | undefined;
  #key: Promise<string> | undefined;

  /** @internal Made by the hub. */
  constructor(settings: ConsentSettings, events: ConsentEvents) {
    this.#settings = settings;
    this.#events = events;
    this.#store = typeof settings.store === "string" ? fileStore(settings.store) : settings.store;
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
    return [...(await this.#known()).values()];
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
    const known = await this.#known();
    const isNew = known.get(serverName)?.digest !== digest;
    if (waiting?.digest === digest) this.#pending.delete(serverName);
    this.#refused.delete(serverName);
    if (!isNew) return;
    const program = waiting === undefined ? "" : [waiting.command, ...waiting.args].join(" ");
    const approvedAt = new Date().toISOString();
    const by = options.by === undefined ? {} : { approvedBy: options.by };
    known.set(serverName, { serverName, digest, program, approvedAt, ...by });
    await this.#save(known);
    this.#events.onApproved(serverName);
  }

  /** Refuses what waits, until this process ends, `hub.reconnect(serverName)` is called, or the program changes. */
  refuse(serverName: string, options: { readonly digest?: string; readonly reason?: string | undefined } = {}): void {
    const digest = options.digest ?? this.#pending.get(serverName)?.digest;
    if (digest === undefined) return;
    const words = options.reason === undefined || options.reason === "" ? "" : `: ${options.reason}`;
    const reason = `a person refused to have it started${words}`;
    this.#refused.set(serverName, { digest, reason });
    if (this.#pending.get(serverName)?.digest === digest) this.#pending.delete(serverName);
    this.#events.onForbidden(serverName, refusal("CONSENT_REFUSED", serverName, reason));
  }

  /** Takes an approval back. A server that runs is stopped. */
  async revoke(serverName: string): Promise<void> {
    const known = await this.#known();
    if (!known.delete(serverName)) return;
    await this.#save(known);
    this.#events.onForbidden(serverName, refusal("CONSENT_REQUIRED", serverName, "its approval was taken back"));
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
      this.refuse(serverName, { digest });
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
    const record = (await this.#known()).get(serverName);
    if (record?.digest === request.digest) {
      this.#pending.delete(serverName);
      return undefined;
    }
    const refused = this.#refused.get(serverName);
    if (refused?.digest === request.digest) throw refusal("CONSENT_REFUSED", serverName, refused.reason);
    const reason = record === undefined ? "it was never approved here" : "it is not what was approved here";
    this.#pending.set(serverName, { ...request, reason });
    return this.#pending.get(serverName);
  }

  async #requestOf({ serverName, parameters, secrets }: Program): Promise<ConsentRequest> {
    const { command, args, env, inheritEnv, cwd } = parameters;
    const { workspace } = this.#settings;
    const folder = resolve(cwd ?? ".");
    const whole = [workspace, serverName, command, args, folder, inheritEnv, env];
    const digest = createHmac("sha256", await this.#keyOf())
      .update(stringify(whole))
      .digest("hex");
    const mask = (text: string): string => maskSecrets(text, secrets);
    return {
      serverName,
      command: mask(command),
      args: args.map(mask),
      cwd: mask(folder),
      env: [...Object.keys(env), ...inheritEnv],
      workspace,
      reason: "",
      digest,
    };
  }

  #keyOf(): Promise<string> {
    this.#key ??= this.#guarded(async () => {
      const [known] = await this.#store.mget([KEY]);
      if (typeof known === "string" && known.length >= 32) return known;
      const made = randomBytes(32).toString("hex");
      await this.#store.mset([[KEY, made]]);
      return made;
    }, randomBytes(32).toString("hex"));
    return this.#key;
  }

  #known(): Promise<Map<string, ConsentRecord>> {
    this.#records ??= this.#guarded(async () => {
      const [stored] = await this.#store.mget([this.#storeKey()]);
      return readRecords(stored);
    }, new Map<string, ConsentRecord>());
    return this.#records;
  }

  async #save(records: ReadonlyMap<string, ConsentRecord>): Promise<void> {
    await this.#guarded(() => this.#store.mset([[this.#storeKey(), { v: 1, records: [...records.values()] }]]), undefined);
  }

  #storeKey(): string {
    return `mcp-consent:${this.#settings.workspace}`;
  }

  /** A store that fails approves nothing. */
  async #guarded<Value>(use: () => Promise<Value>, otherwise: Value): Promise<Value> {
    try {
      return await use();
    } catch (error) {
      this.#events.onStoreFailed(error);
      return otherwise;
    }
  }
}

/** Reads what was stored, which may be of another version or by another hand. */
function readRecords(stored: unknown): Map<string, ConsentRecord> {
  const records: unknown = isRecord(stored) && stored["v"] === 1 ? stored["records"] : undefined;
  const known = (Array.isArray(records) ? (records as unknown[]) : []).filter(
    (record): record is ConsentRecord & Record<string, unknown> =>
      isRecord(record) && typeof record["serverName"] === "string" && typeof record["digest"] === "string",
  );
  return new Map(known.map((record) => [record.serverName, record]));
}

function refusal(code: "CONSENT_REQUIRED" | "CONSENT_REFUSED", serverName: string, reason: string): McpPolicyError {
  const fix =
    code === "CONSENT_REQUIRED"
      ? ` See hub.consents.pending(); hub.consents.approve("${serverName}") starts it.`
      : ` hub.reconnect("${serverName}") asks again.`;
  return new McpPolicyError(code, `Server "${serverName}" was not started: ${reason}.${fix}`, { serverName, reason });
}
