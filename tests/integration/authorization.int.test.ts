import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { inspect } from "node:util";

import { afterEach, describe, expect, it } from "@jest/globals";
import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";

import { serveHttp, type HttpFixture } from "../fixtures/servers/http.mjs";
import { until } from "../support/servers.js";
import { serving } from "../support/serving.js";

const { serve, hubOf, also, closeAll } = serving();
afterEach(closeAll);

/** An authorization server that gives a new pair of tokens for each refresh token, once. */
async function authorizationServer() {
  const seen = { refreshes: 0, reused: 0 };
  const used = new Set<string>();
  let count = 0;
  const http = createServer((request, response) => {
    void (async () => {
      let text = "";
      for await (const chunk of request.setEncoding("utf8")) text += chunk as string;
      const origin = `http://${request.headers.host}`;
      const json = (body: object, status = 200): void => {
        response
          .writeHead(status, { "content-type": "application/json" })
          .end(JSON.stringify(body));
      };
      if (request.url?.startsWith("/.well-known/oauth-authorization-server")) {
        const endpoints = {
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
        };
        return json({
          issuer: origin,
          ...endpoints,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
        });
      }
      if (request.url !== "/token") return void response.writeHead(404).end();
      const refreshToken = new URLSearchParams(text).get("refresh_token") ?? "";
      seen.refreshes += 1;
      if (used.has(refreshToken)) {
        seen.reused += 1;
        return json({ error: "invalid_grant" }, 400);
      }
      used.add(refreshToken);
      count += 1;
      json({
        access_token: `access-${count}`,
        refresh_token: `refresh-${count}`,
        token_type: "Bearer",
        expires_in: 3_600,
      });
    })();
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  also({
    close: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  });
  return { seen, url: `http://127.0.0.1:${(http.address() as AddressInfo).port}` };
}

/** A provider that keeps tokens, and writes down how often a person would be asked. */
function providerOf(issuer: string): {
  readonly provider: OAuthClientProvider;
  readonly asked: string[];
  tokens: () => string | undefined;
} {
  const asked: string[] = [];
  let tokens: OAuthTokens | undefined = {
    access_token: "access-0",
    refresh_token: "refresh-0",
    token_type: "Bearer",
    issuer,
  };
  const provider: OAuthClientProvider = {
    redirectUrl: "http://127.0.0.1/callback",
    clientMetadata: { redirect_uris: ["http://127.0.0.1/callback"] },
    clientInformation: () => ({ client_id: "c" }),
    tokens: () => tokens,
    saveTokens: (next) => {
      tokens = next;
    },
    redirectToAuthorization: (url) => void asked.push(url.pathname),
    saveCodeVerifier: () => undefined,
    codeVerifier: () => "v",
    invalidateCredentials: () => {
      tokens = undefined;
    },
  };
  return { provider, asked, tokens: () => tokens?.access_token };
}

async function protectedServer(authorization: string, token: string): Promise<HttpFixture> {
  const http = await serve({ token, protectedBy: authorization });
  return http;
}

describe("tokens that expire", () => {
  it("are renewed once for five calls that are refused at the same time, and each call is repeated", async () => {
    const authorization = await authorizationServer();
    const http = await protectedServer(authorization.url, "access-0");
    const { provider, asked, tokens } = providerOf(authorization.url);
    const hub = hubOf({ s: { url: http.url, authProvider: provider } });
    await hub.connect(undefined, { onFailure: "throw" });
    http.options["token"] = "access-1";
    const results = await Promise.all(Array.from({ length: 5 }, () => hub.callTool("s", "look")));
    expect(results.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => "success"));
    expect(authorization.seen).toEqual({ refreshes: 1, reused: 0 });
    expect([tokens(), asked]).toEqual(["access-1", []]);
    expect(hub.status()[0]!.state).toBe("connected");
  });

  it("that are refused right after they were renewed are not renewed again: a person has to sign in", async () => {
    const authorization = await authorizationServer();
    const http = await protectedServer(authorization.url, "access-0");
    const { provider } = providerOf(authorization.url);
    const hub = hubOf({ s: { url: http.url, authProvider: provider } });
    await hub.connect(undefined, { onFailure: "throw" });
    http.options["token"] = "never";
    const errors = await Promise.all(
      Array.from({ length: 5 }, () =>
        hub.callTool("s", "look").catch((error: unknown) => (error as { code: string }).code),
      ),
    );
    expect(errors).toEqual(Array.from({ length: 5 }, () => "AUTH_REQUIRED"));
    expect(authorization.seen.refreshes).toBeLessThanOrEqual(2);
    expect(hub.status()[0]!.state).toBe("needs-auth");
    const { refreshes } = authorization.seen;
    await expect(hub.callTool("s", "look")).rejects.toMatchObject({ code: "AUTH_REQUIRED" });
    expect(authorization.seen.refreshes).toBe(refreshes);
    expect(JSON.stringify(hub.status())).not.toMatch(/access-\d|refresh-\d/);
  });

  it("are sent to the authorization server that they are from, whatever the server names later", async () => {
    const [first, second] = await Promise.all([authorizationServer(), authorizationServer()]);
    const http = await protectedServer(first.url, "access-0");
    const { provider } = providerOf(first.url);
    const saveTokens = provider.saveTokens.bind(provider);
    // A provider that keeps only what the protocol names.
    provider.saveTokens = ({ access_token, refresh_token, token_type }) =>
      saveTokens({
        access_token,
        token_type,
        ...(refresh_token === undefined ? {} : { refresh_token }),
      });
    const hub = hubOf({ s: { url: http.url, authProvider: provider } });
    await hub.connect(undefined, { onFailure: "throw" });
    http.options["token"] = "access-1";
    expect((await hub.callTool("s", "look")).status).toBe("success");
    http.options["token"] = "never";
    http.options["protectedBy"] = second.url;
    await expect(hub.callTool("s", "look")).rejects.toMatchObject({ code: "AUTH_REQUIRED" });
    expect([first.seen.refreshes, second.seen.refreshes]).toEqual([1, 0]);
  });

  it("are missing: the provider is asked, and the server needs a sign-in", async () => {
    const authorization = await authorizationServer();
    const http = await protectedServer(authorization.url, "access-0");
    const { provider, asked } = providerOf(authorization.url);
    await provider.invalidateCredentials?.("all");
    const hub = hubOf({ s: { url: http.url, authProvider: provider } });
    const { failed } = await hub.connect();
    expect(failed[0]!.error).toMatchObject({ code: "AUTH_REQUIRED" });
    expect(hub.status()[0]!.state).toBe("needs-auth");
    expect(asked).toEqual(["/authorize"]);
  });
});

describe("headers of beforeToolCall", () => {
  it("are sent only with that call, and override those of the configuration in any case", async () => {
    const http = await serveHttp({});
    also(http);
    const hub = hubOf(
      { s: { url: http.url, headers: { Authorization: "Bearer base", "X-Tenant": "none" } } },
      {
        beforeToolCall: ({ args }: { args: { text: string } }) =>
          args.text === "plain"
            ? undefined
            : { headers: { "x-tenant": args.text, "X-Trace": "1" } },
      },
    );
    await hub.connect();
    const before = http.stats.headers.length;
    await Promise.all(["a", "b", "plain"].map((text) => hub.callTool("s", "echo", { text })));
    const sent = http.stats.headers
      .slice(before)
      .map((headers) => [headers["authorization"], headers["x-tenant"], headers["x-trace"]]);
    expect(sent.sort()).toEqual([
      ["Bearer base", "a", "1"],
      ["Bearer base", "b", "1"],
      ["Bearer base", "none", undefined],
    ]);
  });

  it("are sent with no follow-up request, and credentials of one caller do not affect others", async () => {
    const authorization = await authorizationServer();
    const http = await serve({
      noBase: false,
      tools: [],
      token: "access-0",
      protectedBy: authorization.url,
    });
    const { provider, tokens } = providerOf(authorization.url);
    const hub = hubOf(
      { s: { url: http.url, authProvider: provider } },
      {
        beforeToolCall: ({ name, args }: { name: string; args: { text?: string } }) =>
          args.text === "bad"
            ? { headers: { authorization: "Bearer of-somebody-else-12345" } }
            : name === "change_tools"
              ? { headers: { "x-tenant": "ada" } }
              : undefined,
      },
    );
    await hub.connect(undefined, { onFailure: "throw" });
    const before = http.stats.headers.length;
    const listed = http.stats.listTools;
    await hub.callTool("s", "change_tools", {
      add: [{ name: "late", inputSchema: { type: "object" } }],
    });
    await until(() => http.stats.listTools > listed);
    const tenants = http.stats.headers.slice(before).map((headers) => headers["x-tenant"]);
    expect(tenants.filter((tenant) => tenant !== undefined)).toEqual(["ada"]);

    const error: unknown = await hub
      .callTool("s", "echo", { text: "bad" })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "AUTH_REQUIRED" });
    expect(inspect(error, { depth: 20 })).not.toContain("of-somebody-else");
    expect([tokens(), authorization.seen.refreshes, hub.status()[0]!.state]).toEqual([
      "access-0",
      0,
      "connected",
    ]);
    expect((await hub.callTool("s", "echo", { text: "good" })).status).toBe("success");
  });
});

it("an SSE server that needs a sign-in is reported as such", async () => {
  const authorization = await authorizationServer();
  const http = await serve({ token: "never", protectedBy: authorization.url });
  const { provider } = providerOf(authorization.url);
  const hub = hubOf({
    s: { url: http.url.replace("/mcp", "/sse"), transport: "sse", authProvider: provider },
  });
  const { failed } = await hub.connect();
  expect(failed[0]!.error).toMatchObject({ code: "AUTH_REQUIRED" });
  expect(hub.status()[0]!.state).toBe("needs-auth");
});
