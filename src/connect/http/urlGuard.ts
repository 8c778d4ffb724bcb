import { isIP } from "node:net";

import type { ResolvedAddress, UrlGuardSettings } from "../../config/securityOptions.js";
import { matchGlobs } from "../../text/globs.js";
import { McpPolicyError } from "../../errors.js";
import { rejectOnAbort } from "../../text/abort.js";
import { addressKind, isInRange } from "./addresses.js";

/* Host names have at most 253 characters. */
const MAX_HOST_CHARS = 260;
const SCHEMES: readonly string[] = ["http:", "https:", "ws:", "wss:"];

/**
 * Decides which URLs one server's connection may open: the configured one, redirects, its SSE
 * endpoint, its OAuth servers.
 * - Only http(s) and ws(s), without user name and password.
 * - Never a cloud's metadata service.
 * - Local addresses only when this server's own URL or `allowHosts` names them. Checks every
 *   address of a host name.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices#server-side-request-forgery-ssrf
 */
export class UrlGuard {
  readonly #settings: UrlGuardSettings;
  readonly #serverName: string;
  /** Host of the configured URL, if it is local: then the operator means it. */
  readonly #ownHost: string | undefined;
  readonly #isNamed: (host: string) => boolean;
  /** The last refusal, because transports hide the error that `fetch` threw. */
  lastRefusal: McpPolicyError | undefined;

  constructor(settings: UrlGuardSettings, serverName: string, configured: URL) {
    this.#settings = settings;
    this.#serverName = serverName;
    const own = hostOf(configured);
    this.#ownHost = settings.literals === "allow" && isWrittenLocal(own) ? own : undefined;
    this.#isNamed = matchGlobs(settings.allowHosts.filter((host) => isIP(host) === 0));
  }

  /**
   * Checks a URL.
   * @returns The addresses to connect to.
   * @throws {McpPolicyError} `URL_REFUSED`, or the DNS look-up's error.
   */
  async check(url: URL, signal?: AbortSignal | null): Promise<readonly ResolvedAddress[]> {
    if (!SCHEMES.includes(url.protocol))
      throw this.refused(url, `"${url.protocol}" is not http or https`);
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
    if (isLocalName(host) && !this.#mayBeLocal(host, "127.0.0.1"))
      throw this.#refusedLocal(url, host, "this machine");
    const looking = this.#settings.lookup(host);
    const addresses = await (signal == null ? looking : rejectOnAbort(looking, signal));
    if (addresses.length === 0) throw this.refused(url, "its name has no address");
    for (const address of addresses) this.#checkAddress(url, host, address);
    return addresses;
  }

  refused({ protocol, host }: URL, reason: string): McpPolicyError {
    const shown = host.length > MAX_HOST_CHARS ? `${host.slice(0, MAX_HOST_CHARS)}…` : host;
    const serverName = this.#serverName;
    const message = `Server "${serverName}": ${protocol}//${shown} is not followed: ${reason}.`;
    this.lastRefusal = new McpPolicyError("URL_REFUSED", message, { serverName, reason });
    return this.lastRefusal;
  }

  #checkAddress(url: URL, host: string, { address }: ResolvedAddress): void {
    const kind = addressKind(address);
    if (kind === "metadata")
      throw this.refused(url, `${address} is a metadata service, which is never followed`);
    if (kind === "local" && !this.#mayBeLocal(host, address))
      throw this.#refusedLocal(url, host, address);
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

/** Host of a URL without brackets and trailing dot, in lower case. */
export function hostOf({ hostname }: URL): string {
  return hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.+$/, "");
}

/** True for a local IP address and for a name of this machine. */
export function isWrittenLocal(host: string): boolean {
  return isIP(host) === 0 ? isLocalName(host) : addressKind(host) !== "public";
}

/** @see https://www.rfc-editor.org/rfc/rfc6761#section-6.3 */
function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}
