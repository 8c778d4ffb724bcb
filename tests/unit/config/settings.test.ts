import { McpConfigError } from "../../../src/errors.js";
import { resolveHubOptions, resolveWrapOptions } from "../../../src/config/settings.js";

const server = { command: "node" };

function messageFrom(options: unknown): string {
  try {
    resolveHubOptions(options as never);
  } catch (error) {
    expect(McpConfigError.isInstance(error)).toBe(true);
    return (error as Error).message;
  }
  throw new Error("no error");
}

describe("resolveHubOptions", () => {
  it.each<[string, unknown, RegExp]>([
    [
      "a misspelt option",
      { mcpServers: { s: server }, startupDeadlinMs: 5 },
      /unknown option "startupDeadlinMs", did you mean "timeouts.startupDeadlineMs"\?/,
    ],
    [
      "a misspelt server option",
      { mcpServers: { s: { ...server, enabeld: true } } },
      /unknown option "mcpServers.s.enabeld", did you mean "enabled"\?/,
    ],
    [
      "an unknown option like no other",
      { mcpServers: { s: server }, zzzzzz: 5 },
      /unknown option "zzzzzz"(?!.*did you mean)/,
    ],
    [
      "a glob with a sign that it does not have",
      { mcpServers: { s: { ...server, toolFilter: ["!drop_*"] } } },
      /"mcpServers.s.toolFilter.0" is "!drop_\*": globs cannot be negated; .* "toolDeny"/,
    ],
    [
      "command and url",
      { mcpServers: { s: { command: "a", url: "http://x" } } },
      /Server "s": give "command" or "url", not both/,
    ],
    [
      "neither command nor url",
      { mcpServers: { s: {} } },
      /Server "s": give "command" \(a program to start\), "url" \(a remote server\)/,
    ],
    [
      "a url that is none",
      { mcpServers: { s: { url: "example" } } },
      /Server "s": "url" must be an http or https URL/,
    ],
    [
      "a file url",
      { mcpServers: { s: { url: "file:///etc/passwd" } } },
      /must be an http or https URL/,
    ],
    [
      "stdio with a url",
      { mcpServers: { s: { url: "http://x", transport: "stdio" } } },
      /needs "command"/,
    ],
    [
      "http with a command",
      { mcpServers: { s: { ...server, transport: "http" } } },
      /"command" starts a stdio server/,
    ],
    [
      "two transports",
      { mcpServers: { s: { url: "http://x", transport: "sse", type: "http" } } },
      /give one of them/,
    ],
    [
      "an unknown transport",
      { mcpServers: { s: { url: "http://x", transport: "carrier-pigeon" } } },
      /mcpServers\.s\.transport" is "carrier-pigeon"/,
    ],
    [
      "a wrong type",
      { mcpServers: { s: { command: 5 } } },
      /"mcpServers\.s\.command" is 5: .*expected string/,
    ],
    [
      "a negative duration",
      { mcpServers: { s: server }, timeouts: { connectTimeoutMs: -1 } },
      /"timeouts.connectTimeoutMs" is -1/,
    ],
    [
      "an option outside of its group",
      { mcpServers: { s: server }, connectTimeoutMs: 5 },
      /unknown option "connectTimeoutMs": write it as "timeouts.connectTimeoutMs"/,
    ],
    [
      "an option of a server at the hub",
      { mcpServers: { s: server }, toolFilter: ["a"] },
      /unknown option "toolFilter": write it as "mcpServers.<name>.toolFilter"/,
    ],
    [
      "a server called __proto__",
      JSON.parse('{"mcpServers":{"s":{"command":"node"},"__proto__":{"command":"node"}}}'),
      /cannot be called "__proto__"/,
    ],
    ["no servers", { mcpServers: {} }, /"mcpServers" is empty/],
    ["no mcpServers", { startup: "lazy" }, /"mcpServers" is missing/],
    ["no options", undefined, /must be an object/],
    [
      "outputHandling",
      { mcpServers: { s: server }, outputHandling: "content" },
      /"outputHandling" is not supported/,
    ],
    [
      "outputHandling of a server",
      { mcpServers: { s: { ...server, outputHandling: {} } } },
      /Server "s": "outputHandling" is not supported/,
    ],
  ])("refuses %s with the name and the fix", (_what, options, message) => {
    expect(messageFrom(options)).toMatch(message);
  });

  it("refuses a bare record of servers and names McpHub.fromServers", () => {
    expect(messageFrom({ a: server })).toContain("McpHub.fromServers(servers)");
  });

  it.each(["http", "streamable_http", "streamable-http", "streamableHttp"] as const)(
    "takes %s for streamable HTTP",
    (transport) => {
      expect(
        resolveHubOptions({ mcpServers: { s: { url: "http://x", transport } } }).servers.get("s")!
          .transport!.kind,
      ).toBe("http");
    },
  );

  it("lets the setting of a server win over that of the hub", () => {
    const { servers } = resolveHubOptions({
      mcpServers: { a: { ...server, defaultToolTimeout: 5, defer: false }, b: server },
      defaultToolTimeout: 7,
      defer: true,
    });
    expect([servers.get("a")!.toolTimeoutMs, servers.get("b")!.toolTimeoutMs]).toEqual([5, 7]);
    expect([servers.get("a")!.defer, servers.get("b")!.defer]).toEqual([false, true]);
  });

  it("reads auth.headers as headers, and headers win", () => {
    const { transport } = resolveHubOptions({
      mcpServers: {
        s: { url: "http://x", auth: { headers: { A: "1", B: "2" } }, headers: { B: "3" } },
      },
    }).servers.get("s")!;
    expect(transport).toMatchObject({ headers: { A: "1", B: "3" } });
  });

  it("reports options that have no effect", () => {
    const settings = resolveHubOptions({
      mcpServers: { s: server },
      throwOnLoadError: true,
      prefixToolNameWithServerName: true,
      additionalToolNamePrefix: "x",
      useStandardContentBlocks: true,
    });
    expect(settings.withoutEffect.map(({ option }) => option)).toEqual([
      "throwOnLoadError",
      "prefixToolNameWithServerName",
      "additionalToolNamePrefix",
      "useStandardContentBlocks",
    ]);
  });

  it("treats undefined as left out and never writes into the caller's object", () => {
    const options = Object.freeze({
      mcpServers: Object.freeze({ s: Object.freeze({ ...server, args: undefined }) }),
      startup: undefined,
    });
    const settings = resolveHubOptions(options);
    expect(settings.startup).toBe("background");
    expect(settings.servers.get("s")!.transport).toMatchObject({ args: [] });
  });

  it("filters tools before registration: toolDeny beats toolFilter", () => {
    const { isOffered } = resolveHubOptions({
      mcpServers: { s: { ...server, toolFilter: ["read_*", "list"], toolDeny: ["read_secret*"] } },
    }).servers.get("s")!;
    expect(["read_file", "list", "read_secrets", "write"].map(isOffered)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe("resolveWrapOptions", () => {
  it("refuses settings for a server that the client does not have", () => {
    expect(() => resolveWrapOptions({ servers: { nope: {} } }, { a: {}, b: {} })).toThrow(
      '"servers.nope" is not a server of the client. It has: a, b.',
    );
  });

  it("refuses options for how a wrapped server is reached", () => {
    expect(() =>
      resolveWrapOptions({ servers: { a: { command: "x" } as never } }, { a: {} }),
    ).toThrow('unknown option "servers.a.command"');
  });
});
