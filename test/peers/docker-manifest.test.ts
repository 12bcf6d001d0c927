import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ExternalRegistry, makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import { blob, OCI_INDEX } from './images.ts';
import { withPeers } from './lane.ts';
import { type Client, DOCKER, makeClient, play, type Shown } from './manifest-clients.ts';
import { DOCKER_LIST } from './manifest-images.ts';
import { type Input, makeInputs } from './manifest-inputs.ts';
import { getManifest, missingIn, pushSource } from './registry-access.ts';

const INPUTS = makeInputs(3);

/** What one client showed and what it left in the registry. */
type Outcome = { readonly shown: readonly Shown[]; readonly list: List; readonly words: string };

type List = { readonly status: number; readonly mediaType: string; readonly text: string; readonly digest: string };

/** The same words typed after `docker manifest` and after `manifest-publish`, at Debian's docker-registry. */
withPeers([DOCKER, 'docker-registry'], 'docker manifest and ours show, print and push the same', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let registry: ExternalRegistry;
  beforeAll(async () => {
    folder = await makeFolder();
    registry = await startDebianRegistry(folder.path);
    await Promise.all(
      INPUTS.map(async ({ sources }) => {
        for (const source of sources) await pushSource(registry.host, source);
      }),
    );
  });
  afterAll(async () => {
    await registry?.stop();
    await folder.remove();
  });

  const perform = async (name: Client['name'], input: Input): Promise<Outcome> => {
    const client = await makeClient(name, folder.path);
    const list = input.list[name];
    const played = await play(client, input.commands, { host: registry.host, list });
    return { ...played, list: await readList(registry.host, list) };
  };

  it('for forty inputs at least', () => {
    expect(INPUTS.length).toBeGreaterThanOrEqual(40);
  });

  it.concurrent.each(INPUTS)('$name', async (input: Input) => {
    // Ours goes first: docker's run would bring all that is needed into the repository.
    const ours = await perform('ours', input);
    const images = input.sources.flatMap((source) => source.images);
    const [repository = ''] = input.list.ours.split(':');
    expect(await missingIn(registry.host, repository, images), ours.words).toEqual([]);

    const docker = await perform('docker', input);
    expect(docker.list.status, docker.words).toBe(200);
    const { shown, list } = expectedOf(input, docker);
    expect(ours.shown, ours.words).toEqual(shown);
    expect(ours.list).toEqual(list);
  });
});

/** What ours is to do where docker did this. */
function expectedOf(input: Input, docker: Outcome): Omit<Outcome, 'words'> {
  const [first, ...others] = input.families;
  // docker lets the first image decide and writes a Docker list of OCI images, which no specification knows.
  if (first !== 'docker' || others.every((family) => family === 'docker')) return docker;
  const text = docker.list.text.replace(DOCKER_LIST, OCI_INDEX);
  const { digest } = blob(Buffer.from(text));
  const shown = docker.shown.map((one) => ({ ...one, stdout: one.stdout.replace(docker.list.digest, digest) }));
  return { shown, list: { ...docker.list, mediaType: OCI_INDEX, text, digest } };
}

async function readList(host: string, list: string): Promise<List> {
  const [repository = '', tag = 'latest'] = list.split(':');
  const { status, headers, body } = await getManifest(host, repository, tag);
  const mediaType = String(headers['content-type']);
  return { status, mediaType, text: body.toString('utf8'), digest: blob(body).digest };
}
