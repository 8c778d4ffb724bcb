import { addressKind, isInRange } from "../../../src/connect/http/addresses.js";

describe("addressKind", () => {
  it.each([
    "8.8.8.8",
    "1.1.1.1",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "192.167.1.1",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "::ffff:0:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
  ])("%s is of the internet", (address) => expect(addressKind(address)).toBe("public"));

  it.each([
    ["unspecified", "0.0.0.0"],
    ["this network", "0.1.2.3"],
    ["private", "10.0.0.1"],
    ["private", "172.16.0.1"],
    ["private", "172.31.255.255"],
    ["private", "192.168.0.1"],
    ["CGNAT", "100.64.0.1"],
    ["CGNAT", "100.127.255.255"],
    ["loopback", "127.0.0.1"],
    ["loopback", "127.255.255.254"],
    ["link-local", "169.254.1.1"],
    ["documentation", "192.0.2.1"],
    ["documentation", "198.51.100.1"],
    ["documentation", "203.0.113.1"],
    ["benchmarks", "198.18.0.1"],
    ["multicast", "224.0.0.1"],
    ["reserved", "240.0.0.1"],
    ["broadcast", "255.255.255.255"],
    ["6to4 relays", "192.88.99.1"],
    ["unspecified", "::"],
    ["loopback", "::1"],
    ["link-local", "fe80::1"],
    ["link-local with a zone", "fe80::1%eth0"],
    ["site-local", "fec0::1"],
    ["unique local", "fd12:3456::1"],
    ["multicast", "ff02::1"],
    ["documentation", "2001:db8::1"],
    ["documentation", "3fff::1"],
    ["Teredo", "2001::1"],
    ["discard", "100::1"],
    ["segment routing", "5f00::1"],
    ["not given out", "4000::1"],
    ["mapped", "::ffff:127.0.0.1"],
    ["mapped, in hexadecimal", "::ffff:7f00:1"],
    ["compatible", "::127.0.0.1"],
    ["translated", "::ffff:0:10.0.0.1"],
    ["NAT64", "64:ff9b::10.0.0.1"],
    ["local NAT64", "64:ff9b:1::8.8.8.8"],
    ["6to4", "2002:7f00:1::1"],
    ["no address", "example.com"],
    ["no address", ""],
    ["no address", "127.1"],
  ])("%s is local: %s", (_what, address) => expect(addressKind(address)).toBe("local"));

  it.each([
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:0ec2:0:0::254",
    "169.254.0.23",
    "fd00:c1::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
  ])("%s is a metadata service", (address) => expect(addressKind(address)).toBe("metadata"));
});

describe("isInRange", () => {
  it("knows both families, and matches nothing for an invalid range", () => {
    expect(isInRange("10.1.2.3", "10.1.0.0/16")).toBe(true);
    expect(isInRange("10.2.2.3", "10.1.0.0/16")).toBe(false);
    expect(isInRange("::ffff:10.1.2.3", "10.1.0.0/16")).toBe(true);
    expect(isInRange("fd00::1", "fd00::/8")).toBe(true);
    expect(isInRange("10.1.2.3", "fd00::/8")).toBe(false);
    expect(isInRange("10.1.2.3", "mcp")).toBe(false);
    expect(isInRange("mcp", "10.1.0.0/16")).toBe(false);
  });
});
