import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { layerStream } from '../../bench/layers.ts';
import { judge } from '../../bench/outcome.ts';
import type { Task } from '../../bench/peers.ts';

const hash = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const CHILD = '{"schemaVersion":2}';
const BLOB = { digest: hash('blob'), size: 4 };
const TASK: Task = {
  host: 'h',
  tag: 'one',
  repository: 'debian/debian',
  images: [
    {
      repository: 'debian/amd64',
      platform: { os: 'linux', architecture: 'amd64' },
      digest: hash(CHILD),
      size: CHILD.length,
      blobs: [BLOB],
    },
  ],
};
const GOOD: Readonly<Record<string, string>> = {
  'manifests/one': list(hash(CHILD), 'amd64'),
  [`manifests/${hash(CHILD)}`]: CHILD,
  [`blobs/${BLOB.digest}`]: 'blob',
};

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function list(digest: string, architecture: string): string {
  return JSON.stringify({ manifests: [{ digest, platform: { os: 'linux', architecture } }] });
}

async function judged(
  content: Readonly<Record<string, string>>,
  exitCode: number | 'timeout' = 0,
  { task = TASK, withList = true }: { readonly task?: Task; readonly withList?: boolean } = {},
): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    const body = content[url.replace('/v2/debian/debian/', '')];
    response.writeHead(body === undefined ? 404 : 200, { 'content-length': String(body?.length ?? 0) }).end(body);
  }).listen(0, '127.0.0.1');
  stops.push(() => void server.close());
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const command = { seconds: 1, cpuSeconds: 1, peakRssBytes: 1, exitCode, output: 'an error' };
  const outcome = await judge(origin, task, command, withList);
  return outcome.kind === 'right' ? 'right' : outcome.why;
}

describe('judge', () => {
  it('calls a run right when the list, its children and their blobs are in the target', async () => {
    expect(await judged(GOOD)).toBe('right');
  });

  it.each([
    ['no list', { 'manifests/one': undefined }, 'no list at the target tag'],
    ['a child too few', { 'manifests/one': '{"manifests":[]}' }, '0 children instead of 1'],
    ['a strange child', { 'manifests/one': list(hash('x'), 'amd64') }, 'none of the sources'],
    ['a wrong platform', { 'manifests/one': list(hash(CHILD), 's390x') }, 'linux/s390x instead of linux/amd64'],
    ['a missing child', { [`manifests/${hash(CHILD)}`]: undefined }, 'is not in the target'],
    ['a changed child', { [`manifests/${hash(CHILD)}`]: '{}' }, 'has other bytes'],
    ['a missing blob', { [`blobs/${BLOB.digest}`]: undefined }, 'is not in the target'],
    ['a cut blob', { [`blobs/${BLOB.digest}`]: 'blo' }, 'has another size'],
  ])('finds %s', async (_, change: Record<string, string | undefined>, why) => {
    const content = Object.entries({ ...GOOD, ...change }).filter(([, body]) => body !== undefined);
    expect(await judged(Object.fromEntries(content) as Record<string, string>)).toContain(why);
  });

  it('wants attestations beside their images, with their blobs', async () => {
    const [image] = TASK.images;
    if (image === undefined) throw new Error('no image');
    const blob = { digest: hash('statement'), size: 9 };
    const attestation = { digest: hash('{}'), size: 2, indexSize: 1, blobs: [blob] };
    const task = { ...TASK, images: [{ ...image, attestation }] };
    const both = [
      { digest: hash(CHILD), platform: { os: 'linux', architecture: 'amd64' } },
      { digest: hash('{}'), platform: { os: 'unknown', architecture: 'unknown' } },
    ];
    const whole = {
      ...GOOD,
      'manifests/one': JSON.stringify({ manifests: both }),
      [`manifests/${hash('{}')}`]: '{}',
      [`blobs/${blob.digest}`]: 'statement',
    };
    expect(await judged(whole, 0, { task })).toBe('right');
    expect(await judged({ ...whole, 'manifests/one': GOOD['manifests/one'] ?? '' }, 0, { task })).toBe(
      '1 children instead of 2',
    );
    const { [`blobs/${blob.digest}`]: _, ...without } = whole;
    expect(await judged(without, 0, { task })).toContain('is not in the target');
  });

  it('does not look for a list where none can be made', async () => {
    const { 'manifests/one': _, ...copies } = GOOD;
    expect(await judged(copies, 0, { withList: false })).toBe('right');
    const { [`blobs/${BLOB.digest}`]: __, ...less } = copies;
    expect(await judged(less, 0, { withList: false })).toContain('is not in the target');
  });

  it('believes an exit code before the registry', async () => {
    expect(await judged(GOOD, 1)).toBe('exit 1: an error');
    expect(await judged(GOOD, 'timeout')).toBe('timed out');
  });
});

describe('layerStream', () => {
  it('is a tar.gz of the asked size that the seed decides', async () => {
    const [a, b, other] = await Promise.all(['x', 'x', 'y'].map((seed) => buffer(layerStream(seed, 100_000))));
    expect(a).toEqual(b);
    expect(a).not.toEqual(other);
    const tar = gunzipSync(a ?? Buffer.alloc(0));
    expect(tar.length % 512).toBe(0);
    expect(tar.subarray(0, 6).toString()).toBe('random');
    expect(Number.parseInt(tar.subarray(124, 135).toString(), 8)).toBe(100_000);
  });
});
