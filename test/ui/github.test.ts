import { describe, expect, test } from 'vitest';
import { buildxMetadata, githubCommand, githubOutputs, githubSummary } from '../../src/ui/render.ts';
import { expectGolden } from './golden.ts';
import { digest, LIST, MANY, REPORT, TARGET } from './samples.ts';

describe('step outputs', () => {
  test('name the index, its tags and its images', () => {
    const outputs = githubOutputs(REPORT);
    expect(outputs['digest']).toBe(digest('index'));
    expect(outputs['ref']).toBe(`${TARGET}@${digest('index')}`);
    expect(outputs['tags']?.split('\n')).toEqual(LIST.targets.map((target) => target.reference));
    expect(outputs['digests']?.split('\n')).toEqual([
      `linux/386=${digest('i386')}`,
      `linux/amd64=${digest('amd64')}`,
      `linux/arm/v5=${digest('armel')}`,
      `linux/arm64/v8=${digest('arm64v8')}`,
    ]);
    expect(JSON.parse(outputs['json'] ?? '')).toEqual(REPORT);
  });

  test('have a line for each list of several', () => {
    expect(githubOutputs(MANY)['digest']?.split('\n')).toHaveLength(2);
  });

  test('hold the metadata that buildx writes', () => {
    expect(buildxMetadata(REPORT)).toEqual({
      'containerimage.descriptor': { mediaType: LIST.index.mediaType, digest: digest('index'), size: 2113 },
      'containerimage.digest': digest('index'),
      'image.name': LIST.targets.map((target) => target.reference).join(','),
    });
  });
});

describe('a step summary', () => {
  test('shows digests first, then images, then blobs', () => {
    expectGolden('github-summary', githubSummary(REPORT));
    expectGolden('github-summary-many', githubSummary(MANY));
  });

  test('drops blobs, then images, to stay below what GitHub takes', () => {
    const lists = (count: number) => ({ ...REPORT, lists: Array.from({ length: count }, () => LIST) });
    for (const [count, blobs, images] of [
      [10, true, true],
      [700, false, true],
      [2000, false, false],
    ] as const) {
      const text = githubSummary(lists(count));
      expect(Buffer.byteLength(text)).toBeLessThan(1_000_000);
      expect(text.includes('| blob |'), `${count} lists, blobs`).toBe(blobs);
      expect(text.includes('| platform |'), `${count} lists, images`).toBe(images);
    }
    expect(githubSummary(lists(5_000))).toBe('5000 lists: too many to be shown here; see the report.\n');
  });
});

test('a runner command escapes what the runner unescapes', () => {
  expect(githubCommand('error', 'a: b, c', '100% of\nit')).toBe('::error title=a%3A b%2C c::100%25 of it\n');
});
