import { describe, expect, it } from 'vitest';
import type { ProfileChanges } from '../../src/registry-server/index.ts';
import { blobDigests, seedImage } from '../helpers/images.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { publishAt, published, timesEach, uploads } from './report.ts';

type Upload = NonNullable<ProfileChanges['upload']>;

const LOCATIONS: readonly (readonly [name: string, upload: Upload])[] = [
  ['relative, with a state in its query', { location: 'relative', state: '_stateHash' }],
  ['absolute, with a state in its query', { location: 'absolute', state: '_state' }],
  ['on another host, with a signature in its query', { location: 'otherHost', state: '_state' }],
];

describe('uploading', () => {
  it.each(LOCATIONS)('UPL-01: a Location that is %s keeps its query and gets the digest added', (_name, upload) =>
    withRegistry({ mount: { mode: 'ignore' }, upload }, async (registry) => {
      const image = seedImage(registry, 't/a', '1', { layers: 3 });
      published(registry, await publishAt(registry, 't/all:1', ['t/a:1']));
      expect(uploads(registry)).toEqual(timesEach(blobDigests(image), 1));
      for (const { query, listener } of requests(registry, 'uploadPut')) {
        const parameters = new URLSearchParams(query);
        expect(parameters.get(upload.state ?? '')).toMatch(/^[a-f0-9]{40}$/);
        expect(parameters.getAll('digest')).toHaveLength(1);
        expect(listener).toBe(upload.location === 'otherHost' ? 'storage' : 'registry');
        if (upload.location === 'otherHost') expect(parameters.get('X-Signature')).toMatch(/^[a-f0-9]{40}$/);
      }
    }),
  );
});
