import { isIP } from "node:net";

import type { ResolvedAddress, UrlGuardSettings } from "../../config/securityOptions.js";
import { matchGlobs } from "../../text/globs.js";
import { McpPolicyError } from "../../errors.js";
import { rejectOnAbort } from "../../text/abort.js";
import { addressKind, isInRange } from "./addresses.js";

/* The longest name that there can be has 253. */
const MAX_HOST_CHARS = 260;
const SCHEMES: readonly string[] = ["http:", "https:", "ws:", "wss:"];

/**
 * Decides which URLs one server's connection may follow: the one of its configuration, where it redirects to, its SSE
 * endpoint, the OAuth servers it names.
 *
 * - Only http(s) (ws(s) for WebSocket), no user names and passwords.
 * - Metadata services never.
 * - Local addresses only when the configuration of this server names them itself, or `allowHosts` does. All addresses of
 *   a name are looked at.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices#server-side-request-forgery-ssrf
 */
export class UrlGuard {
  readonly #settings: UrlGuardSettings;
  readonly #serverName: string;
  /** The host of the configuration, when it is a local one: what the operator wrote is meant. */
  readonly #ownHost: string | undefined;
  readonly #isNamed: (host: string) => boolean;
  /** Transports put errors of `fetch` into words of their own; this is what was meant. */
  lastRefusal: McpPolicyError | undefined;

  /** @param configured - URL of the server's configuration. */
  constructor(settings: UrlGuardSettings, serverName: string, configured: URL) {
    this.#settings = settings;
    this.#serverName = serverName;
    const own = hostOf(configured);
    this.#ownHost = settings.literals === "allow" && isWrittenLocal(own) ? own : undefined;
    this.#isNamed = matchGlobs(settings.allowHosts.filter((host) => isIP(host) === 0));
  }

  /**
   * Checks a URL.
   *
   * @returns The addresses that may be connected to.
   * @throws {McpPolicyError} `URL_REFUSED` with the reason and the fix.
   * @throws what the look-up throws.
   */
  async check(url: URL, signal?: AbortSignal | null): Promise<readonly ResolvedAddress[]> {
    if (!SCHEMES.includes(url.protocol)) throw this.refused(url, `"${url.protocol}" is not http or https`);
    if (url.username !== "" || url.password !== "") {
      throw this.refused(url, 'it holds a user name or a password; give credentials by "headers"');
    }
    const host = hostOf(url);
    const version = isIP(host);
    if (version !== 0) {
      const literal: ResolvedAddress = { address: host, family: version as 4 | 6 };
      this.#checkAddress(url, host, literal);
      return [literal];
    }
    if (isLocalName(host) && !this.#mayBeLocal(host, "127.0.0.1")) throw this.#refusedLocal(url, host, "this machine");
    const looking = this.#settings.lookup(host);
    const addresses = await (signal == null ? looking : rejectOnAbort(looking, signal));
    if (addresses.length === 0) throw this.refused(url, "its name has no address");
    for (const address of addresses) this.#checkAddress(url, host, address);
    return addresses;
  }

  /** The error of a URL that is not followed; {@link lastRefusal} from now on. */
  refused({ protocol, host }: URL, reason: string): McpPolicyError {
    const shown = host.length > MAX_HOST_CHARS ? `${host.slice(0, MAX_HOST_CHARS)}…` : host;
    const serverName = this.#serverName;
    const message = `Server "${serverName}": ${protocol}//${shown} is not followed: ${reason}.`;
    this.lastRefusal = new McpPolicyError("URL_REFUSED", message, { serverName, reason });
    return this.lastRefusal;
  }

  #checkAddress(url: URL, host: string, { address }: ResolvedAddress): void {
    const kind = addressKind(address);
    if (kind === "metadata") throw this.refused(url, `${address} is a metadata service, which is never followed`);
    if (kind === "local" && !this.#mayBeLocal(host, address)) throw this.#refusedLocal(url, host, address);
  }

  #mayBeLocal(host: string, address: string): boolean {
    return (
      host === this.#ownHost ||
      (isIP(host) === 0 && this.#isNamed(host)) ||
      this.#settings.allowHosts.some((range) => range === "*" || isInRange(address, range))
    );
  }

  #refusedLocal(url: URL, host: string, where: string): McpPolicyError {
    const what = where === host ? `${host} is` : `"${host}" leads to ${where},`;
    return this.refused(
      url,
      `${what} no public address. If that is meant, write security: { urlGuard: { allowHosts: ["${host}"] } } in the options of the hub`,
    );
  }
}

/** Host of a URL without brackets and trailing dot. */
export function hostOf({ hostname }: URL): string {
  return hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.+$/, "");
}

/** True for a host that says itself that it is local: an address, or a name of this machine. */
export function isWrittenLocal(host: string): boolean {
  return isIP(host) === 0 ? isLocalName(host) : addressKind(host) !== "public";
}

/** @see https://www.rfc-editor.org/rfc/rfc6761#section-6.3 */
function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}
