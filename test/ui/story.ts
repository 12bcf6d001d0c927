import type { PublishEvent } from '../../src/publish/events.ts';
import type { TrafficEvent } from '../../src/ui/tally.ts';
import { digest, PLAN, TARGET } from './samples.ts';

const layer = digest('l1');
const other = digest('l2');
const index = digest('index');

/** A run from end to end: mounts, a refusal that is streamed, a wait, a warning, a tag. */
export const STORY: readonly PublishEvent[] = [
  { kind: 'resolve.start', sources: 4, target: TARGET },
  { kind: 'resolve.source', source: 'public.ecr.aws/debian/i386:bullseye', digest: digest('i386'), images: 1 },
  PLAN,
  { kind: 'blob.start', digest: digest('l0'), size: 32_400_000 },
  { kind: 'blob.start', digest: layer, size: 31_350_000 },
  { kind: 'blob.start', digest: other, size: 29_100_000 },
  { kind: 'blob.done', digest: digest('l0'), size: 32_400_000, how: 'mounted', bytesSent: 0 },
  { kind: 'blob.refused', digest: layer, why: 'mount answered 202' },
  { kind: 'blob.progress', digest: layer, size: 31_350_000, sent: 0 },
  { kind: 'blob.progress', digest: layer, size: 31_350_000, sent: 15_000_000 },
];

export const REST: readonly PublishEvent[] = [
  { kind: 'blob.done', digest: layer, size: 31_350_000, how: 'copied', bytesSent: 31_350_000 },
  { kind: 'blob.done', digest: other, size: 29_100_000, how: 'present', bytesSent: 0 },
  { kind: 'manifest.done', digest: digest('i386'), manifest: 'pushed' },
  { kind: 'manifest.done', digest: digest('amd64'), manifest: 'present' },
  { kind: 'warning', text: 'the registry says: "::error::this repository moves soon"' },
  { kind: 'warning', text: 'the registry says: "::error::this repository moves soon"' },
  { kind: 'tag.done', reference: TARGET, digest: index, action: 'updated' },
];

export const RETRY: TrafficEvent = { kind: 'retry', host: 'docker.io', reason: '429', waitMilliseconds: 12_000 };

export const REQUEST: TrafficEvent = {
  kind: 'request',
  method: 'PUT',
  url: 'https://user:pa55@host.test/v2/a/blobs/uploads/1?_state=s3cret&digest=x#y',
  status: 201,
  failure: undefined,
  milliseconds: 12.4,
  bytesSent: 1470,
  send: 2,
};
