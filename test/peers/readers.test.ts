import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ExternalRegistry, makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import { needProgram, run } from '../helpers/processes.ts';
import { startProxy } from '../helpers/proxy.ts';
import { attestedSources, debianSources, type ImagePlatform, makeIndex, OCI_INDEX, type Source } from './images.ts';
import { withPeers } from './lane.ts';
import { makeHome, publish } from './publish-command.ts';
import { pushSource } from './registry-access.ts';

const PLAIN = { tag: 'plain', sources: debianSources() };
const ATTESTED = { tag: 'attested', sources: attestedSources() };

/** What others make of a list that was published here; each reads it in its own way from Debian's docker-registry. */
withPeers(['docker-registry'], 'a published list, read by', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let home: string;
  let registry: ExternalRegistry;
  beforeAll(async () => {
    folder = await makeFolder();
    home = await makeHome(folder.path);
    registry = await startDebianRegistry(folder.path);
    const proxy = await startProxy(registry.host, { refuseMounts: true });
    for (const { tag, sources } of [PLAIN, ATTESTED]) {
      for (const source of sources) await pushSource(registry.host, source);
      const references = sources.map((source) => `${proxy.host}/${source.repository}:${source.tag}`);
      const done = await publish(folder.path, [`${proxy.host}/debian/debian:${tag}`, ...references]);
      if (done.exitCode !== 0) throw new Error(`publish ended with ${done.exitCode}: ${done.stderr}`);
    }
    await proxy.stop();
  });
  afterAll(async () => {
    await registry?.stop();
    await folder.remove();
  });

  const read = async (program: string, ...args: readonly string[]) => {
    const done = await run(needProgram(program), args, { env: { HOME: home } });
    expect(done, `${program} ${args.join(' ')}\n${done.stderr}`).toMatchObject({ exitCode: 0 });
    return done.stdout;
  };
  const reference = (tag: string) => `${registry.host}/debian/debian:${tag}`;

  withPeers(['docker'], 'docker', () => {
    it.each([PLAIN, ATTESTED])('manifest inspect, $tag: the same children and platforms', async ({ tag, sources }) => {
      const shown = JSON.parse(await read('docker', 'manifest', 'inspect', '--insecure', reference(tag))) as Shown;
      expect(shown.mediaType).toBe(OCI_INDEX);
      expect(shown.manifests.map(({ digest, platform }) => ({ digest, platform }))).toEqual(listed(sources));
    });
  });

  withPeers(['crane'], 'crane', () => {
    it.each([PLAIN, ATTESTED])('manifest and digest, $tag: the same bytes', async ({ tag, sources }) => {
      const index = indexOf(sources);
      expect(await read('crane', 'manifest', reference(tag))).toBe(index.bytes.toString('utf8'));
      expect(await read('crane', 'digest', reference(tag))).toBe(`${index.digest}\n`);
    });

    it('validate: every layer unpacks to what its config says', async () => {
      expect(await read('crane', 'validate', '--remote', reference('plain'))).toContain('PASS');
    });

    it.each(PLAIN.sources.map((source) => [platformOf(source), source] as const))(
      'digest --platform %s: the image of that architecture',
      async (platform, source) => {
        const digest = await read('crane', 'digest', '--platform', platform, reference('plain'));
        expect(digest).toBe(`${source.document.digest}\n`);
      },
    );
  });

  withPeers(['regctl'], 'regctl', () => {
    it.each([PLAIN, ATTESTED])('manifest get and head, $tag: the same bytes', async ({ tag, sources }) => {
      const index = indexOf(sources);
      const host = ['--host', `reg=${registry.host},tls=disabled`];
      const body = await read('regctl', ...host, 'manifest', 'get', '--format', 'raw-body', reference(tag));
      expect(body).toBe(index.bytes.toString('utf8'));
      expect(await read('regctl', ...host, 'manifest', 'head', reference(tag))).toBe(`${index.digest}\n`);
    });
  });

  withPeers(['oras'], 'oras', () => {
    it.each([PLAIN, ATTESTED])('manifest fetch, $tag: the same descriptor', async ({ tag, sources }) => {
      const { digest, bytes } = indexOf(sources);
      const text = await read('oras', 'manifest', 'fetch', '--descriptor', '--plain-http', reference(tag));
      expect(JSON.parse(text)).toEqual({ mediaType: OCI_INDEX, digest, size: bytes.length });
    });
  });
});

type Shown = {
  readonly mediaType: string;
  readonly manifests: readonly { readonly digest: string; readonly platform: ImagePlatform }[];
};

function indexOf(sources: readonly Source[]) {
  return makeIndex(sources.flatMap(({ images }) => images.map(({ entry }) => entry)));
}

function listed(sources: readonly Source[]) {
  return sources.flatMap(({ images }) => images.map(({ entry: { digest, platform } }) => ({ digest, platform })));
}

function platformOf(source: Source): string {
  const { os, architecture, variant } = source.images[0]?.entry.platform ?? { os: '', architecture: '' };
  return [os, architecture, variant].filter((part) => part !== undefined).join('/');
}
