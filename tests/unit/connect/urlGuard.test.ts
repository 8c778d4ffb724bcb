import { securitySettings, type HostLookup } from "../../../src/config/securityOptions.js";
import { UrlGuard } from "../../../src/connect/http/urlGuard.js";

/** Names of a world in which some lead where they should not. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  "public.example": ["93.184.216.34"],
  "both.example": ["93.184.216.34", "10.0.0.5"],
  "private.example": ["10.0.0.5"],
  "six.example": ["::ffff:10.0.0.5"],
  "metadata.example": ["169.254.169.254"],
  "metadata.google.internal": ["169.254.169.254"],
  mcp: ["172.18.0.3"],
  "a.internal.example": ["10.1.4.4"],
  "nothing.example": [],
  localhost: ["127.0.0.1", "::1"],
};
const lookup: HostLookup = (hostname) => {
  const found = NAMES[hostname];
  if (found === undefined) return Promise.reject(new Error(`getaddrinfo ENOTFOUND ${hostname}`));
  return Promise.resolve(
    found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
  );
};

function guardOf(configured: string, options: object = {}): UrlGuard {
  return new UrlGuard(
    securitySettings({ urlGuard: { lookup, ...options } }).urlGuard!,
    "s",
    new URL(configured),
  );
}

async function outcome(guard: UrlGuard, url: string): Promise<string> {
  try {
    const addresses = await guard.check(new URL(url));
    return addresses.map(({ address }) => address).join(" ");
  } catch (error) {
    return (error as Error).message;
  }
}

describe("a server at a public name", () => {
  const guard = guardOf("https://public.example/mcp");

  it.each([
    ["https://public.example/mcp", "93.184.216.34"],
    ["https://public.example./other", "93.184.216.34"],
    ["http://93.184.216.34/", "93.184.216.34"],
    ["http://[2606:4700::1111]/", "2606:4700::1111"],
  ])("may follow %s", async (url, addresses) => expect(await outcome(guard, url)).toBe(addresses));

  it.each([
    ["a private address", "http://10.0.0.5/", "10.0.0.5 is no public address"],
    ["loopback", "http://127.0.0.1/", "127.0.0.1 is no public address"],
    ["loopback as one number", "http://2130706433/", "127.0.0.1 is no public address"],
    ["loopback in octal and short", "http://0177.1/", "127.0.0.1 is no public address"],
    ["loopback with a trailing dot", "http://127.0.0.1./", "127.0.0.1 is no public address"],
    ["loopback in full width", "http://１２７．０．０．１/", "127.0.0.1 is no public address"],
    ["IPv6 loopback", "http://[::1]/", "::1 is no public address"],
    ["mapped loopback", "http://[::ffff:127.0.0.1]/", "no public address"],
    ["localhost", "http://localhost:8080/", '"localhost" leads to this machine, no public address'],
    ["localhost with a dot", "http://LOCALHOST./", '"localhost" leads to this machine'],
    ["a name below localhost", "http://a.localhost/", "leads to this machine"],
    [
      "a private name",
      "https://private.example/",
      '"private.example" leads to 10.0.0.5, no public address',
    ],
    [
      "a name with one private address",
      "https://both.example/",
      '"both.example" leads to 10.0.0.5, no public address',
    ],
    ["a name with a mapped address", "https://six.example/", "no public address"],
    [
      "metadata",
      "http://169.254.169.254/latest/meta-data",
      "169.254.169.254 is a metadata service",
    ],
    [
      "a name of metadata",
      "http://metadata.google.internal/",
      "169.254.169.254 is a metadata service",
    ],
    ["a user name", "https://me@public.example/", "holds a user name or a password"],
    ["a password", "https://:secret@public.example/", "holds a user name or a password"],
    ["a file", "file:///etc/passwd", '"file:" is not http or https'],
    ["data", "data:text/plain,hello", '"data:" is not http or https'],
    ["a name without addresses", "https://nothing.example/", "its name has no address"],
  ])("may not follow %s", async (_what, url, why) => {
    const said = await outcome(guard, url);
    expect(said).toContain(why);
    expect(said).toContain('Server "s"');
    expect(said).not.toContain("secret");
  });

  it("is refused with an error code and how to allow a local host", async () => {
    await expect(guard.check(new URL("http://mcp:3000/"))).rejects.toMatchObject({
      name: "McpPolicyError",
      code: "URL_REFUSED",
      serverName: "s",
      message: expect.stringContaining('urlGuard: { allowHosts: ["mcp"] }') as string,
    });
  });
});

describe("a local server that the configuration names itself", () => {
  it.each([
    "http://127.0.0.1:3000/mcp",
    "http://[::1]:3000/mcp",
    "http://10.0.0.5/mcp",
    "http://localhost:3000/mcp",
  ])("%s is allowed, on any port, and nothing else that is local", async (configured) => {
    const guard = guardOf(configured);
    expect(await outcome(guard, configured)).not.toContain("not followed");
    expect(await outcome(guard, configured.replace(/:3000/, ":4000"))).not.toContain(
      "not followed",
    );
    expect(await outcome(guard, "http://192.168.7.7/")).toContain("no public address");
    expect(await outcome(guard, "http://169.254.169.254/")).toContain("metadata");
  });

  it('is refused with literals: "refuse"', async () => {
    for (const url of [
      "http://127.0.0.1/mcp",
      "http://[::1]/",
      "http://localhost/",
      "http://10.0.0.5/",
    ]) {
      expect(await outcome(guardOf(url, { literals: "refuse" }), url)).toContain(
        "no public address",
      );
    }
  });

  it("does not include what a name resolves to", async () => {
    expect(
      await outcome(guardOf("https://private.example/"), "https://private.example/"),
    ).toContain("no public address");
  });

  it("is never a metadata service", async () => {
    const url = "http://169.254.169.254/mcp";
    expect(
      await outcome(guardOf(url, { allowHosts: ["169.254.169.254", "0.0.0.0/0"] }), url),
    ).toContain("metadata service");
  });
});

describe("allowHosts", () => {
  it.each([
    ["a name", "http://mcp:3000/", ["mcp"]],
    ["a name in other letters", "http://MCP:3000/", ["Mcp"]],
    ["a glob", "http://a.internal.example/", ["*.internal.example"]],
    ["an address", "http://10.0.0.5/", ["10.0.0.5"]],
    ["a range, for a literal", "http://10.0.0.5/", ["10.0.0.0/8"]],
    ["a range, for a name", "http://a.internal.example/", ["10.1.0.0/16"]],
  ])("allows %s", async (_what, url, allowHosts) => {
    expect(await outcome(guardOf("https://public.example/", { allowHosts }), url)).not.toContain(
      "not followed",
    );
  });

  it.each([
    ["an address in brackets", "http://[fd12::1]/", ["[fd12::1]"]],
    ["an address in another spelling", "http://[fd12::1]/", ["fd12:0:0::0001"]],
    ["a name with a dot at its end", "http://mcp:3000/", ["mcp."]],
    ["all", "http://10.0.0.5/", ["*"]],
    ["all, in the words of globs", "http://10.0.0.5/", ["**"]],
    ["a range in brackets", "http://[fd12::1]/", ["[fd12::]/16"]],
  ])("takes %s", async (_what, url, allowHosts) => {
    expect(await outcome(guardOf("https://public.example/", { allowHosts }), url)).not.toContain(
      "not followed",
    );
  });

  it.each([
    ["10.*", "write a range such as 10.0.0.0/8"],
    ["localhost:3000", "without its port"],
    ["http://mcp", "write the host alone"],
    ["10.0.0.0/33", "a range looks like 10.1.0.0/16"],
    ["mcp/", "a range looks like"],
    ["127.1", "write a range such as"],
    ["10.0.0.5-10.0.0.9", "write a range such as"],
    ["fd00:*", "write a range such as"],
    [".internal", "write *.internal"],
  ])("refuses %s, which would match nothing, or more than is meant", (host, fix) => {
    expect(() => guardOf("https://public.example/", { allowHosts: [host] })).toThrow(fix);
  });

  it("applies globs to names only, not to addresses", async () => {
    const guard = guardOf("https://public.example/", { allowHosts: ["fd*", "10.x*"] });
    expect(await outcome(guard, "http://[fd00::1]/")).toContain("no public address");
    expect(await outcome(guard, "http://10.0.0.5/")).toContain("no public address");
  });

  it("allows no metadata service, and no URL that only contains an allowed name", async () => {
    const guard = guardOf("https://public.example/", { allowHosts: ["metadata.example", "mcp"] });
    expect(await outcome(guard, "http://metadata.example/")).toContain("metadata service");
    expect(await outcome(guard, "http://private.example/#mcp")).toContain("no public address");
  });
});
