import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Certificate, makeCertificate } from '../helpers/certificate.ts';
import { type ExternalRegistry, makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import { debianSources, makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, publish } from './publish-command.ts';
import { digestOfTag, missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources().slice(0, 3);
const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));

/** A Go server that offers HTTP/2 too, and answers 400 to who speaks plain HTTP to it. */
withPeers(['docker-registry', 'openssl'], "Debian's docker-registry behind a certificate of its own", () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let certificate: Certificate;
  let inside: ExternalRegistry;
  let registry: ExternalRegistry;
  beforeAll(async () => {
    folder = await makeFolder();
    certificate = await makeCertificate(folder.path, 'registry');
    inside = await startDebianRegistry(folder.path);
    registry = await startDebianRegistry(folder.path, { tls: certificate });
    for (const source of SOURCES) await pushSource(inside.host, source);
  });
  afterAll(async () => {
    for (const part of [registry, inside]) await part?.stop();
    await folder.remove();
  });

  const publishTo = (repository: string, ...flags: readonly string[]) => {
    const references = SOURCES.map((source) => `${registry.host}/${source.repository}:${source.tag}`);
    return publish(folder.path, [`${registry.host}/${repository}:bullseye`, ...references, ...flags]);
  };

  it('is not published to when nobody vouches for the certificate', async () => {
    const done = await publishTo('debian/untrusted');
    expect(done, lastWords(done)).toMatchObject({ exitCode: 5, stdout: '' });
    expect(done.stderr).toContain('--ca-file');
    expect(await digestOfTag(inside.host, 'debian/untrusted', 'bullseye')).toBeUndefined();
  });

  it.each([
    ['with --ca-file', 'debian/trusted', () => ['--ca-file', certificate.file]],
    ['with --insecure', 'debian/insecure', () => ['--insecure']],
  ])('is published to %s', async (_, repository, flags) => {
    const done = await publishTo(repository, ...flags());
    expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${INDEX.digest}\n` });
    expect(await digestOfTag(inside.host, repository, 'bullseye')).toBe(INDEX.digest);
    expect(await missingIn(inside.host, repository, IMAGES)).toEqual([]);
  });
});
