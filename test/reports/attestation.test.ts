import { describe, expect, it } from 'vitest';
import type { Descriptor } from '../../src/model/descriptor.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { blobsNamed, published, timesEach, uploads, withCase } from './report.ts';

type Attested = Descriptor & { readonly annotations?: Readonly<Record<string, string>> };

const isAttestation = ({ annotations }: Attested) =>
  annotations?.['vnd.docker.reference.type'] === 'attestation-manifest';

/** The entries of a source's index, as the registry has them. */
function entriesOf(registry: RunningRegistry, repository: string, tag: string): readonly Attested[] {
  const bytes = registry.manifestOf(repository, tag)?.bytes ?? Buffer.from('{}');
  return (JSON.parse(bytes.toString()) as { readonly manifests: readonly Attested[] }).manifests;
}

describe('attestations and nested indexes', () => {
  it('ATT-01: indexes of an image and its attestation are flattened, entries kept as they are, in-toto layers copied', () =>
    withCase('ATT-01', async ({ registry, run, expect: wanted }) => {
      const { mediaType, repository, entries } = published(registry, await run());
      expect(mediaType).toBe(wanted['mediaType']);
      expect(entries.map(({ digest }) => digest)).toEqual(wanted['children']);
      expect(entries).toEqual(['1-amd64', '1-arm64'].flatMap((tag) => entriesOf(registry, 't/app', tag)));
      const attestations = entries.filter(isAttestation);
      expect(attestations).toHaveLength(2);
      for (const { digest, platform, annotations } of attestations) {
        expect(platform).toEqual({ architecture: 'unknown', os: 'unknown' });
        expect(wanted['children']).toContain(annotations?.['vnd.docker.reference.digest']);
        for (const blob of blobsNamed(registry, repository, [digest]).kept) {
          expect(registry.hasBlob(repository, blob)).toBe(true);
        }
      }
    }));

  it('ATT-02: a list of one image is unwrapped and published beside a plain image', () =>
    withCase('ATT-02', async ({ registry, run, expect: wanted }) => {
      const { entries } = published(registry, await run());
      expect(entries).toHaveLength(Number(wanted['children']));
      const [only] = entriesOf(registry, 't/kan', '437');
      expect(entries.map(({ digest }) => digest)).toEqual([only?.digest, registry.tagOf('t/kan', '437-arm64')]);
      expect(entries.map(({ platform }) => platform?.architecture)).toEqual(['amd64', 'arm64']);
    }));

  it.each(['201', '202'])('ATT-05: all that the target reaches is in the target, with mounts answered %s', (mount) =>
    withCase('ATT-01', async ({ registry, run, script, expect: wanted }) => {
      registry.configure({ mount: { mode: mount === '201' ? 'exists' : 'ignore' } });
      const { repository, entries } = published(registry, await run(script.replace('/t/multi:', '/other/multi:')));
      expect(repository).toBe('other/multi');
      expect(entries.map(({ digest }) => digest)).toEqual(wanted['children']);
      const manifests = entries.map(({ digest }) => registry.manifestOf(repository, digest)?.digest);
      expect(manifests).toEqual(wanted['children']);
      const { kept } = blobsNamed(registry, repository, wanted['children'] as readonly string[]);
      for (const digest of kept) expect(registry.hasBlob(repository, digest), digest).toBe(true);
      expect(uploads(registry)).toEqual(mount === '201' ? {} : timesEach(kept, 1));
    }),
  );

  it('ATT-05: the same from the single manifests instead of the indexes', () =>
    withCase('ATT-01', async ({ registry, run, host, expect: wanted }) => {
      const at = `${host('reg.example.test')}/t`;
      const images = ['1-amd64', '1-arm64'].flatMap((tag) =>
        entriesOf(registry, 't/app', tag).filter((entry) => !isAttestation(entry)),
      );
      const sources = images.map(({ digest }) => `${at}/app@${digest}`).join(' ');
      const { repository, entries } = published(registry, await run(`manifest-publish publish ${at}/two:1 ${sources}`));
      expect(entries.map(({ digest }) => digest)).toEqual(images.map(({ digest }) => digest));
      for (const { digest } of entries) {
        expect(wanted['children']).toContain(digest);
        expect(registry.manifestOf(repository, digest)?.digest).toBe(digest);
      }
    }));
});
