import { isIP, type LookupFunction } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { PublishError } from '../../src/errors.ts';
import { digestOf } from '../../src/model/digest.ts';
import { parseUrl } from '../../src/model/url.ts';
import { createRegistryClient } from '../../src/registry/remote.ts';
import { type BuiltManifest, makeImage, putBuilt, startRegistry } from '../../src/registry-server/index.ts';
import { basic, publishWith } from '../auth/fixture.ts';
import { type Client, client, closeAll, type RunningServer, serve } from '../http/fixture.ts';
import { makeRandom, type Random } from '../peers/random.ts';
import { type Ground, makeHost, mayConnect, type NamedHost } from './hosts.ts';
import { wantedInputs, wantedSeed } from './lane.ts';

const HOSTS = wantedInputs('MP_HOSTS', 2_000);
const SEED = wantedSeed();
const LIMIT = 120_000 + HOSTS * 20;

/** Hosts that one transport meets: it keeps a pool for each. */
const BATCH = 500;
const AT_ONCE = 16;

/** What the user typed, and where the resolver finds it. */
const REGISTRIES: Readonly<Record<Ground, readonly [host: string, address: string]>> = {
  public: ['registry.example.test', '203.0.113.7'],
  private: ['inside.example.test', '10.0.0.5'],
  loopback: ['here.example.test', '127.0.0.1'],
};

const WAYS = ['realm', 'redirect', 'location'] as const;
const DIGEST = digestOf(Buffer.from('bytes'));
const STOLEN = 'stolen.example.test';

/** How one registry names one host. */
type Case = { readonly way: (typeof WAYS)[number]; readonly host: NamedHost; readonly url: string };

afterEach(closeAll);

describe.each(['public', 'private', 'loopback'] as const)(
  'a registry at a %s address that names any host',
  (ground) => {
    it(
      `is never followed to a refused address, and no login goes to another origin (${HOSTS} hosts, seed ${SEED})`,
      async () => {
        const random = makeRandom(SEED ^ ground.length);
        const world = await makeWorld(ground);
        for (let done = 0; done < HOSTS / 3; done += BATCH) {
          const cases = Array.from({ length: Math.min(BATCH, HOSTS / 3 - done) }, (_, index) =>
            makeCase(random, done + index, world.registry),
          );
          await world.play(cases);
        }
        expect(world.offences).toEqual([]);
        // Or the rules would have been tested on nothing.
        expect(world.counts.connected).toBeGreaterThan(HOSTS / 60);
        expect(world.counts.refused).toBeGreaterThan(HOSTS / 60);
        expect(world.counts.asked).toBeGreaterThan(HOSTS / 60);
        expect(world.counts.loggedIn).toBeGreaterThan(0);
        expect(world.counts.stolen).toBeGreaterThan(0);
      },
      LIMIT,
    );
  },
);

describe('layers with urls', () => {
  it(`lead nowhere, whatever they name (${HOSTS / 10} hosts, seed ${SEED})`, async () => {
    const random = makeRandom(SEED);
    const registry = await startRegistry();
    const offences: string[] = [];
    try {
      for (let done = 0; done < HOSTS / 10; done += BATCH) {
        const urls = Array.from(
          { length: BATCH },
          (_, index) => `https://${makeHost(random, done + index).text}/layer`,
        );
        putBuilt(registry, 'source', withForeignLayers(urls), 'tag');
        await publishWith(
          async () => basic('user', 'password'),
          `${registry.host}/target-${done}:tag`,
          [`${registry.host}/source:tag`],
          {
            connectTo: (host, port) => {
              if (`${host}:${port}` !== registry.host) offences.push(host);
              return { host: '127.0.0.1', port: registry.host.split(':')[1] ?? '' };
            },
            lookup: (name, _options, callback) => {
              offences.push(name);
              callback(null, '203.0.113.9', 4);
            },
          },
        );
      }
    } finally {
      await registry.close();
    }
    expect(offences).toEqual([]);
  });
});

function makeCase(random: Random, number: number, registry: string): Case {
  const own = random.below(20) === 0;
  const host = own ? { text: registry } : makeHost(random, number);
  const user = random.below(12) === 0 ? random.pick(['user@', 'user:password@', ':x@']) : '';
  const port = random.pick(['', '', ':80', ':443', ':5001', ':8443']);
  const scheme = random.pick(['http', 'http', 'http', 'https', 'HTTP', 'ftp']);
  const slashes = random.below(16) === 0 ? random.pick([':/', ':\\\\', ':///', ':']) : '://';
  return { way: random.pick(WAYS), host, url: `${scheme}${slashes}${user}${host.text}${port}/named/${number}?x=1` };
}

type World = {
  readonly registry: string;
  readonly offences: string[];
  readonly counts: { connected: number; refused: number; asked: number; loggedIn: number; stolen: number };
  play(cases: readonly Case[]): Promise<void>;
};

/** One server is all there is: every connection is turned to it, so that nothing can reach a real address. */
async function makeWorld(ground: Ground): Promise<World> {
  const [registry, address] = REGISTRIES[ground];
  const offences: string[] = [];
  const counts = { connected: 0, refused: 0, asked: 0, loggedIn: 0, stolen: 0 };
  const resolved = new Map<string, readonly string[]>();
  const asked = new Map<string, number>();
  let cases: readonly Case[] = [];

  const server: RunningServer = await serve((request, response, seen) => {
    const { authorization, host } = seen.headers;
    const path = request.url ?? '';
    if (host === registry) {
      const { way, url } = cases[Number(/^\/v2\/r(\d+)\//.exec(path)?.[1])] ?? {};
      if (way === 'realm' && authorization === undefined) {
        response.writeHead(401, { 'www-authenticate': `Bearer realm="${encodeHeader(url)}",service="x"` }).end();
      } else if (authorization === undefined) response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      else if (way === 'redirect') response.writeHead(307, { location: encodeHeader(url) }).end();
      else if (way === 'location') response.writeHead(202, { location: encodeHeader(url) }).end();
      else response.writeHead(404).end();
      return;
    }
    // From here on it stands for whatever was named.
    counts.asked += 1;
    const way = cases[Number(/\/named\/(\d+)/.exec(path)?.[1]) % BATCH]?.way;
    if (host === STOLEN) counts.stolen += 1;
    if (authorization !== undefined) {
      if (way === 'realm' && host !== STOLEN) counts.loggedIn += 1;
      else offences.push(`a login was sent to ${host}${path} (${way})`);
    }
    if (way === 'realm' && host !== STOLEN) response.writeHead(307, { location: `http://${STOLEN}/x` }).end();
    else
      response
        .writeHead(401, { 'www-authenticate': 'Basic realm="y", Bearer realm="http://stolen.example.test/y"' })
        .end();
  });

  const lookup: LookupFunction = (name, options, callback) => {
    const answers = answersOf(name);
    const turn = asked.get(name) ?? 0;
    asked.set(name, turn + 1);
    const addresses = answers[Math.min(turn, answers.length - 1)] ?? [];
    resolved.set(name, addresses);
    const all = addresses.map((one) => ({ address: one, family: isIP(one) }));
    if (options.all === true) callback(null, all);
    else callback(null, all[0]?.address ?? '', all[0]?.family ?? 4);
  };

  function answersOf(name: string): readonly (readonly string[])[] {
    if (name === registry) return [[address]];
    if (name === STOLEN) return [['203.0.113.9']];
    const number = Number(/-(\d+)\.example\.test\.?$/.exec(name)?.[1]);
    return cases[number % BATCH]?.host.answers ?? [['203.0.113.9']];
  }

  const connectTo = (name: string, port: string) => {
    const place = { host: '127.0.0.1', port: String(server.port) };
    if (name === registry && port === '80') return place;
    const host = name.replace(/^\[|\]$/g, '');
    const addresses = isIP(host) === 0 ? resolved.get(name) : [host];
    if (addresses === undefined) offences.push(`connected to ${name}, which was not looked up`);
    for (const one of addresses ?? []) {
      if (!mayConnect(one, ground)) offences.push(`connected to ${name}, that is ${one}`);
    }
    if (/^(?:metadata(?:\.google\.internal)?)\.?$/.test(host)) offences.push(`connected to ${name}`);
    if (/(?:^|\.)localhost\.?$/.test(host) && ground !== 'loopback') offences.push(`connected to ${name}`);
    counts.connected += 1;
    return place;
  };

  async function playOne(transport: Client, { way, url }: Case, index: number): Promise<void> {
    const authorizer = createAuthorizer({
      transport,
      credentials: { lookup: async () => basic('user', 'password') },
      clock: transport.clock,
    });
    const registryClient = createRegistryClient({ host: registry, transport, authorizer, clock: transport.clock });
    const options = { signal: AbortSignal.timeout(20_000) };
    const repository = `r${index}`;
    const failure = await (way === 'location'
      ? registryClient
          .openUpload(repository, DIGEST, options)
          .then((session) => registryClient.upload(session, { digest: DIGEST, size: 5 }, Buffer.from('bytes'), options))
      : registryClient.getManifest(repository, 'tag', options)
    ).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure !== undefined && !(failure instanceof PublishError)) throw failure;
    if (failure?.code === 'ORIGIN_REFUSED') counts.refused += 1;
    else if (mustRefuse(encodeHeader(url), way === 'realm' ? undefined : `http://${registry}/`, ground))
      offences.push(`${url} (${way}) was not refused: ${failure?.message}`);
  }

  return {
    registry,
    offences,
    counts,
    async play(next) {
      cases = next;
      asked.clear();
      resolved.clear();
      const transport = client({ hosts: { [registry]: { plainHttp: true } }, lookup, connectTo, retries: 0 });
      const queue = [...next.entries()];
      const work = async () => {
        for (let item = queue.shift(); item !== undefined; item = queue.shift())
          await playOne(transport, item[1], item[0]);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      await transport.close();
    },
  };
}

/** Whether nothing but a refusal will do: a literal address, a user name, a scheme of its own. */
function mustRefuse(text: string, base: string | undefined, ground: Ground): boolean {
  const url = parseUrl(text, base === undefined ? undefined : new URL(base));
  if (url === undefined) return false;
  const { protocol, username, password, hostname } = url;
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '') return true;
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return isIP(host) !== 0 && !mayConnect(host, ground);
}

/** Headers are bytes, and come to the client as Latin-1; what is beyond that is sent as UTF-8. */
function encodeHeader(text = ''): string {
  return Buffer.from(text).toString('latin1');
}

function withForeignLayers(urls: readonly string[]): BuiltManifest {
  const image = makeImage('urls');
  const document = JSON.parse(image.bytes.toString()) as { layers: object[] };
  for (const [index, url] of urls.entries()) {
    document.layers.push({
      mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
      digest: digestOf(Buffer.from(`layer ${index}`)),
      size: 5,
      urls: [url],
    });
  }
  const bytes = Buffer.from(JSON.stringify(document));
  return { ...image, bytes, descriptor: { ...image.descriptor, digest: digestOf(bytes), size: bytes.length } };
}
