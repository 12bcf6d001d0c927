import { isIP } from 'node:net';

/**
 * What lies behind an IP address, from a name on the internet's point of view. `forbidden`: link-local, metadata
 * services, unspecified, multicast and reserved: nothing a registry may ever point us at.
 */
export type AddressClass = 'public' | 'private' | 'loopback' | 'forbidden';

type Range = readonly [prefix: string, bits: number, kind: AddressClass];

/** @see https://www.iana.org/assignments/iana-ipv4-special-registry/ */
const IPV4: readonly Range[] = [
  ['0.0.0.0', 8, 'forbidden'],
  ['10.0.0.0', 8, 'private'],
  // Alibaba Cloud's metadata service, inside the carrier range that follows.
  ['100.100.100.200', 32, 'forbidden'],
  ['100.64.0.0', 10, 'private'],
  ['127.0.0.0', 8, 'loopback'],
  // Azure's host services.
  ['168.63.129.16', 32, 'forbidden'],
  ['169.254.0.0', 16, 'forbidden'],
  ['172.16.0.0', 12, 'private'],
  // Oracle Cloud's metadata service.
  ['192.0.0.0', 24, 'forbidden'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'private'],
  ['224.0.0.0', 4, 'forbidden'],
  ['240.0.0.0', 4, 'forbidden'],
];

/** @see https://www.iana.org/assignments/iana-ipv6-special-registry/ */
const IPV6: readonly Range[] = [
  ['::', 128, 'forbidden'],
  ['::1', 128, 'loopback'],
  // Metadata services of AWS and Google Cloud, inside the private range that follows.
  ['fd00:ec2::', 32, 'forbidden'],
  ['fd20:ce::254', 128, 'forbidden'],
  ['fc00::', 7, 'private'],
  ['fec0::', 10, 'private'],
  ['fe80::', 10, 'forbidden'],
  ['ff00::', 8, 'forbidden'],
];

/** Ranges whose addresses carry an IPv4 address, which is where a packet ends up, and where in it that stands. */
const CARRIERS: readonly (readonly [prefix: string, bits: number, group: number, inverted: boolean])[] = [
  ['::ffff:0:0', 96, 6, false],
  ['::ffff:0:0:0', 96, 6, false],
  ['::', 96, 6, false],
  ['64:ff9b::', 96, 6, false],
  // Networks may place the IPv4 address elsewhere in this one; the usual place is looked at.
  ['64:ff9b:1::', 48, 6, false],
  ['2002::', 16, 1, false],
  ['2001::', 32, 6, true],
];

/** Mildest first. */
const SEVERITY: readonly AddressClass[] = ['public', 'private', 'loopback', 'forbidden'];

/** The class of an IP address, with or without brackets and zone; undefined when the text is none. */
export function classifyAddress(text: string): AddressClass | undefined {
  const address = text.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '');
  const version = isIP(address);
  if (version === 4) return classOf(groupsOf4(address), IPV4, groupsOf4);
  if (version === 6) return classifyIPv6(groupsOf6(address));
  return undefined;
}

/** Whether the address lies in the range; one that carries an IPv4 address counts as that address. */
export function isInRange(address: string, prefix: string, bits: number): boolean {
  const plain = unmapped(address);
  const start = bits < 96 ? prefix : unmapped(prefix);
  const version = isIP(plain);
  if (version === 0 || version !== isIP(start)) return false;
  const groupsOf = version === 4 ? groupsOf4 : groupsOf6;
  return matches(groupsOf(plain), groupsOf(start), start === prefix ? bits : bits - 96);
}

/** `::ffff:1.2.3.4` in whatever spelling as `1.2.3.4` (CVE-2026-44492: a proxy exception that was passed by this). */
function unmapped(address: string): string {
  if (isIP(address) !== 6) return address;
  const groups = groupsOf6(address);
  if (!matches(groups, groupsOf6('::ffff:0:0'), 96)) return address;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
}

function classifyIPv6(groups: readonly number[]): AddressClass {
  const own = classOf(groups, IPV6, groupsOf6);
  const carrier = CARRIERS.find(([prefix, bits]) => matches(groups, groupsOf6(prefix), bits));
  if (carrier === undefined || own !== 'public') return own;
  const [prefix, , group, inverted] = carrier;
  const flip = inverted ? 0xffff : 0;
  const inner = [(groups[group] ?? 0) ^ flip, (groups[group + 1] ?? 0) ^ flip];
  const carried = classOf(inner, IPV4, groupsOf4);
  // The local-use NAT64 range leads into the user's own network whatever it carries.
  return prefix === '64:ff9b:1::' ? worse(carried, 'private') : carried;
}

function worse(one: AddressClass, other: AddressClass): AddressClass {
  return SEVERITY.indexOf(one) > SEVERITY.indexOf(other) ? one : other;
}

function classOf(
  groups: readonly number[],
  ranges: readonly Range[],
  groupsOf: (text: string) => readonly number[],
): AddressClass {
  return ranges.find(([prefix, bits]) => matches(groups, groupsOf(prefix), bits))?.[2] ?? 'public';
}

function matches(groups: readonly number[], prefix: readonly number[], bits: number): boolean {
  return groups.every((group, index) => {
    const left = Math.min(16, Math.max(0, bits - index * 16));
    const mask = (0xffff << (16 - left)) & 0xffff;
    return (group & mask) === ((prefix[index] ?? 0) & mask);
  });
}

function groupsOf4(address: string): readonly number[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

/** Eight groups of 16 bits. The platform's URL parser brings every spelling into one form first; it knows no zones. */
function groupsOf6(address: string): readonly number[] {
  const canonical = new URL(`http://[${address.replace(/%.*$/s, '')}]/`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const parse = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const before = parse(head);
  if (tail === undefined) return before;
  const after = parse(tail);
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}
