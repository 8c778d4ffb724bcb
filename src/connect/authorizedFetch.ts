import { auth, extractWWWAuthenticateParams, type OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

import { McpAuthRequiredError } from "../errors.js";

/** What an {@link authorizedFetch} is made of. */
export interface AuthorizedFetchParts {
  readonly serverName: string;
  readonly serverUrl: URL;
  readonly provider: OAuthClientProvider;
  readonly fetch: FetchLike;
  /** Told of each token that is sent: it is a secret. */
  readonly onToken: (token: string) => void;
}

/**
 * A `fetch` that renews an access token that the server refuses: once for all requests that are refused at the same time, and
 * each of them is sent once more.
 *
 * The SDK would renew it for each, which servers take for theft of the refresh token, and give up the requests that were
 * refused before another one's renewal. A token that was just renewed and is refused is not renewed again.
 *
 * @throws {McpAuthRequiredError} when a person has to sign in.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#token-handling
 */
export function authorizedFetch(parts: AuthorizedFetchParts): FetchLike {
  const { serverName, serverUrl, provider, fetch: send, onToken } = parts;
  let renewing: Promise<void> | undefined;

  const renew = async (refused: Response): Promise<void> => {
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused);
    const result = await auth(provider, {
      serverUrl,
      fetchFn: send,
      ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
      ...(scope === undefined ? {} : { scope }),
    });
    if (result !== "AUTHORIZED") throw signInError(serverName, "its access token is not accepted any more");
  };

  return async (url, init = {}) => {
    const sent = bearerOf(init.headers);
    if (sent !== undefined) onToken(sent);
    const response = await send(url, init);
    if (response.status !== 401 || sent === undefined || new URL(url).origin !== serverUrl.origin) return response;
    await response.body?.cancel();
    if ((await currentToken(provider)) === sent) {
      renewing ??= renew(response).finally(() => {
        renewing = undefined;
      });
      await renewing;
    }
    const token = await currentToken(provider);
    if (token === undefined || token === sent) throw signInError(serverName, "its access token is not accepted any more");
    onToken(token);
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    const retried = await send(url, { ...init, headers });
    if (retried.status !== 401) return retried;
    await retried.body?.cancel();
    // Nothing is to be had by renewing it once more.
    await provider.invalidateCredentials?.("tokens");
    throw signInError(serverName, "it refuses a token that was just renewed");
  };
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
