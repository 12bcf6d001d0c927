import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { makeAttestedIndex, makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { makeArtifact, makeSignatures, tagOf } from '../publish/referrer-world.ts';
import { cli, emptyFolder, parsed } from './program.ts';

const folder = emptyFolder();
let registry: RunningRegistry;

const AMD64 = { os: 'linux', architecture: 'amd64' };
const ARM64 = { os: 'linux', architecture: 'arm64' };

/** An index of an attested index and an image: what a merge of merges leaves behind. */
beforeEach(async () => {
  registry = await startRegistry();
  const attested = makeAttestedIndex(makeImage('amd64', { platform: AMD64 }), AMD64);
  const nested = makeIndex([
    { manifest: attested },
    { manifest: makeImage('arm64', { platform: ARM64 }), platform: ARM64 },
  ]);
  putBuilt(registry, 't/nested', nested, '1');
});

afterEach(() => registry.close());

const nested = () => `${registry.host}/t/nested:1`;

describe('an index of indexes', () => {
  it('inspect --tree shows what stands below each, attestations with their image', async () => {
    const { stdout, stderr, exitCode } = await cli(folder, ['inspect', '--tree', nested()]);
    expect(exitCode, stderr).toBe(0);
    const [, first, below, last] = stdout.split('\n');
    expect(first).toMatch(/^├─ OCI index +sha256:[0-9a-f]{64} +2 manifests$/);
    expect(below).toMatch(/^│ {2}└─ linux\/amd64 .*\+ attestation$/);
    expect(last).toMatch(/^└─ linux\/arm64 /);
  });

  it('inspect --tree tells what is missing below, and --json has the whole tree', async () => {
    const tree = parsed(await cli(folder, ['inspect', '--tree', '--json', nested()]));
    expect(tree).toMatchObject({
      children: [
        { kind: 'index', children: [{ kind: 'image', platform: AMD64 }, { kind: 'attestation' }] },
        { kind: 'image', platform: ARM64 },
      ],
    });
    const [outer] = (tree as { children: { children?: { digest: string }[] }[] }).children;
    registry.deleteManifest('t/nested', outer?.children?.[0]?.digest ?? '');
    const { stdout, stderr } = await cli(folder, ['inspect', '--tree', nested()]);
    expect(stdout).toMatch(/^│ {2}└─ linux\/amd64 .*missing in the registry$/m);
    expect(stderr).toContain('1 of 4 manifests are missing: run manifest-publish verify ');
  });

  it('verify reads all of it, and finds what is missing at the bottom', async () => {
    const good = parsed(await cli(folder, ['verify', nested(), '--json']));
    expect(good).toMatchObject({ manifests: 5, problems: [] });
    const [outer] = (
      parsed(await cli(folder, ['inspect', '--tree', '--json', nested()])) as {
        children: { children?: { digest: string }[] }[];
      }
    ).children;
    const lost = outer?.children?.[0]?.digest ?? '';
    registry.deleteManifest('t/nested', lost);
    const { stdout, exitCode } = await cli(folder, ['verify', nested()]);
    expect(stdout).toContain(lost.slice(0, 19));
    expect(exitCode).toBe(6);
  });

  it('publish flattens it, with the attestation beside its image', async () => {
    const { stderr, exitCode } = await cli(folder, ['publish', `${registry.host}/t/app:1`, nested()]);
    expect(exitCode, stderr).toBe(0);
    const tree = parsed(await cli(folder, ['inspect', '--tree', '--json', `${registry.host}/t/app:1`]));
    expect(tree).toMatchObject({ children: [{ kind: 'image' }, { kind: 'attestation' }, { kind: 'image' }] });
  });
});

describe('what refers to an image', () => {
  it('comes along with --referrers all, and only then', async () => {
    const image = seedImage(registry, 't/signed', '1');
    const { digest } = image.descriptor;
    const sbom = makeArtifact('sbom', { subject: image.descriptor, artifactType: 'text/spdx' });
    putBuilt(registry, 't/signed', sbom);
    putBuilt(registry, 't/signed', makeSignatures(image, 'us'), `${tagOf(digest)}.sig`);
    const words = ['publish', `${registry.host}/t/app:1`, `${registry.host}/t/signed:1`];
    const without = await cli(folder, words);
    expect(without.exitCode, without.stderr).toBe(0);
    expect(registry.tags('t/app')).toEqual(['1']);
    const { stdout, stderr, exitCode } = await cli(folder, [...words, '--referrers', 'all']);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(without.stdout);
    expect(registry.tags('t/app')).toContain(`${tagOf(digest)}.sig`);
    expect(registry.manifestOf('t/app', sbom.descriptor.digest)).toBeDefined();
  });

  it('an artifact is shown with its type, and verified', async () => {
    putBuilt(
      registry,
      't/chart',
      makeArtifact('chart', { artifactType: 'application/vnd.cncf.helm.config.v1+json' }),
      '1',
    );
    const reference = `${registry.host}/t/chart:1`;
    const tree = await cli(folder, ['inspect', '--tree', '--json', reference]);
    expect(parsed(tree)).toMatchObject({
      children: [{ kind: 'artifact', artifactType: 'application/vnd.cncf.helm.config.v1+json' }],
    });
    const { stderr, exitCode } = await cli(folder, ['verify', '--deep', reference]);
    expect(exitCode, stderr).toBe(0);
  });
});
