import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { afterEach, describe, expect, it } from "@jest/globals";

import { McpHub, type SecurityOptions, type UrlGuardOptions } from "../../src/core.js";
import type { HostLookup } from "../../src/config/securityOptions.js";
import { serving } from "../support/serving.js";
import { serveWebSocket } from "../fixtures/servers/webSocket.mjs";

const { serve, hubOf, also, closeAll } = serving();
afterEach(closeAll);

/** Names with addresses that may change; loopback is of the internet here when it is 127.0.0.2. */
function world(names: Record<string, string | (() => string)>) {
  const asked: string[] = [];
  const lookup: HostLookup = (hostname) => {
    asked.push(hostname);
    const found = names[hostname];
    if (found === undefined) return Promise.reject(new Error(`getaddrinfo ENOTFOUND ${hostname}`));
    return Promise.resolve([{ address: typeof found === "function" ? found() : found, family: 4 }]);
  };
  return { asked, lookup };
}

/** A provider of tokens that has none. */
const NO_TOKENS = {
  redirectUrl: "http://127.0.0.1/callback",
  clientMetadata: { redirect_uris: ["http://127.0.0.1/callback"] },
  clientInformation: () => ({ client_id: "c" }),
  tokens: () => undefined,
  saveTokens: () => undefined,
  redirectToAuthorization: () => undefined,
  saveCodeVerifier: () => undefined,
  codeVerifier: () => "v",
};

/** A web server that answers as the test says. */
async function web(
  handle: Parameters<typeof createServer>[1],
): Promise<{ readonly port: number; readonly urls: string[] }> {
  const urls: string[] = [];
  const http: Server = createServer((request, response) => {
    urls.push(`${request.method} ${request.url}`);
    (handle as (a: unknown, b: unknown) => void)(request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  also({
    close: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  });
  return { port: (http.address() as AddressInfo).port, urls };
}

async function failureOf(url: string, urlGuard: UrlGuardOptions | undefined, more: object = {}) {
  const hub = hubOf(
    { s: { url, ...more } },
    urlGuard === undefined ? {} : { security: { urlGuard } },
  );
  const { failed } = await hub.connect();
  return failed[0]?.error;
}

describe("urlGuard", () => {
  it("reaches a server whose name resolves to an allowed address, and calls its tools", async () => {
    const { url } = await serve();
    const { lookup } = world({ mcp: "127.0.0.1" });
    const { port } = new URL(url);
    const guard = { lookup, allowHosts: ["localhost", "mcp"] };
    // Only what is pinned goes where the look-up says: the system knows no "mcp".
    const host = "mcp";
    const hub = hubOf(
      { s: { url: `http://${host}:${port}/mcp` } },
      { security: { urlGuard: guard } },
    );
    await hub.connect(undefined, { onFailure: "throw" });
    expect((await hub.callTool("s", "look")).status).toBe("success");
    expect((await hub.callTool("s", "look")).status).toBe("success");
  });

  it("refuses a name that resolves to a local address before anything is sent", async () => {
    const { port, urls } = await web((_request, response) => response.end("{}"));
    const { lookup } = world({ "tracker.example": "127.0.0.1" });
    for (const more of [{}, { transport: "sse" as const }]) {
      expect(await failureOf(`http://tracker.example:${port}/mcp`, { lookup }, more)).toMatchObject(
        {
          name: "McpPolicyError",
          code: "URL_REFUSED",
        },
      );
    }
    expect(urls).toEqual([]);
  });

  it.each([301, 302, 303, 307, 308])(
    "follows no redirect (%s) to another origin",
    async (status) => {
      const inner = await web((_request, response) => response.end("{}"));
      const outer = await web((_request, response) =>
        response.writeHead(status, { location: `http://localhost:${inner.port}/steal` }).end(),
      );
      for (const more of [{}, { transport: "sse" as const }]) {
        const error = await failureOf(
          `http://127.0.0.1:${outer.port}/mcp`,
          {},
          { automaticSSEFallback: false, ...more },
        );
        expect(error?.message).toMatch(/redirect/i);
      }
      expect(inner.urls).toEqual([]);
    },
  );

  it("follows a redirect that keeps method and origin", async () => {
    const { url } = await serve({ redirectFrom: "/old" });
    const hub = hubOf({ s: { url: url.replace("/mcp", "/old") } }, { security: { urlGuard: {} } });
    await hub.connect(undefined, { onFailure: "throw" });
    expect((await hub.callTool("s", "look")).status).toBe("success");
  });

  it("stops following redirects after a limit", async () => {
    const loop = await web((request, response) =>
      response.writeHead(307, { location: request.url }).end(),
    );
    await failureOf(`http://127.0.0.1:${loop.port}/mcp`, {}, { automaticSSEFallback: false });
    expect(loop.urls.length).toBeLessThan(20);
  });

  it("checks each request: a name that changes to a local address is refused from then on", async () => {
    const { url } = await serve();
    const { port } = new URL(url);
    let address = "127.0.0.1";
    const { lookup } = world({ localhost: () => address });
    const hub = hubOf(
      { s: { url: `http://localhost:${port}/mcp` } },
      { security: { urlGuard: { lookup } } },
    );
    await hub.connect(undefined, { onFailure: "throw" });
    address = "169.254.169.254";
    await expect(hub.callTool("s", "look")).rejects.toMatchObject({ code: "URL_REFUSED" });
    address = "127.0.0.1";
    expect((await hub.callTool("s", "look")).status).toBe("success");
  });

  it("sends nothing to a local OAuth server", async () => {
    const inner = await web((_request, response) => response.end("{}"));
    const { lookup } = world({ "auth.internal": "10.0.0.5", localhost: "127.0.0.1" });
    const outer = await web((request, response) => {
      if (request.url?.startsWith("/.well-known/oauth-protected-resource")) {
        response.writeHead(200, { "content-type": "application/json" });
        const { host } = request.headers;
        response.end(
          JSON.stringify({
            resource: `http://${host}/mcp`,
            authorization_servers: ["http://auth.internal/"],
          }),
        );
      } else response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    });
    const error = await failureOf(
      `http://localhost:${outer.port}/mcp`,
      { lookup },
      { authProvider: NO_TOKENS as never },
    );
    expect(error).toMatchObject({ code: "URL_REFUSED" });
    expect(error?.message).toContain("auth.internal");
    expect(inner.urls).toEqual([]);
  });

  it("keeps headers of the configuration from OAuth servers", async () => {
    const seen: (string | undefined)[] = [];
    const auth = await web((request, response) => {
      seen.push(request.headers["x-api-key"] as string | undefined);
      response.writeHead(404).end();
    });
    const outer = await web((request, response) => {
      if (request.url?.startsWith("/.well-known/oauth-protected-resource")) {
        const { host } = request.headers;
        response.writeHead(200, { "content-type": "application/json" });
        response.end(
          JSON.stringify({
            resource: `http://${host}/mcp`,
            authorization_servers: [`http://127.0.0.1:${auth.port}/`],
          }),
        );
      } else response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    });
    await failureOf(
      `http://127.0.0.1:${outer.port}/mcp`,
      {},
      { headers: { "X-Api-Key": " of the tracker\n" }, authProvider: NO_TOKENS as never },
    );
    expect(seen.length).toBeGreaterThan(0);
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });

  it("checks the URL of a WebSocket and the address it connects to", async () => {
    const server = await serveWebSocket({
      noBase: true,
      tools: [{ name: "look", inputSchema: { type: "object" } }],
    });
    also(server);
    const { port } = new URL(server.url);
    const { lookup } = world({ "tracker.example": "127.0.0.1", mcp: "127.0.0.1" });
    expect(await failureOf(`ws://tracker.example:${port}/`, { lookup })).toMatchObject({
      code: "URL_REFUSED",
    });
    const hub = hubOf(
      { s: { url: `ws://mcp:${port}/` } },
      { security: { urlGuard: { lookup, allowHosts: ["mcp"] } } },
    );
    await hub.connect(undefined, { onFailure: "throw" });
    expect((await hub.callTool("s", "look")).status).toBe("success");
  });
});

it("a connection goes only to an address that the guard checked", async () => {
  const { url } = await serve();
  const { port } = new URL(url);
  // Allowed when it is checked, local when it is connected to.
  const answers = ["93.184.216.34"];
  const { lookup } = world({ "rebind.example": () => answers.shift() ?? "127.0.0.1" });
  const error = await failureOf(`http://rebind.example:${port}/mcp`, { lookup });
  expect(error).toMatchObject({ code: "URL_REFUSED" });
});

it("warns about URLs of a wrapped client that would be refused", async () => {
  const mcpServers = {
    s: { url: "http://tracker.example:1/mcp" },
    t: { url: "http://169.254.169.254/" },
    u: { url: "http://127.0.0.1:1/" },
    v: { command: "node" },
  };
  const client = { config: { mcpServers }, getClient: () => Promise.resolve(undefined) };
  const { lookup } = world({ "tracker.example": "10.0.0.5" });
  const hub = McpHub.wrap(client, { warnings: "silent", security: { urlGuard: { lookup } } });
  const warnings: string[] = [];
  hub.on("warning", ({ code, serverName, message }) => {
    if (code === "URL_NOT_GUARDED") warnings.push(`${serverName}: ${message}`);
  });
  await hub.connect();
  expect(warnings.sort()).toEqual([
    expect.stringMatching(/^s: .*10\.0\.0\.5/),
    expect.stringMatching(/^t: .*metadata/),
  ]);
});

describe("transports", () => {
  it("restricts the kinds of transports, also for the fallback to SSE", async () => {
    const make = (transports: SecurityOptions["transports"], entry: object) => () =>
      new McpHub({
        mcpServers: { s: entry },
        ...(transports === undefined ? {} : { security: { transports } }),
      });
    expect(make(["http"], { command: "node" })).toThrow(
      'Server "s" is of kind "stdio"; the option "transports" allows http.',
    );
    expect(make(["http"], { url: "ws://x/" })).toThrow('of kind "websocket"');
    expect(make([], { url: "http://x/" })).toThrow("allows none");
    expect(make(["stdio"], { command: "node" })).not.toThrow();
    const { port, urls } = await web((_request, response) => response.writeHead(404).end());
    const hub = hubOf(
      { s: { url: `http://127.0.0.1:${port}/mcp` } },
      { security: { transports: ["http"] } },
    );
    await hub.connect();
    expect(urls.filter((url) => url.startsWith("GET"))).toEqual([]);
  });
});
