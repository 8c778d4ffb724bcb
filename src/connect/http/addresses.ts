import { isIP } from "node:net";

import ipaddr from "ipaddr.js";

export type AddressKind =
  | "public"
  /** Loopback, private, link-local, shared (CGNAT), multicast or reserved. */
  | "local"
  /** A cloud's metadata service, which hands out credentials. */
  | "metadata";

const METADATA: ReadonlySet<string> = new Set(
  [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.0.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fe80::a9fe:a9fe",
  ].map((address) => ipaddr.parse(address).toNormalizedString()),
);
const GLOBAL_UNICAST: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];
/** NAT64's well-known prefix; its other prefixes are local. */
const NAT64: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("64:ff9b::"), 96];

/**
 * Classifies an IP address. IPv4 inside IPv6 (mapped, translated, NAT64, 6to4) is classified by its
 * IPv4 address.
 * @param address - IPv4 or IPv6, without brackets; anything else is `"local"`.
 * @see https://www.iana.org/assignments/iana-ipv4-special-registry
 * @see https://www.iana.org/assignments/iana-ipv6-special-registry
 */
export function addressKind(address: string): AddressKind {
  const plain = address.replace(/%.*$/s, "");
  if (isIP(plain) === 0) return "local";
  const parsed = ipaddr.parse(plain);
  if (METADATA.has(parsed.toNormalizedString())) return "metadata";
  if (parsed instanceof ipaddr.IPv4) return parsed.range() === "unicast" ? "public" : "local";
  const embedded = embeddedIn(parsed);
  const inside = embedded === undefined ? undefined : addressKind(embedded.toString());
  if (inside === "metadata") return inside;
  // A network's own NAT64 prefix leads where that network says.
  if (inside !== undefined && (parsed.range() !== "rfc6052" || parsed.match(NAT64))) return inside;
  return parsed.range() === "unicast" && parsed.match(GLOBAL_UNICAST) ? "public" : "local";
}

/**
 * True when an address lies in a range such as `10.1.0.0/16`, or equals an address in any spelling.
 */
export function isInRange(address: string, range: string): boolean {
  if (isIP(address) === 0) return false;
  if (isIP(range) !== 0)
    return (
      ipaddr.process(address).toNormalizedString() === ipaddr.process(range).toNormalizedString()
    );
  if (!ipaddr.isValidCIDR(range)) return false;
  const [network, bits] = ipaddr.parseCIDR(range);
  const parsed = ipaddr.process(address);
  return parsed.kind() === network.kind() && parsed.match([network, bits] as never);
}

function embeddedIn(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray();
  const at = (start: number): ipaddr.IPv4 => new ipaddr.IPv4(bytes.slice(start, start + 4));
  switch (address.range()) {
    case "ipv4Mapped":
    case "rfc6145":
      return at(12);
    case "rfc6052":
      return at(12);
    case "6to4":
      return at(2);
    default:
      return undefined;
  }
}
