import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classifyAddress, isInRange } from '../../src/http/address.ts';
import { createEndpoints } from '../../src/http/endpoint.ts';
import { checkNamedUrl, originRefused, type Reach, reachOf, refusedAddress } from '../../src/http/origin.ts';

describe('ranges of addresses', () => {
  it.each([
    ['198.17.255.255', 'public'],
    ['198.18.0.0', 'private'],
    ['198.19.255.255', 'private'],
    ['198.20.0.0', 'public'],
    ['fec0::1', 'private'],
    ['feff:ffff::1', 'private'],
    ['168.63.129.17', 'public'],
    ['100.100.100.201', 'private'],
    ['192.0.1.1', 'public'],
    ['223.255.255.255', 'public'],
    ['239.255.255.255', 'forbidden'],
  ] as const)('%s is %s', (address, kind) => {
    expect(classifyAddress(address)).toBe(kind);
  });

  it.each([
    ['168.63.129.16', 'forbidden'],
    ['168.63.129.17', 'public'],
    ['192.0.0.192', 'forbidden'],
    ['192.0.1.192', 'public'],
    ['100.100.100.200', 'forbidden'],
    ['100.100.100.201', 'private'],
  ] as const)('%s is %s to its last bit in every IPv6 form that carries it', (address, kind) => {
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
    const hex = (high: number, low: number, flip = 0) => ((high * 256 + low) ^ flip).toString(16);
    const forms = [
      `::ffff:${address}`,
      `::ffff:0:${address}`,
      `::${address}`,
      `64:ff9b::${address}`,
      `2002:${hex(a, b)}:${hex(c, d)}::1`,
      `2001:0:4136:e378:8000:63bf:${hex(a, b, 0xffff)}:${hex(c, d, 0xffff)}`,
    ];
    for (const form of forms) expect(classifyAddress(form), form).toBe(kind);
  });

  it('what a network translates for itself is its own, or worse', () => {
    expect(classifyAddress('64:ff9b:1::8.8.8.8')).toBe('private');
    expect(classifyAddress('64:ff9b:1::10.0.0.1')).toBe('private');
    expect(classifyAddress('64:ff9b:1::127.0.0.1')).toBe('loopback');
    expect(classifyAddress('64:ff9b:1::169.254.169.254')).toBe('forbidden');
  });

  it.each(['x[::1]', '1[::2]', '[1::]2', '[::1]x', '[::1', '::1]', '[127.0.0.1', 'fe80::1%a\nb'])(
    '%j is no address',
    (text) => {
      expect(classifyAddress(text)).toBeUndefined();
    },
  );
});

describe('whether an address lies in a range', () => {
  it.each([
    ['10.1.2.3', '10.0.0.0', 8, true],
    ['11.0.0.0', '10.0.0.0', 8, false],
    ['10.1.2.3', '10.1.2.3', 32, true],
    ['10.1.2.4', '10.1.2.3', 32, false],
    ['203.0.113.7', '0.0.0.0', 0, true],
    ['192.168.129.1', '192.168.128.0', 17, true],
    ['192.168.127.1', '192.168.128.0', 17, false],
    ['2001:db8::1', '2001:db8::', 32, true],
    ['2001:db9::1', '2001:db8::', 32, false],
    ['2001:db8::1', '2001:db8::1', 128, true],
    ['2001:db8::2', '2001:db8::1', 128, false],
    // The families are apart, but for the IPv6 form that is an IPv4 address.
    ['::1', '0.0.0.0', 0, false],
    ['10.0.0.1', '::', 0, false],
    ['::ffff:10.1.2.3', '10.0.0.0', 8, true],
    ['::ffff:a01:203', '10.0.0.0', 8, true],
    ['::ffff:11.1.2.3', '10.0.0.0', 8, false],
    ['::fffe:10.1.2.3', '10.0.0.0', 8, false],
    ['::ffff:1:10.1.2.3', '10.0.0.0', 8, false],
    ['10.1.2.3', '::ffff:10.0.0.0', 104, true],
    ['10.1.2.3', '::ffff:10.1.2.3', 128, true],
    ['10.1.2.4', '::ffff:10.1.2.3', 128, false],
    ['11.1.2.3', '::ffff:10.0.0.0', 104, false],
    ['11.1.2.3', '::ffff:0:0', 96, true],
    ['::ffff:11.1.2.3', '::ffff:0:0', 96, true],
    ['2001:db8::1', '::ffff:0:0', 96, false],
    // A shorter prefix means more than IPv4 and stays IPv6, which no IPv4 address is.
    ['11.1.2.3', '::ffff:0:0', 95, false],
    ['registry.example.test', '0.0.0.0', 0, false],
    ['10.1.2.3', 'registry.example.test', 0, false],
    ['registry.example.test', 'registry.example.test', 0, false],
  ] as const)('%s in %s/%i: %s', (address, prefix, bits, within) => {
    expect(isInRange(address, prefix, bits)).toBe(within);
  });

  it('is what the first bits say, for IPv4', () => {
    const numberOf = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV4(), fc.integer({ min: 0, max: 32 }), (address, prefix, bits) => {
        const block = 2 ** (32 - bits);
        const same = Math.floor(numberOf(address) / block) === Math.floor(numberOf(prefix) / block);
        expect(isInRange(address, prefix, bits)).toBe(same);
        expect(isInRange(`::ffff:${address}`, prefix, bits)).toBe(same);
      }),
    );
  });
});

const REACHES: readonly Reach[] = ['public', 'private', 'loopback', 'private and loopback'];

describe('what a registry may name', () => {
  it('lies where that registry has been found to lie, and on the internet always', () => {
    const samples = { public: '203.0.113.7', private: '10.0.0.1', loopback: '127.0.0.1', forbidden: '169.254.0.1' };
    const allowed = (reach: Reach) =>
      Object.entries(samples)
        .filter(([, address]) => refusedAddress(address, reach) === undefined)
        .map(([kind]) => kind);
    expect(REACHES.map(allowed)).toEqual([
      ['public'],
      ['public', 'private'],
      ['public', 'loopback'],
      ['public', 'private', 'loopback'],
    ]);
  });

  it('is decided by all kinds of addresses that the registry was found at', () => {
    const reach = (...kinds: readonly ('public' | 'private' | 'loopback')[]) => {
      const endpoint = createEndpoints({}).of('registry.example.test');
      for (const kind of kinds) endpoint.foundAt(kind);
      return reachOf(endpoint);
    };
    expect(reach()).toBe('public');
    expect(reach('public')).toBe('public');
    expect(reach('private')).toBe('private');
    expect(reach('public', 'private')).toBe('private');
    expect(reach('loopback')).toBe('loopback');
    expect(reach('private', 'loopback')).toBe('private and loopback');
    expect(reachOf(createEndpoints({}).of('10.0.0.1'))).toBe('private');
    expect(reachOf(createEndpoints({}).of('localhost:5000'))).toBe('loopback');
  });

  it.each([
    ['registry.example.test', 'public', 'registry.example.test is not an IP address'],
    ['169.254.169.254', 'private and loopback', '169.254.169.254 is a link-local, metadata or reserved address'],
    ['10.0.0.1', 'public', '10.0.0.1 is a private address'],
    ['127.0.0.1', 'private', '127.0.0.1 is a loopback address'],
  ] as const)('%s is refused with its reason where the registry is %s', (address, reach, why) => {
    expect(refusedAddress(address, reach)).toBe(why);
  });

  it.each([
    ['ftp://cdn.example.test/', 'ftp: is not spoken here'],
    ['https://user@cdn.example.test/', 'it carries a user name'],
    ['https://:password@cdn.example.test/', 'it carries a user name'],
    ['http://cdn.example.test/', 'it leads from https to http'],
    ['https://10.0.0.1/', '10.0.0.1 is a private address'],
    ['https://localhost/', 'localhost is a loopback address'],
    ['https://metadata/', 'it is a metadata service'],
    ['https://metadata../', 'it is a metadata service'],
    ['https://metadata.google.internal/', 'it is a metadata service'],
    ['https://./', 'it is a metadata service'],
  ])('%s is refused with its reason', (url, why) => {
    const naming = { registry: 'registry.example.test', reach: 'public', scheme: 'https:' } as const;
    expect(() => checkNamedUrl(new URL(url), naming)).toThrow(`, which is refused: ${why}`);
  });

  it('is refused in words that name both hosts and tell whom to ask', () => {
    const error = originRefused(new URL('https://cdn.example.test:8443/x?y'), 'registry.example.test', 'because');
    expect(error.message).toBe('registry.example.test names https://cdn.example.test:8443, which is refused: because');
    expect(error).toMatchObject({ code: 'ORIGIN_REFUSED', registry: 'registry.example.test' });
    expect(error.hint).toMatch(/operator.*nothing was sent/);
  });
});
