import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseReference } from '../../src/model/reference.ts';
import { publish as publishRequest } from '../../src/publish/publish.ts';
import { verify } from '../../src/publish/verify.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { makeFolder } from '../helpers/external-registry.ts';
import { makeAttestedIndex, makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import { findProgram, needProgram, run } from '../helpers/processes.ts';
import { requestOf, withPorts } from '../helpers/publishing.ts';
import { startRegistry } from '../helpers/registry.ts';
import { IMAGE_NAME, layLayout } from '../oci-layout/fixture.ts';
import { withPeers } from './lane.ts';
import { makeHome } from './publish-command.ts';

const AMD64 = { os: 'linux', architecture: 'amd64' };
const ARM64 = { os: 'linux', architecture: 'arm64' };
const INTEL = makeImage('intel', { platform: AMD64, layerBytes: 4096 });
const ARM = makeImage('arm', { platform: ARM64, layerBytes: 4096 });
const BOTH = makeIndex([
  { manifest: INTEL, platform: AMD64 },
  { manifest: ARM, platform: ARM64 },
]);

type Writer = {
  readonly program: string;
  /** The words by which it writes an image of a registry to a layout, under the tag `1`. */
  readonly write: (source: string, folder: string) => readonly string[];
  /** How it names the image there, if not by that tag. */
  readonly named?: string;
};

const WRITERS: readonly Writer[] = [
  { program: 'crane', write: (source, folder) => ['pull', '--insecure', '--format=oci', source, folder], named: '' },
  {
    program: 'crane',
    write: (source, folder) => ['pull', '--insecure', '--format=oci', '--annotate-ref', source, folder],
  },
  {
    program: 'oras',
    write: (source, folder) => ['cp', '--from-plain-http', '--to-oci-layout', source, `${folder}:1`],
  },
  { program: 'regctl', write: (source, folder) => ['image', 'copy', source, `ocidir://${folder}:1`] },
  {
    program: 'skopeo',
    write: (source, folder) => [
      ...['--insecure-policy', 'copy', '--all', '--preserve-digests', '--src-tls-verify=false'],
      ...[`docker://${source}`, `oci:${folder}:1`],
    ],
  },
];

describe('layouts of ours and of others', () => {
  let home: Awaited<ReturnType<typeof makeFolder>>;
  let registry: RunningRegistry;
  let env: Readonly<Record<string, string>>;
  let folders = 0;
  beforeAll(async () => {
    home = await makeFolder();
    env = { HOME: await makeHome(home.path) };
    registry = await startRegistry();
    putBuilt(registry, 'acme/both', BOTH, '1');
    putBuilt(registry, 'acme/intel', INTEL, '1');
    // It speaks HTTP only to hosts that it was told of.
    const regctl = findProgram('regctl');
    const plain = ['registry', 'set', '--tls', 'disabled', '--skip-check', registry.host];
    if (regctl !== undefined) await run(regctl, plain, { env });
  });
  afterAll(async () => {
    await registry?.close();
    await home?.remove();
  });

  const folder = async (): Promise<string> => {
    folders += 1;
    const path = join(home.path, `layouts-${folders}`);
    await mkdir(path);
    return join(path, 'layout');
  };
  const call = async (program: string, ...args: readonly string[]): Promise<string> => {
    const done = await run(needProgram(program), args, { env });
    expect(done, `${program} ${args.join(' ')}\n${done.stderr}`).toMatchObject({ exitCode: 0 });
    return done.stdout;
  };
  const publish = async (target: string, ...sources: readonly string[]): Promise<string> => {
    const report = await withPorts({}, (ports, signal) => publishRequest(requestOf(target, sources), ports, signal), [
      registry,
    ]);
    return report.lists[0]?.index?.digest ?? 'no index';
  };
  const problems = (reference: string) =>
    withPorts(
      {},
      async (ports, signal) => (await verify(parseReference(reference), { deep: true }, ports, signal)).problems,
    );

  /** One that we have written. */
  const written = async (tag: string): Promise<string> => {
    const path = await folder();
    await publish(`oci:${path}:${tag}`, `${registry.host}/acme/both:1`);
    return path;
  };

  withPeers(['crane'], 'crane reads ours', () => {
    it('and pushes it whole', async () => {
      const path = await written('1');
      await call('crane', 'push', '--insecure', '--index', path, `${registry.host}/read/crane:1`);
      expect(await call('crane', 'validate', '--insecure', '--remote', `${registry.host}/read/crane:1`)).toContain(
        'PASS',
      );
      expect(registry.manifestOf('read/crane', BOTH.descriptor.digest)).toBeDefined();
    });
  });

  withPeers(['oras'], 'oras reads ours', () => {
    it('by its tag, and copies it to a registry', async () => {
      const path = await written('1');
      expect(await call('oras', 'manifest', 'fetch', '--oci-layout', `${path}:1`)).toBe(BOTH.bytes.toString());
      const target = `${registry.host}/read/oras:1`;
      await call('oras', 'cp', '--from-oci-layout', '--to-plain-http', `${path}:1`, target);
      expect(registry.tagOf('read/oras', '1')).toBe(BOTH.descriptor.digest);
    });
  });

  withPeers(['regctl'], 'regctl reads ours', () => {
    it('by its tag, and copies it to a registry', async () => {
      const path = await written('1');
      const raw = await call('regctl', 'manifest', 'get', '--format', 'raw-body', `ocidir://${path}:1`);
      expect(raw).toBe(BOTH.bytes.toString());
      expect(await call('regctl', 'tag', 'ls', `ocidir://${path}`)).toBe('1\n');
      await call('regctl', 'image', 'copy', `ocidir://${path}:1`, `${registry.host}/read/regctl:1`);
      expect(registry.tagOf('read/regctl', '1')).toBe(BOTH.descriptor.digest);
    });
  });

  withPeers(['skopeo'], 'skopeo reads ours', () => {
    it('by its tag, and copies it to a registry', async () => {
      const path = await written('1');
      expect(await call('skopeo', 'inspect', '--raw', `oci:${path}:1`)).toBe(BOTH.bytes.toString());
      const target = `docker://${registry.host}/read/skopeo:1`;
      const words = ['--insecure-policy', 'copy', '--all', '--dest-tls-verify=false', `oci:${path}:1`, target];
      await call('skopeo', ...words);
      expect(registry.tagOf('read/skopeo', '1')).toBe(BOTH.descriptor.digest);
    });
  });

  for (const [number, { program, write, named = ':1' }] of WRITERS.entries()) {
    withPeers([program], `a layout of ${program} (${number + 1})`, () => {
      it.each([
        ['an index', 'acme/both', BOTH],
        ['an image', 'acme/intel', INTEL],
      ] as const)('is a source: %s', async (kind, repository, built) => {
        const path = await folder();
        await call(program, ...write(`${registry.host}/${repository}:1`, path));
        const target = `written/${program}-${number}-${kind.slice(-5)}`;
        const digest = await publish(`${registry.host}/${target}:1`, `oci:${path}${named}`);
        if (built === BOTH) expect(digest).toBe(BOTH.descriptor.digest);
        expect(registry.manifestOf(target, INTEL.descriptor.digest)).toBeDefined();
        expect(await problems(`${registry.host}/${target}:1`)).toEqual([]);
      });

      it('is a target: what was there stays', async () => {
        const path = await folder();
        await call(program, ...write(`${registry.host}/acme/intel:1`, path));
        const digest = await publish(`oci:${path}:2`, `${registry.host}/acme/both:1`);
        expect(digest).toBe(BOTH.descriptor.digest);
        expect(await problems(`oci:${path}:2`)).toEqual([]);
        expect(await problems(`oci:${path}@${INTEL.descriptor.digest}`)).toEqual([]);
        if (named !== '') expect(await problems(`oci:${path}:1`)).toEqual([]);
      });
    });
  }

  it('what buildx leaves is a source, by the tag and without one', async () => {
    const path = await folder();
    const annotations = {
      [IMAGE_NAME]: 'docker.io/acme/app:1',
      'org.opencontainers.image.created': '2026-01-01T00:00:00Z',
    };
    const more = { mediaType: 'application/vnd.oci.image.index.v1+json' };
    await layLayout(path, [{ manifest: makeAttestedIndex(INTEL, AMD64), tag: '1', annotations }], more);
    for (const source of [`oci:${path}:1`, `oci:${path}`]) {
      const digest = await publish(`${registry.host}/written/buildx:1`, source);
      expect(digest).toBe(makeAttestedIndex(INTEL, AMD64).descriptor.digest);
    }
  });

  withPeers(['regctl'], 'a tag that we have moved', () => {
    it('is the new one for others, and the old one is no longer named', async () => {
      const path = await folder();
      await call('regctl', 'image', 'copy', `${registry.host}/acme/intel:1`, `ocidir://${path}:1`);
      await publish(`oci:${path}:1`, `${registry.host}/acme/both:1`);
      expect(await call('regctl', 'image', 'digest', `ocidir://${path}:1`)).toBe(`${BOTH.descriptor.digest}\n`);
    });
  });
});
