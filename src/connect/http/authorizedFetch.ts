import {
  auth,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from "@modelcontextprotocol/sdk/client/auth.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

import { McpAuthRequiredError } from "../../errors.js";

export interface AuthorizedFetchParts {
  readonly serverName: string;
  readonly serverUrl: URL;
  readonly provider: OAuthClientProvider;
  readonly fetch: FetchLike;
  /** Called with each token and client secret that may be sent, so that it can be masked. */
  readonly onToken: (token: string) => void;
  /** Called with the error, because not every transport passes on the error of its `fetch`. */
  readonly onRefused: (error: McpAuthRequiredError) => void;
}

/* Keeps a hanging authorization server from blocking all calls. */
const RENEW_MS = 15_000;

/** Origins that have given tokens to a provider first: its refresh token and secret go nowhere else. */
const issuers = new WeakMap<OAuthClientProvider, string>();

/**
 * A `fetch` that renews a refused access token once for all concurrent requests, then sends each of
 * them once more. The SDK renews per request, which servers take for theft of the refresh token. A
 * token refused right after its renewal is not renewed again.
 * @throws {McpAuthRequiredError} when a person has to sign in.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#token-handling
 */
export function authorizedFetch(parts: AuthorizedFetchParts): FetchLike {
  const { serverName, serverUrl, provider, onToken, onRefused } = parts;
  const refusal = (why: string): McpAuthRequiredError => {
    const error = signInError(serverName, why);
    onRefused(error);
    return error;
  };
  let renewing: Promise<void> | undefined;

  const send: FetchLike = async (url, init) => {
    const grant = grantOf(init);
    if (grant === undefined) return parts.fetch(url, init);
    const { origin } = new URL(url);
    const issuer = issuers.get(provider);
    // A code proves that a person has just signed in there.
    if (grant !== "authorization_code" && issuer !== undefined && issuer !== origin) {
      throw refusal(
        `it names the authorization server ${origin}, but its tokens are from ${issuer} and are not sent elsewhere`,
      );
    }
    const response = await parts.fetch(url, init);
    if (response.ok) issuers.set(provider, origin);
    return response;
  };

  const renew = async (refused: Response): Promise<void> => {
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused);
    for (const secret of await secretsOf(provider)) onToken(secret);
    const signal = AbortSignal.timeout(RENEW_MS);
    const result = await auth(provider, {
      serverUrl,
      fetchFn: (url, init) => send(url, { ...init, signal }),
      ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
      ...(scope === undefined ? {} : { scope }),
    });
    if (result !== "AUTHORIZED") throw refusal("its access token is not accepted any more");
  };

  return async (url, init = {}) => {
    const sent = bearerOf(init.headers);
    if (sent !== undefined) onToken(sent);
    const response = await send(url, init);
    if (response.status !== 401 || sent === undefined || new URL(url).origin !== serverUrl.origin)
      return response;
    await response.body?.cancel();
    if ((await currentToken(provider)) === sent) {
      renewing ??= renew(response).finally(() => {
        renewing = undefined;
      });
      await renewing;
    }
    const token = await currentToken(provider);
    if (token === undefined || token === sent)
      throw refusal("its access token is not accepted any more");
    onToken(token);
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    const retried = await send(url, { ...init, headers });
    if (retried.status !== 401) return retried;
    await retried.body?.cancel();
    // Renewing it again would not help, so the tokens are dropped.
    await provider.invalidateCredentials?.("tokens");
    throw refusal("it refuses a token that was just renewed");
  };
}

/** The `grant_type` of a token request. */
function grantOf(init: RequestInit | undefined): string | undefined {
  const { method, body } = init ?? {};
  if (method !== "POST" || !(body instanceof URLSearchParams)) return undefined;
  return body.get("grant_type") ?? undefined;
}

/**
 * Secrets that a renewal sends: the refresh token, and the client secret, also in its HTTP Basic
 * form.
 */
async function secretsOf(provider: OAuthClientProvider): Promise<string[]> {
  const [tokens, client] = await Promise.all([provider.tokens(), provider.clientInformation()]);
  const { client_id: id = "", client_secret: secret } = (client ?? {}) as {
    readonly client_id?: string;
    readonly client_secret?: string;
  };
  const basic =
    secret === undefined ? [] : [secret, Buffer.from(`${id}:${secret}`).toString("base64")];
  return [...(tokens?.refresh_token === undefined ? [] : [tokens.refresh_token]), ...basic];
}

async function currentToken(provider: OAuthClientProvider): Promise<string | undefined> {
  return (await provider.tokens())?.access_token;
}

function bearerOf(headers: RequestInit["headers"]): string | undefined {
  return /^Bearer (\S+)$/i.exec(new Headers(headers).get("authorization") ?? "")?.[1];
}

function signInError(serverName: string, why: string): McpAuthRequiredError {
  return new McpAuthRequiredError(
    `Server "${serverName}" needs a sign-in: ${why}. Sign in by its "authProvider", then call hub.reconnect("${serverName}").`,
    { serverName },
  );
}
