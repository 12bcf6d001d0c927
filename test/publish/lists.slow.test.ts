import { describe, expect, it } from 'vitest';
import type { PublishEvent } from '../../src/publish/events.ts';
import { seedImage } from '../helpers/images.ts';
import { publishAll, requestOf } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';

const LISTS = 300;
const ARCHITECTURES = ['amd64', 'arm64', '386', 's390x', 'ppc64le', 'riscv64', 'mips64le', 'loong64'];

describe('300 lists of 8 images from 2,400 repositories', () => {
  it(
    'take no longer each in the end than in the beginning, and no more requests than one alone',
    { timeout: 300_000 },
    () =>
      withRegistry({}, async (registry) => {
        const lists = Array.from({ length: LISTS }, (_, index) => {
          const sources = ARCHITECTURES.map((architecture) => {
            const repository = `t/l${index}-${architecture}`;
            seedImage(registry, repository, '1', { platform: { os: 'linux', architecture } });
            return `${registry.host}/${repository}:1`;
          });
          return requestOf(`${registry.host}/x/l${index}:1`, sources);
        });
        const ended: number[] = [];
        const began = performance.now();
        const onEvent = (event: PublishEvent): void => {
          if (event.kind === 'list.done') ended.push(performance.now() - began);
        };
        const report = await publishAll([registry], lists, { onEvent });
        expect(ended).toHaveLength(LISTS);
        const half = ended[LISTS / 2 - 1] ?? 0;
        const whole = ended.at(-1) ?? 0;
        expect(whole - half).toBeLessThan(half * 2);
        // 8 sources, 8 configs, a tag, 9 manifests; each blob is mounted and looked at.
        const mounts = requests(registry, 'mount').length;
        expect(registry.journal).toHaveLength(LISTS * 26 + mounts * 2);
        expect(report.totals.blobs.mounted).toBe(mounts);
      }),
  );
});
