import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { classifyAddress } from '../../src/http/address.ts';
import { checkNamedUrl, type Reach, refusedAddress } from '../../src/http/origin.ts';
import { selfSigned } from './certificate.ts';
import { ask, client, closeAll, failure, resolver, serve, textOf } from './fixture.ts';

afterEach(closeAll);

describe('kinds of addresses', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['203.0.113.7', 'public'],
    ['172.32.0.1', 'public'],
    ['100.128.0.1', 'public'],
    ['2606:4700::1111', 'public'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'private'],
    ['fd12:3456::1', 'private'],
    ['fc00::1', 'private'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['::1', 'loopback'],
    ['[::1]', 'loopback'],
    ['0.0.0.0', 'forbidden'],
    ['0.1.2.3', 'forbidden'],
    ['169.254.169.254', 'forbidden'],
    ['100.100.100.200', 'forbidden'],
    ['168.63.129.16', 'forbidden'],
    ['192.0.0.192', 'forbidden'],
    ['224.0.0.1', 'forbidden'],
    ['255.255.255.255', 'forbidden'],
    ['::', 'forbidden'],
    ['fe80::1', 'forbidden'],
    ['fe80::1%eth0', 'forbidden'],
    ['febf::1', 'forbidden'],
    ['ff02::1', 'forbidden'],
    ['fd00:ec2::254', 'forbidden'],
    ['fd20:ce::254', 'forbidden'],
    // IPv4 in IPv6: mapped, translated, compatible, NAT64, 6to4, Teredo.
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['[::ffff:a9fe:a9fe]', 'forbidden'],
    ['::ffff:0:10.0.0.1', 'private'],
    ['::10.0.0.1', 'private'],
    ['64:ff9b::10.0.0.1', 'private'],
    ['64:ff9b::8.8.8.8', 'public'],
    ['64:ff9b:1::8.8.8.8', 'private'],
    ['2002:7f00:1::', 'loopback'],
    ['2002:a9fe:a9fe::1', 'forbidden'],
    ['2001:0:4136:e378:8000:63bf:f5ff:fffe', 'private'],
  ] as const)('%s is %s', (address, kind) => {
    expect(classifyAddress(address)).toBe(kind);
  });

  it.each(['', 'localhost', '1.2.3', '1.2.3.4.5', 'fe80', '[', '::g', '1.2.3.4/8'])('%j is none', (text) => {
    expect(classifyAddress(text)).toBeUndefined();
  });

  it('gives an IPv4 address the same kind in every IPv6 form that carries it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        for (const prefix of ['::ffff:', '::ffff:0:', '64:ff9b::']) {
          expect(classifyAddress(`${prefix}${address}`)).toBe(classifyAddress(address));
        }
      }),
    );
  });

  it('knows every IPv6 address in every spelling', () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const canonical = new URL(`http://[${address}]/`).hostname;
        expect(classifyAddress(address)).toBeDefined();
        expect(classifyAddress(address)).toBe(classifyAddress(canonical));
      }),
    );
  });
});

const naming = (reach: Reach, scheme = 'https:') => ({ registry: 'registry.example.test', reach, scheme });
const check = (url: string, reach: Reach, scheme?: string) => () => checkNamedUrl(new URL(url), naming(reach, scheme));

describe('addresses that a registry names', () => {
  it.each([
    'https://auth.example.test/token',
    'https://8.8.8.8/',
    'https://cdn.example.test:8443/blob?signed=1',
    'https://[2606:4700::1111]/',
  ])('may be %s', (url) => {
    expect(check(url, 'public')).not.toThrow();
  });

  it.each([
    'http://auth.example.test/token',
    'ftp://auth.example.test/',
    'file:///etc/passwd',
    'data:text/plain,x',
    'https://user@auth.example.test/',
    'https://user:password@auth.example.test/',
    'https://127.0.0.1/',
    'https://127.1/',
    'https://0x7f.1/',
    'https://2130706433/',
    'https://017700000001/',
    'https://127。0。0。1/',
    'https://127.0.0.1./',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://registry.localhost/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://10.0.0.1/',
    'https://192.168.0.1/',
    'https://100.64.0.1/',
    'https://[fd12::1]/',
    'https://169.254.169.254/latest/meta-data/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://[fe80::1]/',
    'https://[fd00:ec2::254]/',
    'https://0.0.0.0/',
    'https://[::]/',
    'https://224.0.0.1/',
    'https://metadata.google.internal/',
    'https://metadata.google.internal./',
  ])('may not be %s', (url) => {
    expect(check(url, 'public')).toThrow(expect.objectContaining({ code: 'ORIGIN_REFUSED', exitCode: 7 }));
  });

  it('never shows path or query, which may be secret', () => {
    try {
      check('https://10.0.0.1/path-secret?query=secret', 'public')();
      expect.unreachable();
    } catch (error) {
      expect(String(error)).not.toContain('secret');
      expect(String(error)).toContain('10.0.0.1');
    }
  });

  it('may lie where the registry itself lies, and nowhere else inside', () => {
    expect(check('https://10.0.0.1/', 'private')).not.toThrow();
    expect(check('https://127.0.0.1/', 'private')).toThrow();
    expect(check('https://127.0.0.1/', 'loopback')).not.toThrow();
    // What listens on this machine may be a tunnel to a registry elsewhere.
    expect(check('https://10.0.0.1/', 'loopback')).toThrow();
    expect(check('https://10.0.0.1/', 'private and loopback')).not.toThrow();
    expect(check('https://127.0.0.1/', 'private and loopback')).not.toThrow();
    for (const reach of ['public', 'private', 'loopback', 'private and loopback'] as const) {
      expect(check('https://169.254.169.254/', reach)).toThrow();
      expect(check('https://[fe80::1]/', reach)).toThrow();
    }
  });

  it('may be http only when they were named over http', () => {
    expect(check('http://8.8.8.8/', 'public', 'http:')).not.toThrow();
    expect(check('http://8.8.8.8/', 'public', 'https:')).toThrow();
  });

  it('never lead to a refused address, however a URL is spelled', () => {
    const spellings = (address: string) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
      const number = ((a * 256 + b) * 256 + c) * 256 + d;
      const hex = (part: number) => part.toString(16).padStart(2, '0');
      return [
        address,
        `${address}.`,
        String(number),
        `0x${number.toString(16)}`,
        `${a}.${(b * 256 + c) * 256 + d}`,
        `0x${a.toString(16)}.0${b.toString(8)}.${c * 256 + d}`,
        `[::ffff:${address}]`,
        `[::ffff:${hex(a)}${hex(b)}:${hex(c)}${hex(d)}]`,
        `[64:ff9b::${address}]`,
        `[2002:${hex(a)}${hex(b)}:${hex(c)}${hex(d)}::]`,
        address.replaceAll('.', '。'),
      ];
    };
    fc.assert(
      fc.property(fc.ipV4(), fc.constantFrom<Reach>('public', 'private', 'loopback'), (address, reach) => {
        if (refusedAddress(address, reach) === undefined) return;
        for (const host of spellings(address)) {
          expect(check(`https://${host}/x`, reach), host).toThrow(expect.objectContaining({ code: 'ORIGIN_REFUSED' }));
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('connecting to what was named', () => {
  const registry = 'registry.example.test';
  const certificate = selfSigned([registry, 'cdn.example.test', '127.0.0.1']);
  const addresses = (of: Readonly<Record<string, readonly string[]>>) => resolver((name) => of[name] ?? []);

  it.each([
    ['a private address', ['10.0.0.1']],
    ['a loopback address', ['127.0.0.1']],
    ['a metadata address', ['169.254.169.254']],
    ['a mapped address', ['::ffff:10.0.0.1']],
    ['a public and a private address', ['203.0.113.9', '10.0.0.1']],
  ])('refuses a name that resolves to %s before anything is sent', async (_what, resolved) => {
    const server = await serve((_request, response) => {
      response.writeHead(307, { location: 'https://cdn.example.test/blob' }).end();
    }, certificate);
    const lookup = addresses({ [registry]: ['203.0.113.7'], 'cdn.example.test': resolved });
    const connected: string[] = [];
    const transport = client({
      lookup,
      ca: [certificate.cert],
      connectTo: (host) => {
        connected.push(host);
        return { host: '127.0.0.1', port: String(server.port) };
      },
    });
    const error = await failure(ask(transport, registry, '/blob'));
    expect(error).toMatchObject({ code: 'ORIGIN_REFUSED', registry });
    expect(connected).toEqual([registry]);
    expect(transport.events.filter(({ kind }) => kind === 'request')).toHaveLength(2);
  });

  it('allows a private one when the registry was found at a private one', async () => {
    const server = await serve((request, response) => {
      if (request.headers.host === registry)
        response.writeHead(307, { location: 'https://cdn.example.test/blob' }).end();
      else response.end('bytes');
    }, certificate);
    const lookup = addresses({ [registry]: ['10.0.0.5'], 'cdn.example.test': ['10.0.0.6'] });
    const connectTo = () => ({ host: '127.0.0.1', port: String(server.port) });
    const transport = client({ lookup, connectTo, ca: [certificate.cert] });
    expect(await textOf(await ask(transport, registry, '/blob'))).toBe('bytes');
  });

  it('does not let a connection that one registry was allowed serve another', async () => {
    const all = selfSigned([registry, 'cdn.example.test', 'inside.example.test']);
    const server = await serve((request, response) => {
      if (request.headers.host === 'cdn.example.test') response.end('bytes');
      else response.writeHead(307, { location: 'https://cdn.example.test/blob' }).end();
    }, all);
    const lookup = addresses({
      [registry]: ['203.0.113.7'],
      'inside.example.test': ['10.0.0.5'],
      'cdn.example.test': ['10.0.0.6'],
    });
    const connectTo = () => ({ host: '127.0.0.1', port: String(server.port) });
    const transport = client({ lookup, connectTo, ca: [all.cert] });
    expect(await textOf(await ask(transport, 'inside.example.test', '/blob'))).toBe('bytes');
    expect((await failure(ask(transport, registry, '/blob'))).code).toBe('ORIGIN_REFUSED');
  });
});
