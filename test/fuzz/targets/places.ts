import { BlockList, isIP } from 'node:net';
import { classifyAddress, isInRange } from '../../../src/http/address.ts';
import { canonicalHost, isLoopbackName } from '../../../src/http/endpoint.ts';
import { checkNamedUrl, type Reach } from '../../../src/http/origin.ts';
import { createProxyRule } from '../../../src/http/proxy.ts';
import { parseUrl } from '../../../src/model/url.ts';
import type { Random } from '../../peers/random.ts';
import { trueClass } from '../addresses.ts';
import { attempt, must, type Target } from '../target.ts';

const ADDRESSES = [
  '8.8.8.8',
  '10.1.2.3',
  '127.0.0.1',
  '169.254.169.254',
  '100.64.0.1',
  '::1',
  'fe80::1',
  'fd00:ec2::254',
  '2606:4700::1111',
  '::ffff:127.0.0.1',
  '64:ff9b::10.0.0.1',
  '2002:7f00:1::',
  '2001:0:4136:e378:8000:63bf:f5ff:fffe',
];

function makeAddress(random: Random): string {
  const byte = () => random.pick([0, 1, 10, 100, 127, 169, 172, 192, 198, 224, 255, 254, 168, random.below(256)]);
  const four = `${byte()}.${byte()}.${byte()}.${byte()}`;
  if (random.below(2) === 0) return four;
  const group = () =>
    random.pick([
      '0',
      '1',
      'ffff',
      'fe80',
      'fd00',
      'ec2',
      '2002',
      '2001',
      '64',
      'ff9b',
      'fc00',
      'a9fe',
      '7f00',
      'ff02',
    ]);
  return random.pick([
    () => `::ffff:${four}`,
    () => `64:ff9b::${four}`,
    () => `${group()}:${group()}::${group()}`,
    () => `${group()}::`,
    () => `::${group()}:${group()}`,
    () => Array.from({ length: 8 }, group).join(':'),
  ])();
}

const address: Target = {
  name: 'address',
  corpus: ADDRESSES,
  words: ['::', ':', '.', 'ffff:', '64:ff9b::', '2002:', '%eth0', '[', ']'],
  make: makeAddress,
  check(text) {
    const found = classifyAddress(text);
    if (isIP(text) === 0 || text.includes('%')) return found !== undefined;
    // The range of local NAT64 is private at least, wherever it leads; it is looked at in another test.
    const local = URL.canParse(`http://[${text}]/`) && new URL(`http://[${text}]/`).hostname.startsWith('[64:ff9b:1:');
    if (!local) must(found === trueClass(text), 'another class', found, trueClass(text));
    for (const [prefix, bits] of [
      ['10.0.0.0', 8],
      ['::', 0],
      ['fd00::', 8],
      ['0.0.0.0', 0],
      [text, 31],
    ] as const) {
      const list = new BlockList();
      list.addSubnet(prefix, bits, isIP(prefix) === 4 ? 'ipv4' : 'ipv6');
      const family = isIP(text) === 4 ? 'ipv4' : 'ipv6';
      const mapped = isIP(text) === 6 && /^\[::ffff:/.test(new URL(`http://[${text}]/`).hostname);
      if (!mapped && isIP(prefix) === isIP(text))
        must(isInRange(text, prefix, bits) === list.check(text, family), 'another range', prefix, bits);
    }
    return true;
  },
};

const REACHES: readonly Reach[] = ['public', 'private', 'loopback', 'private and loopback'];

const named: Target = {
  name: 'address that a registry names',
  corpus: [
    'https://auth.example.test/token',
    'https://0x7f.1/',
    'https://2130706433/',
    'https://127。0。0。1/',
    'https://localhost./',
    'https://user:password@x.test/',
    'http://x.test/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://metadata.google.internal./',
    'https://%31%32%37.0.0.1/',
    'https:127.0.0.1',
    'https:\\\\127.0.0.1\\x',
    'https://x.test:0/',
  ],
  words: [
    'https://',
    'http://',
    '@',
    ':',
    '.',
    '。',
    '．',
    '%2e',
    '0x',
    '0177',
    'localhost',
    '127.1',
    '[::1]',
    '/',
    ...ADDRESSES,
  ],
  make: (random) => {
    const text = makeAddress(random);
    const host = text.includes(':')
      ? `[${text}]`
      : random.pick([text, `${text}.`, text.replaceAll('.', '。'), text.toUpperCase()]);
    return `${random.pick(['https', 'http', 'HTTPS', 'ftp'])}://${random.pick(['', '', 'u@'])}${host}${random.pick(['', ':443', ':8443'])}/x`;
  },
  check(text) {
    const url = parseUrl(text);
    if (url === undefined) return false;
    let taken = false;
    for (const reach of REACHES) {
      const allowed = attempt(['ORIGIN_REFUSED'], () => {
        checkNamedUrl(url, { registry: 'x', reach, scheme: 'https:' });
        return true;
      });
      if (allowed === undefined) continue;
      taken = true;
      must(
        url.protocol === 'https:' && url.username === '' && url.password === '',
        'an address that is not plain https',
        url.href,
      );
      const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
      if (isIP(host) === 0) {
        must(reach.includes('loopback') || !isLoopbackName(host), 'a name of this machine', host, reach);
        must(!/^(?:metadata(?:\.google\.internal)?|)$/.test(host), 'a name of a metadata service', host);
        continue;
      }
      const kind = trueClass(host);
      must(kind === 'public' || reach.includes(kind), 'an address that is refused', host, kind, reach);
    }
    must(
      canonicalHost(canonicalHost(url.host)) === canonicalHost(url.host) ||
        /:(?:80|443)$/.test(canonicalHost(url.host)),
      'two names of one host',
    );
    return taken;
  },
};

const TARGETS = [
  'https://ghcr.io/',
  'https://a.b.example.com:8443/',
  'http://10.1.2.3/',
  'https://[fd00::1]/',
  'https://localhost/',
].map((text) => new URL(text));

const proxy: Target = {
  name: 'proxy',
  corpus: [
    'http://proxy.test:3128',
    'https://user:p%40ss@proxy.test',
    'proxy:8080',
    'socks5://x',
    'http://u:%zz@x',
    '[::1]:3128',
  ],
  words: ['http://', 'https://', 'socks5://', '@', ':', '%', '/'],
  check(text) {
    const rule = attempt(['CONFIG_INVALID'], () => createProxyRule({ HTTPS_PROXY: text, http_proxy: text }));
    if (rule === undefined) return false;
    for (const target of TARGETS) {
      const server = rule(target);
      must(
        server === undefined || /^https?:$/.test(server.url.protocol),
        'no proxy that is spoken to',
        server?.url.href,
      );
      must(
        server === undefined || (server.url.username === '' && server.url.password === ''),
        'a login in the address',
      );
      must(!JSON.stringify(server ?? null).includes('"Basic'), 'a login in JSON');
    }
    must(rule(new URL('https://127.0.0.1/')) === undefined, 'a proxy for this machine');
    return text !== '';
  },
};

const noProxy: Target = {
  name: 'exceptions of the proxy',
  corpus: [
    'localhost,127.0.0.1',
    '.example.com',
    '*.example.com:8443',
    '10.0.0.0/8,fd00::/8',
    '[fd00::1]:443',
    '*',
    'ghcr.io.',
    '::ffff:10.1.2.3',
    'fd00::%8,fe80::%eth0/8',
    ' , ',
  ],
  words: [',', '.example.com', '*', '/8', ':443', '10.0.0.0', 'fd00::', '[', ']', 'ghcr.io', '\u00e4.de'],
  check(text) {
    const rule = (exceptions: string) =>
      createProxyRule({ HTTPS_PROXY: 'p:1', HTTP_PROXY: 'p:1', NO_PROXY: exceptions });
    const [own, spaced, more, all] = [text, ` ${text.split(',').join(' , ')} `, `x.test,${text}`, `${text},*`].map(
      rule,
    );
    let taken = false;
    for (const target of TARGETS) {
      const direct = own?.(target) === undefined;
      taken ||= direct && target.hostname !== 'localhost';
      must(direct === (spaced?.(target) === undefined), 'spaces change an exception', target.href);
      must(direct === (more?.(target) === undefined), 'an exception changes another', target.href);
      must(all?.(target) === undefined, 'an exception of everything is none', target.href);
    }
    return taken;
  },
};

export const PLACE_TARGETS: readonly Target[] = [address, named, proxy, noProxy];
