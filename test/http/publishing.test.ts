import { describe, expect, it } from 'vitest';
import { publish } from '../../src/publish/publish.ts';
import { seedImage } from '../helpers/images.ts';
import { checkInvariants, publishTo, requestOf } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { withNames } from '../reports/names.ts';
import { steppingClock } from './fixture.ts';

const HOST = 'slow.example.test';

/** Time goes on for both sides when neither has anything to do. */
function clockOf() {
  return { ...steppingClock(), slept: [], advance: () => undefined };
}

describe('a registry that limits its rate', () => {
  it.each([
    ['one read a second, with Retry-After', { pull: { perSec: 1, retryAfter: 1 } }],
    ['one read a second, without', { pull: { perSec: 1, retryAfter: 0 } }],
    ['ten commits a second, with Retry-After', { commitPerSec: 10, retryAfter: 1 }],
    ['ten commits a second, without', { commitPerSec: 10, retryAfter: 0 }],
    ['ten requests a second of any kind', { allPerSec: 10, retryAfter: 1 }],
  ])('to %s is published to all the same', { timeout: 60_000 }, async (_what, limit) => {
    const clock = clockOf();
    await withRegistry({ options: { now: () => clock.epoch() } }, async (registry) => {
      const names = Array.from({ length: 8 }, (_, index) => `t/a${index}`);
      for (const name of names)
        seedImage(registry, name, '1', { platform: { os: 'linux', architecture: name.slice(2) } });
      registry.configure({ limit });
      const network = { hosts: { [HOST]: { plainHttp: true } } };
      await withNames({ reach: { [`${HOST}:80`]: registry.host }, network, clock }, async ({ ports }) => {
        const sources = names.map((name) => `${HOST}/${name}:1`);
        const report = await publish(requestOf(`${HOST}/t/all:1`, sources), ports, new AbortController().signal);
        checkInvariants(registry);
        expect(registry.tagOf('t/all', '1')).toBe(report.lists[0]?.index?.digest);
      });
    });
  });
});

describe('many uploads that fail at once', () => {
  it.each([
    ['that lets sessions be cancelled', '204'],
    ['that wants a right of its own for that', '401'],
  ] as const)(
    'end the run soon on a registry %s, and none waits for another',
    { timeout: 30_000 },
    async (_what, cancel) => {
      await withRegistry({ mount: { mode: 'ignore' }, upload: { cancel } }, async (registry) => {
        const names = Array.from({ length: 40 }, (_, index) => `t/a${index}`);
        for (const name of names) {
          seedImage(registry, name, '1', { platform: { os: 'linux', architecture: name.slice(2) } });
        }
        registry.addFault({
          operation: 'uploadPut',
          times: Number.POSITIVE_INFINITY,
          action: { kind: 'answer', status: 403, body: '{"errors":[{"code":"DENIED"}]}' },
        });
        const started = performance.now();
        const running = publishTo(
          registry,
          't/all:1',
          names.map((name) => `${name}:1`),
        );
        await expect(running).rejects.toThrow();
        expect(performance.now() - started).toBeLessThan(5_000);
        expect(requests(registry, 'uploadPut').length).toBeGreaterThan(20);
        if (cancel === '204') expect(registry.openSessions()).toBe(0);
        else expect(requests(registry, 'uploadDelete').length).toBeLessThan(10);
      });
    },
  );
});
