import { isIP } from 'node:net';
import type { Random } from '../peers/random.ts';
import { plainClass, trueClass } from './addresses.ts';

/** A host as a registry may spell it, and where it leads. */
export type NamedHost = {
  readonly text: string;
  /** What a resolver says of it, one answer for each question, the last for all that follow; undefined for literals. */
  readonly answers?: readonly (readonly string[])[];
};

const BYTES = [0, 1, 10, 16, 31, 64, 100, 127, 168, 169, 172, 192, 198, 224, 240, 254, 255];

function makeIPv4(random: Random): string {
  const byte = () => (random.below(4) === 0 ? random.below(256) : random.pick(BYTES));
  const known = [
    '169.254.169.254',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '127.0.0.1',
    '10.0.0.1',
    '8.8.8.8',
  ];
  return random.below(4) === 0 ? random.pick(known) : `${byte()}.${byte()}.${byte()}.${byte()}`;
}

const IPV6 = [
  '::1',
  '::',
  'fe80::1',
  'febf::1',
  'fc00::1',
  'fd12::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  'ff02::1',
  '2606:4700::1111',
];

/** An address as resolvers answer it: plain, or an IPv4 one inside an IPv6 one. */
export function makeAnswer(random: Random): string {
  const four = makeIPv4(random);
  const [a = 0, b = 0, c = 0, d = 0] = four.split('.').map(Number);
  const hex = (high: number, low: number) => (high * 256 + low).toString(16);
  return random.pick([
    four,
    four,
    random.pick(IPV6),
    `::ffff:${four}`,
    `::ffff:${hex(a, b)}:${hex(c, d)}`,
    `64:ff9b::${four}`,
    `2002:${hex(a, b)}:${hex(c, d)}::1`,
    `::ffff:0:${four}`,
    `2001:0:0:0:0:0:${hex(a ^ 255, b ^ 255)}:${hex(c ^ 255, d ^ 255)}`,
  ]);
}

/** Ways to write one IPv4 address, all of which a URL takes for it. */
function spellings(four: string, random: Random): string {
  const [a = 0, b = 0, c = 0, d = 0] = four.split('.').map(Number);
  const number = ((a * 256 + b) * 256 + c) * 256 + d;
  const part = (value: number) => random.pick([String(value), `0x${value.toString(16)}`, `0${value.toString(8)}`]);
  return random.pick([
    four,
    `${four}.`,
    String(number),
    `0x${number.toString(16)}`,
    `0X${number.toString(16).toUpperCase()}`,
    `0${number.toString(8)}`,
    `${part(a)}.${part(b)}.${part(c)}.${part(d)}`,
    `${part(a)}.${part((b * 256 + c) * 256 + d)}`,
    `${part(a)}.${part(b)}.${part(c * 256 + d)}`,
    four.replaceAll('.', '\u3002'),
    four.replaceAll('.', '\uff0e'),
    four.replaceAll('.', '%2e'),
    [...four].map((character) => `%${character.charCodeAt(0).toString(16)}`).join(''),
    [...four].map((one) => (/\d/.test(one) ? String.fromCodePoint(0xff10 + Number(one)) : one)).join(''),
  ]);
}

const NAMES = ['cdn', 'a', 'STORAGE', 'xn--bcher-kva', 'b\u00fccher', 'metadata', 'localhost-not'];

/** A host by chance. `number` keeps names apart, so that resolvers can tell them. */
export function makeHost(random: Random, number: number): NamedHost {
  const kind = random.below(10);
  if (kind < 4) return { text: spellings(makeIPv4(random), random) };
  if (kind < 6) {
    const answer = makeAnswer(random);
    return { text: isIP(answer) === 6 ? `[${random.below(3) === 0 ? answer.toUpperCase() : answer}]` : answer };
  }
  if (kind === 6) {
    const text = random.pick([
      'localhost',
      'LOCALHOST.',
      'x.localhost',
      'metadata.google.internal',
      'Metadata',
      'localhost%2e',
    ]);
    return { text, answers: [['203.0.113.9']] };
  }
  const addresses = () => Array.from({ length: 1 + random.below(3) }, () => makeAnswer(random));
  const safe = ['203.0.113.9'];
  const answers = random.pick([[addresses()], [safe], [safe, addresses()], [safe, safe, addresses()]]);
  return { text: `${random.pick(NAMES)}-${number}.example.test${random.below(4) === 0 ? '.' : ''}`, answers };
}

/** Where the hosts of a registry lie that may be connected to. */
export type Ground = 'public' | 'private' | 'loopback';

/** Whether an address may be connected to that a registry on such ground has named, said a second time. */
export function mayConnect(address: string, ground: Ground): boolean {
  const kind = isIP(address) === 4 ? plainClass(address) : trueClass(address);
  return kind === 'public' || kind === ground;
}
