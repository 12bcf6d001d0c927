import { describe, expect, it } from 'vitest';
import { networkSettings } from '../../src/cli/settings.ts';
import { publish } from '../../src/publish/publish.ts';
import type { JournalEntry } from '../../src/registry-server/index.ts';
import { blobDigests, seedImage } from '../helpers/images.ts';
import { checkInvariants, requestOf } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { failure, jumpingClock } from '../http/fixture.ts';
import { type NamedOptions, type NamedWorld, withNames } from './names.ts';
import { expectWords, program, publishAt, published } from './report.ts';

/** The settings that the command line makes of these flags for the host that is named first. */
function flagsFor(host: string, flags: { readonly insecure: boolean }): Pick<NamedOptions, 'network'> {
  return { network: { hosts: networkSettings({ 'plain-http': false, ...flags }, {}, {}, host).hosts } };
}

function publishNamed(host: string, { ports }: NamedWorld) {
  return publish(requestOf(`${host}/t/all:1`, [`${host}/t/a:1`]), ports, AbortSignal.timeout(15_000));
}

const HOST = 'plain.example.test';

describe('plain HTTP', () => {
  it.each([
    ['without a port: https is refused there, port 80 answers', HOST, [`${HOST}:443`, `${HOST}:80`]],
    ['with a port: https is not spoken there', `${HOST}:5000`, [`${HOST}:5000`]],
  ])('NET-01: --insecure tries https, then http, for a host %s', (_how, host, tried) =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1');
      const reach = { [tried.at(-1) ?? '']: registry.host };
      await withNames({ reach, ...flagsFor(host, { insecure: true }) }, async (world) => {
        const report = await publishNamed(host, world);
        checkInvariants(registry);
        expect(registry.tagOf('t/all', '1')).toBe(report.lists[0]?.index?.digest);
        expect(world.connected).toEqual(tried);
      });
    }),
  );

  it.each([
    [HOST, `${HOST}:443`, `${HOST}:80`],
    [`${HOST}:5000`, `${HOST}:5000`, `${HOST}:5000`],
  ])('NET-01: without --insecure no http is spoken to %s, and the error names the flag', (host, tried, real) =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1');
      const options = { reach: { [real]: registry.host }, ...flagsFor(host, { insecure: false }) };
      await withNames({ ...options, network: { ...options.network, retries: 0 } }, async (world) => {
        const error = await failure(publishNamed(host, world));
        expect(error.exitCode).toBe(5);
        expect(`${error.message} ${error.hint}`).toContain(host);
        expect(error.hint).toMatch(/--insecure|--plain-http/);
        expect(world.connected).toEqual([tried]);
      });
      expect(registry.journal).toEqual([]);
    }),
  );

  it('NET-01: localhost is spoken to by http without any flag', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1');
      const host = registry.host.replace('127.0.0.1', 'localhost');
      published(registry, await program([registry], ['publish', `${host}/t/all:1`, `${host}/t/a:1`]));
    }));
});

describe('limits', () => {
  const text = 'You have reached your pull rate limit. You may increase the limit by logging in.';
  const tooMany = {
    kind: 'answer',
    status: 429,
    headers: { 'Retry-After': '2', 'Content-Type': 'text/plain' },
    body: text,
  } as const;

  it.each(['manifestGet', 'mount', 'blobHead', 'uploadPut', 'manifestPut'] as const)(
    'NET-06: a %s that is answered 429 with Retry-After: 2 is asked again after two seconds, and the run goes on',
    async (operation) => {
      const clock = jumpingClock();
      await withRegistry({ options: { now: () => clock.epoch() } }, async (registry) => {
        const image = seedImage(registry, 't/a', '1');
        const [, lonely] = blobDigests(image);
        registry.configure({ mount: { byDigest: { [lonely ?? '']: 'ignore' } } });
        registry.addFault({ operation, action: tooMany });
        const network = { hosts: { [HOST]: { plainHttp: true } } };
        await withNames({ reach: { [`${HOST}:80`]: registry.host }, network, clock }, async (world) => {
          const report = await publishNamed(HOST, world);
          checkInvariants(registry);
          expect(registry.tagOf('t/all', '1')).toBe(report.lists[0]?.index?.digest);
          expect(report.totals.blobs).toEqual({ present: 0, mounted: 2, copied: 1, skipped: 0 });
        });
        // What is sent again goes to the same place; a blob into a new session.
        const placeOf = ({ path, query }: JournalEntry) => (operation === 'uploadPut' ? query : path + query);
        const asked = requests(registry, operation);
        const refused = asked.filter(({ status }) => status === 429);
        expect(refused).toHaveLength(1);
        const again = asked.filter((one) => one !== refused[0] && refused.some((it) => placeOf(it) === placeOf(one)));
        expect(again).toHaveLength(1);
        const waited = (again[0]?.startedAt ?? 0) - (refused[0]?.endedAt ?? 0);
        expect(waited).toBeGreaterThanOrEqual(1990);
        expect(waited).toBeLessThan(5000);
      });
    },
  );

  it('NET-06: when it ends in failure the text of a 429 is shown as text', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1');
      registry.addFault({ operation: 'manifestGet', times: Number.POSITIVE_INFINITY, action: tooMany });
      const finished = await publishAt(registry, 't/all:1', ['t/a:1'], { flags: ['--retries', '0'] });
      expectWords(finished.stderr, ['429', text, registry.host]);
      expect(finished.stderr).not.toMatch(/JSON|SyntaxError|Unexpected token/);
      expect({ stdout: finished.stdout, exitCode: finished.exitCode }).toEqual({ stdout: '', exitCode: 5 });
    }));
});
