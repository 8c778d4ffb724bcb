import { createHmac, randomBytes } from "node:crypto";
import { delimiter, resolve } from "node:path";

import stringify from "safe-stable-stringify";

import type { ConsentRequest, ConsentSettings } from "../../config/securityOptions.js";
import { maskSecrets } from "../../config/variables.js";
import { McpPolicyError, messageOf } from "../../errors.js";
import { rejectAfter, rejectOnAbort } from "../../text/abort.js";
import { visible } from "../../text/clean.js";
import { isRecord } from "../../text/isRecord.js";
import { isSecretName, withSpellings } from "../secrets.js";
import { storeOf, type Store } from "../stores.js";
import type { StdioParameters } from "./stdioTransport.js";

/** An approval, as it is kept. JSON. */
export interface ConsentRecord {
  readonly serverName: string;
  /** Digest of the approved program. */
  readonly digest: string;
  /** The program, without its arguments; empty when it was approved by its digest alone. */
  readonly command: string;
  /** ISO date. */
  readonly approvedAt: string;
  readonly approvedBy?: string;
}

/** Told of changes by {@link McpConsents}. */
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
const READ_WAIT_MS = 2_000;
const WRITE_WAIT_MS = 10_000;
const NOBODY = "a person has to approve it before it is started";

/**
 * Programs that a person has approved to be started in a workspace folder.
 *
 * An approval is for a digest of the program that is found, its arguments, its folder, and the
 * names and values of its environment; any change is asked again. Values go into the digest with a
 * secret key of the store, so that they cannot be guessed from it. The store is read at each start:
 * an approval by another process counts, and so does its withdrawal.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices#local-mcp-server-compromise
 */
export class McpConsents {
  readonly #settings: ConsentSettings;
  readonly #store: Store;
  readonly #events: ConsentEvents;
  /** Programs that wait for a person, by server. */
  readonly #pending = new Map<string, ConsentRequest>();
  /** The last program of each server: it waits again when its approval is withdrawn. */
  readonly #last = new Map<string, ConsentRequest>();
  /** Digests that a person refused, by server, for as long as this process runs. */
  readonly #refused = new Map<string, { readonly digest: string; readonly reason: string }>();
  /** Approvals that could not be kept. */
  readonly #unkept = new Map<string, ConsentRecord>();
  /** The key while that of the store cannot be read; such approvals are not kept. */
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

  /**
   * The approvals of this workspace folder, those of servers that are not configured any more
   * included.
   */
  async list(): Promise<ConsentRecord[]> {
    const names = namesIn(await this.#guarded(() => this.#get(this.#storeKey()), undefined));
    const kept = await Promise.all(names.map((serverName) => this.#recordOf(serverName)));
    return [...kept.flatMap((record) => record ?? []), ...this.#unkept.values()];
  }

  /**
   * Approves a waiting program, and starts it.
   *
   * @param options - `digest`: approves only this; without it, the program that waits now. `by`:
   * who approves, for the record.
   */
  async approve(
    serverName: string,
    options: { readonly digest?: string; readonly by?: string | undefined } = {},
  ): Promise<void> {
    const waiting = this.#pending.get(serverName);
    const digest = options.digest ?? waiting?.digest;
    if (digest === undefined) return;
    const isWaiting = waiting?.digest === digest;
    const record = await this.#recordOf(serverName);
    // An answer to an old question replaces no later approval.
    if (!isWaiting && record !== undefined && record.digest !== digest) return;
    if (isWaiting) this.#pending.delete(serverName);
    this.#refused.delete(serverName);
    if (record?.digest !== digest) {
      const by = options.by === undefined ? {} : { approvedBy: options.by };
      const command = isWaiting ? waiting.command : "";
      await this.#keep({
        serverName,
        digest,
        command,
        approvedAt: new Date().toISOString(),
        ...by,
      });
    }
    this.#events.onApproved(serverName);
  }

  /**
   * Refuses a waiting program, until this process ends, `hub.reconnect(serverName)` is called, or
   * the program changes. An earlier approval is withdrawn.
   */
  async refuse(
    serverName: string,
    options: { readonly digest?: string; readonly reason?: string | undefined } = {},
  ): Promise<void> {
    const waiting = this.#pending.get(serverName)?.digest;
    const digest = options.digest ?? waiting;
    const record = await this.#recordOf(serverName);
    // An answer to an old question says nothing about the program of today.
    const current = [waiting, this.#last.get(serverName)?.digest, record?.digest];
    if (digest === undefined || !current.includes(digest)) return;
    const words =
      options.reason === undefined || options.reason === "" ? "" : `: ${options.reason}`;
    const reason = `a person refused to have it started${words}`;
    this.#refused.set(serverName, { digest, reason });
    if (waiting === digest) this.#pending.delete(serverName);
    if (record?.digest === digest) await this.#forget(serverName);
    this.#events.onForbidden(serverName, refusal("CONSENT_REFUSED", serverName, reason));
  }

  /** Withdraws an approval. A server that runs is stopped. */
  async revoke(serverName: string): Promise<void> {
    await this.#forget(serverName);
    const reason = "its approval was withdrawn";
    const last = this.#last.get(serverName);
    if (last !== undefined) this.#pending.set(serverName, { ...last, reason });
    this.#events.onForbidden(serverName, refusal("CONSENT_REQUIRED", serverName, reason));
  }

  /** Withdraws all approvals of this workspace folder. */
  async reset(): Promise<void> {
    for (const { serverName } of await this.list()) await this.revoke(serverName);
    this.#refused.clear();
  }

  /** @internal A person wants the server opened: a refusal is asked about again. */
  forgetRefusal(serverName: string): void {
    this.#refused.delete(serverName);
  }

  /**
   * @internal Passes an approved program; asks `onConsent` about another one.
   *
   * @throws {McpPolicyError} `CONSENT_REQUIRED` when nobody has been asked yet, `CONSENT_REFUSED`
   * when a person refused.
   */
  async ask(program: Program, signal: AbortSignal): Promise<void> {
    const request = await this.#check(program);
    const { onConsent } = this.#settings;
    if (request === undefined) return;
    const { serverName, digest } = request;
    if (onConsent === undefined) throw refusal("CONSENT_REQUIRED", serverName, NOBODY);
    const asking = Promise.resolve().then(() => onConsent(request));
    const answer: unknown = await rejectOnAbort(asking, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw refusal(
        "CONSENT_REQUIRED",
        serverName,
        `asking for consent failed: ${messageOf(error)}`,
      );
    });
    if (answer === true) return this.approve(serverName, { digest });
    await this.refuse(serverName, { digest });
    throw refusal("CONSENT_REFUSED", serverName, this.#refused.get(serverName)!.reason);
  }

  /**
   * @internal Passes when just this program was approved.
   * @throws {McpPolicyError} as {@link ask}.
   */
  async verify(program: Program): Promise<void> {
    if ((await this.#check(program)) !== undefined)
      throw refusal("CONSENT_REQUIRED", program.serverName, NOBODY);
  }

  /** The request for a program that was not approved; `undefined` for one that was. */
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
    if (refused?.digest === request.digest)
      throw refusal("CONSENT_REFUSED", serverName, refused.reason);
    const reason =
      record === undefined ? "it was never approved here" : "it is not what was approved here";
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
    const whole = [
      workspace,
      serverName,
      command,
      program,
      args,
      folder,
      env,
      inheritEnv,
      inheritedEnvironment(parameters),
    ];
    const digest = createHmac("sha256", (await this.#keyOf()) ?? this.#ownKey)
      .update(stringify(whole))
      .digest("hex");
    const hidden = withSpellings(secrets);
    const shown = (text: string): string => visible(maskSecrets(text, hidden));
    return {
      serverName,
      command: shown(command),
      program: shown(program),
      args: args.map((arg) => shown(withoutSecret(arg))),
      cwd: shown(folder),
      env: [
        ...Object.entries(env).map(([name, value]) => shown(withoutSecret(`${name}=${value}`))),
        ...inheritEnv.map(shown),
      ],
      workspace,
      reason: "",
      digest,
    };
  }

  /** The key of the store, made with first use; `undefined` while the store cannot be read. */
  #keyOf(): Promise<string | undefined> {
    const isKey = (value: unknown): value is string =>
      typeof value === "string" && value.length >= 32;
    const update = () =>
      this.#store.update(KEY, (present) => (isKey(present) ? present : this.#ownKey));
    return this.#guarded(async () => {
      const present = await this.#get(KEY);
      return isKey(present) ? present : update();
    }, undefined);
  }

  async #recordOf(serverName: string): Promise<ConsentRecord | undefined> {
    const kept = await this.#guarded(() => this.#get(this.#storeKey(serverName)), undefined);
    return readRecord(kept) ?? this.#unkept.get(serverName);
  }

  async #keep(record: ConsentRecord): Promise<void> {
    const { serverName } = record;
    const keep = async (): Promise<boolean> => {
      // Made with another key it would never be found again.
      if ((await this.#keyOf()) === undefined) return false;
      await this.#store.update(this.#storeKey(), (present) => {
        const names = namesIn(present);
        return names.includes(serverName) ? present : { v: 1, names: [...names, serverName] };
      });
      await this.#store.update(this.#storeKey(serverName), () => record);
      return true;
    };
    if (await this.#guarded(keep, false, WRITE_WAIT_MS)) this.#unkept.delete(serverName);
    else this.#unkept.set(serverName, record);
  }

  async #forget(serverName: string): Promise<void> {
    this.#unkept.delete(serverName);
    await this.#guarded(
      () => this.#store.update(this.#storeKey(serverName), () => null),
      undefined,
      WRITE_WAIT_MS,
    );
  }

  async #get(key: string): Promise<unknown> {
    return (await this.#store.get([key]))[0];
  }

  #storeKey(serverName?: string): string {
    const { workspace } = this.#settings;
    return serverName === undefined
      ? `mcp-consents:${workspace}`
      : `mcp-consent:${workspace}\n${serverName}`;
  }

  /** A store that fails, or does not answer, approves nothing. */
  async #guarded<Value>(
    use: () => Promise<Value>,
    otherwise: Value,
    waitMs = READ_WAIT_MS,
  ): Promise<Value> {
    try {
      return await rejectAfter(use(), waitMs, "consent.store");
    } catch (error) {
      this.#events.onStoreFailed(error);
      return otherwise;
    }
  }
}

/**
 * The file that a command starts, as far as it is found: as the child finds it, from its folder.
 */
async function programOf(
  command: string,
  folder: string,
  { PATH, Path }: Readonly<Record<string, string>>,
): Promise<string> {
  if (/[\\/]/.test(command)) return resolve(folder, command);
  const path = (PATH ?? Path ?? "").split(delimiter).map((entry) => resolve(folder, entry));
  // Loaded on use: most hubs ask for no consent.
  const { default: which } = await import("which");
  return (await which(command, { nothrow: true, path: path.join(delimiter) })) ?? command;
}

/**
 * An argument or a variable without a value that its name calls secret, where that is one plain
 * word. Anything else is shown: the writer of a configuration must not choose what a person does
 * not see.
 */
function withoutSecret(text: string): string {
  const [, head, name, value] = /^(-{0,2}([\w.-]+)=)([\w.+=-]{8,200})$/.exec(text) ?? [];
  return name !== undefined && isSecretName(name) && /\d/.test(value!) ? `${head}***` : text;
}

/** Reads a stored record, which may be of another version or by another hand. */
function readRecord(stored: unknown): ConsentRecord | undefined {
  if (
    !isRecord(stored) ||
    typeof stored["serverName"] !== "string" ||
    typeof stored["digest"] !== "string"
  )
    return undefined;
  return stored as unknown as ConsentRecord;
}

function namesIn(stored: unknown): string[] {
  const names: unknown = isRecord(stored) ? stored["names"] : undefined;
  return Array.isArray(names)
    ? (names as unknown[]).filter((name) => typeof name === "string")
    : [];
}

function refusal(
  code: "CONSENT_REQUIRED" | "CONSENT_REFUSED",
  serverName: string,
  reason: string,
): McpPolicyError {
  const fix =
    code === "CONSENT_REQUIRED"
      ? ` See hub.consents.pending(); hub.consents.approve("${serverName}") starts it.`
      : ` hub.reconnect("${serverName}") asks again.`;
  return new McpPolicyError(code, `Server "${serverName}" was not started: ${reason}.${fix}`, {
    serverName,
    reason,
  });
}
