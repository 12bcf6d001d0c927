import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ExternalRegistry, makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import { type Gate, startGate } from '../reliability/gate.ts';
import { type Boundary, boundariesOf, killAt } from '../reliability/kill.ts';
import { blob, debianSources, imageAround, makeIndex, noise } from './images.ts';
import { withPeers } from './lane.ts';
import { ask, digestOfTag, missingIn, pushBlob, pushManifest, pushSource } from './registry-access.ts';

const ALL = process.env['MP_KILLS'] === 'all';
/** Of each case's requests, with both signals on both sides of the tag's PUT among them. */
const SAMPLE = 7;
const TAG = 'bullseye';
const SOURCES = debianSources();
const IMAGES = SOURCES.flatMap((source) => source.images);
const LIST = makeIndex(IMAGES.map(({ entry }) => entry)).digest;
const BLOBS = IMAGES.flatMap(({ blobs }) => blobs.map(({ digest }) => digest));

/** What the embedded registry is asked in test/reliability, asked of a registry that others wrote. */
withPeers(['docker-registry'], "Debian's docker-registry", () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let registry: ExternalRegistry;
  let targets = 0;
  beforeAll(async () => {
    folder = await makeFolder();
    registry = await startDebianRegistry(folder.path);
    for (const source of SOURCES) await pushSource(registry.host, source);
  });
  afterAll(async () => {
    await registry?.stop();
    await folder.remove();
  });

  describe.each([
    ['mounts that work', false, 106],
    ['mounts that are refused', true, 178],
  ] as const)('with %s', (_, refuseMounts, requests) => {
    const boundaries = boundariesOf(requests, ALL ? 'all' : SAMPLE);
    const timeout = 60_000 + boundaries.length * 15_000;

    it(`a publish ended at any of its requests is finished by the same command (${boundaries.length} ends)`, {
      timeout,
    }, async () => {
      const gate = await startGate(registry.host, { refuseMounts });
      const problems: string[] = [];
      try {
        for (const boundary of boundaries) problems.push(...(await endAndFinish(boundary, gate)));
      } finally {
        await gate.stop();
      }
      expect(problems.join('\n')).toBe('');
    });
  });

  /** Into a repository of its own, whose tag holds something else before. */
  async function endAndFinish(boundary: Boundary, gate: Gate): Promise<readonly string[]> {
    targets += 1;
    const repository = `debian/ended-${targets}`;
    const { host } = registry;
    const layer = blob(Buffer.concat([...noise('before', 2048)]));
    const before = imageAround({ architecture: 'amd64', os: 'linux' }, { ...layer, size: layer.bytes.length });
    for (const { digest, bytes } of [layer, ...before.blobs]) await pushBlob(host, repository, digest, bytes);
    await pushManifest(host, repository, TAG, before.entry.mediaType, before.manifest.bytes);
    const names = [repository, ...SOURCES.map((source) => source.repository)];
    return killAt(boundary, {
      gate,
      folder: folder.path,
      args: names.map((name) => `${gate.host}/${name}:${TAG}`),
      repository,
      tag: TAG,
      old: before.manifest.digest,
      list: LIST,
      held: () => tagIn(host, repository),
      blobs: async () => {
        const seen = await Promise.all(
          BLOBS.map(
            async (digest) => [digest, (await ask(host, 'HEAD', `/v2/${repository}/blobs/${digest}`)).status] as const,
          ),
        );
        return new Set(seen.filter(([, status]) => status === 200).map(([digest]) => digest));
      },
      missing: () => missingIn(host, repository, IMAGES),
      sessions: () => undefined,
    });
  }
});

/**
 * What the tag holds. distribution 2.8 truncates a tag's file before it writes it (registry/storage/driver/filesystem,
 * `Writer` without `append`), so that who reads while a PUT is being carried out may be told that the tag is not there.
 */
async function tagIn(host: string, repository: string): Promise<string | undefined> {
  for (let looks = 1; ; looks += 1) {
    const held = await digestOfTag(host, repository, TAG);
    if (held !== undefined || looks === 5) return held;
    await new Promise((done) => setTimeout(done, 200));
  }
}
