import { BlockList, isIP } from 'node:net';
import type { AddressClass } from '../../src/http/address.ts';

// What addresses are, said a second time: by node's own lists and by hand, not by the code that is tested.

function listOf(...ranges: readonly (readonly [prefix: string, bits: number])[]): BlockList {
  const list = new BlockList();
  for (const [prefix, bits] of ranges) list.addSubnet(prefix, bits, prefix.includes(':') ? 'ipv6' : 'ipv4');
  return list;
}

const FORBIDDEN = listOf(
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
  ['192.0.0.0', 24],
  ['224.0.0.0', 3],
  ['::', 128],
  ['fe80::', 10],
  ['ff00::', 8],
  ['fd00:ec2::', 32],
  ['fd20:ce::254', 128],
);
const LOOPBACK = listOf(['127.0.0.0', 8], ['::1', 128]);
const PRIVATE = listOf(
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['198.18.0.0', 15],
  ['fc00::', 7],
  ['fec0::', 10],
);

/** The class of an address that carries no other one inside. */
export function plainClass(address: string): AddressClass {
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
  if (FORBIDDEN.check(address, family)) return 'forbidden';
  if (LOOPBACK.check(address, family)) return 'loopback';
  return PRIVATE.check(address, family) ? 'private' : 'public';
}

/** The IPv4 address that an IPv6 one carries: mapped, translated, compatible, NAT64, 6to4, Teredo. */
export function carried(address: string): string | undefined {
  const bytes = bytesOf6(address);
  const starts = (...prefix: readonly number[]) => prefix.every((byte, index) => bytes[index] === byte);
  const zero = (from: number, to: number) => bytes.slice(from, to).every((byte) => byte === 0);
  const at = (start: number, flip = 0) =>
    bytes
      .slice(start, start + 4)
      .map((byte) => byte ^ flip)
      .join('.');
  if (zero(0, 10) && bytes[10] === 0xff && bytes[11] === 0xff) return at(12);
  if (zero(0, 8) && bytes[8] === 0xff && bytes[9] === 0xff && zero(10, 12)) return at(12);
  if (zero(0, 12)) return at(12);
  if (starts(0x00, 0x64, 0xff, 0x9b) && zero(4, 12)) return at(12);
  if (starts(0x20, 0x02)) return at(2);
  if (starts(0x20, 0x01) && zero(2, 4)) return at(12, 0xff);
  return undefined;
}

function bytesOf6(address: string): readonly number[] {
  const last = /[\d.]+$/.exec(address)?.[0] ?? '';
  const dotted = last.includes('.') ? last.split('.').map(Number) : undefined;
  const [a = 0, b = 0, c = 0, d = 0] = dotted ?? [];
  const hex = (high: number, low: number) => (high * 256 + low).toString(16);
  const text = dotted === undefined ? address : `${address.slice(0, -last.length)}${hex(a, b)}:${hex(c, d)}`;
  const [head = [], tail = []] = text.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return groups.map((group) => Number.parseInt(group, 16)).flatMap((group) => [group >> 8, group & 0xff]);
}

/** The class of any address. */
export function trueClass(address: string): AddressClass {
  const own = plainClass(address);
  if (isIP(address) === 4 || own !== 'public') return own;
  const inner = carried(address);
  return inner === undefined ? own : plainClass(inner);
}
