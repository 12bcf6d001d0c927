import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { countByKind, isWrite, type RecordingProxy, startProxy } from '../helpers/proxy.ts';
import { blob, OCI_INDEX } from './images.ts';
import { withPeers } from './lane.ts';
import { type Client, DOCKER, good } from './manifest-clients.ts';
import { arm, type Stage, startStage } from './manifest-stage.ts';
import { lastWords } from './publish-command.ts';
import { digestOfTag } from './registry-access.ts';

/** What people have asked of docker manifest; docs/coming-from-docker-manifest.md names these tests. */
withPeers([DOCKER, 'docker-registry'], 'ours does more than docker manifest:', () => {
  let stage: Stage;
  let recorder: RecordingProxy;
  let docker: Client;
  let ours: Client;
  beforeAll(async () => {
    stage = await startStage();
    recorder = await startProxy(stage.host);
  });
  afterAll(async () => {
    await recorder?.stop();
    await stage?.stop();
  });
  beforeEach(async () => {
    ({ docker, ours } = await stage.clients());
    recorder.forget();
  });

  const list = (name: string, client: Client) => `${stage.host}/${name}:${client.name}`;
  const read = (name: string, client: Client) => stage.read(`${name}:${client.name}`);

  it('create --replace starts afresh, annotate --remove drops an entry, ls lists', async () => {
    const one = (await stage.seed('edit/one')).reference;
    const two = (await stage.seed('edit/two', arm('v7'))).reference;
    const named = list('edit/list', ours);
    await good(ours.manifest('create', named, one, two));
    await good(ours.manifest('annotate', '--remove', named, one));
    await good(ours.manifest('push', named));
    expect((await read('edit/list', ours)).entries).toMatchObject([{ platform: { architecture: 'arm' } }]);
    await good(ours.manifest('create', '--replace', named, one));
    expect((await good(ours.manifest('ls'))).stdout).toContain(named);
    await good(ours.manifest('push', named));
    expect((await read('edit/list', ours)).entries).toMatchObject([{ platform: { architecture: 'amd64' } }]);
    for (const flag of ['--replace', '--remove']) {
      expect((await docker.manifest(flag === '--remove' ? 'annotate' : 'create', flag, named, one)).exitCode).toBe(125);
    }
  });

  it('rm forgets the draft and leaves the registry as it is, and says so when there is none', async () => {
    const { reference } = await stage.seed('gone/amd64');
    const named = list('gone/list', ours);
    await good(ours.manifest('create', named, reference));
    await good(ours.manifest('push', named));
    recorder.forget();
    await good(ours.manifest('rm', named));
    expect((await read('gone/list', ours)).status).toBe(200);
    const second = await ours.manifest('rm', named);
    expect(second, lastWords(second)).toMatchObject({ exitCode: 4 });
  });

  it('a second push asks whether all is there and writes nothing', async () => {
    const references = await Promise.all(
      ['amd64', 'arm'].map(async (name) => {
        const { source } = await stage.seed(`again/${name}`, name === 'arm' ? arm('v7') : {});
        return `${recorder.host}/${source.repository}:${source.tag}`;
      }),
    );
    for (const client of [docker, ours]) {
      const named = `${recorder.host}/again/list:${client.name}`;
      await good(client.manifest('create', '--insecure', named, ...references));
      const first = await good(client.manifest('push', '--insecure', named));
      recorder.forget();
      const second = await good(client.manifest('push', '--insecure', named));
      expect(second.stdout).toBe(first.stdout);
      const writes = recorder.exchanges.filter(isWrite).length;
      // docker: six mounts, two images, the list.
      expect(writes).toBe(client.name === 'docker' ? 9 : 0);
    }
    expect(countByKind(recorder.exchanges)).toEqual({ 'manifest GET 200': 1, 'manifest HEAD 200': 2 });
  });

  it('inspect of a list in the registry is one request, not two for every image', async () => {
    const references = [(await stage.seed('seen/a')).reference, (await stage.seed('seen/b', arm('v7'))).reference];
    const named = list('seen/list', ours);
    await good(ours.manifest('create', named, ...references));
    await good(ours.manifest('push', '-p', named));
    const through = `${recorder.host}/seen/list:ours`;
    const theirs = await good(docker.manifest('inspect', '--insecure', through));
    expect(countByKind(recorder.exchanges)).toMatchObject({ 'blob GET 200': 2 });
    recorder.forget();
    const shown = await good(ours.manifest('inspect', through));
    expect(shown.stdout).toBe(theirs.stdout);
    expect(countByKind(recorder.exchanges)).toEqual({ 'manifest GET 200': 1 });
  });

  it('a list of the registry is where a draft starts when it is named as a source', async () => {
    const [first, second] = [
      (await stage.seed('start/a')).reference,
      (await stage.seed('start/b', arm('v7'))).reference,
    ];
    const named = list('start/list', ours);
    await good(ours.manifest('create', named, first));
    await good(ours.manifest('push', '--purge', named));
    await good(ours.manifest('create', named, named, second));
    await good(ours.manifest('push', named));
    const architectures = (await read('start/list', ours)).entries.map(({ platform }) => platform?.['architecture']);
    expect(architectures.sort()).toEqual(['amd64', 'arm']);
    const refused = await docker.manifest('create', '--insecure', named, named, second);
    expect(refused.stderr).toContain(`${named} is a manifest list`);
  });

  it('one push writes several tags', async () => {
    const { reference } = await stage.seed('tags/amd64');
    const named = list('tags/list', ours);
    await good(ours.manifest('create', named, reference));
    const pushed = await good(ours.manifest('push', named, '-t', '1.2', '--tag', 'latest'));
    const digest = pushed.stdout.split('\n').at(-2);
    for (const tag of ['ours', '1.2', 'latest']) expect(await digestOfTag(stage.host, 'tags/list', tag)).toBe(digest);
  });

  it('what was pushed is told to programs, in files and as one document on stdout', async () => {
    const { reference } = await stage.seed('told/amd64');
    const named = list('told/list', ours);
    await good(ours.manifest('create', named, reference));
    const files = ['digest', 'metadata', 'report'].map(
      (name) => `--${name}${name === 'report' ? '' : '-file'}=${name}`,
    );
    const pushed = await good(ours.manifest('push', named, ...files));
    const digest = pushed.stdout.split('\n').at(-2) ?? '';
    const written = (name: string) => readFile(join(ours.home, name), 'utf8');
    expect(await written('digest')).toContain(digest);
    expect(JSON.parse(await written('metadata'))).toMatchObject({ 'containerimage.descriptor': { digest } });
    const told = { lists: [{ targets: [{ reference: named, digest }] }] };
    expect(JSON.parse(await written('report'))).toMatchObject(told);
    const again = await good(ours.manifest('push', named, '--json'));
    expect(JSON.parse(again.stdout)).toMatchObject(told);
  });

  it('annotations are written into an OCI index and refused on a Docker list', async () => {
    const docked = (await stage.seed('notes/docker')).reference;
    const oci = (await stage.seed('notes/oci', { family: 'oci' })).reference;
    const notes = ['--annotation', 'org.example.a=b'];
    await good(ours.manifest('create', list('notes/docker-list', ours), docked));
    const refused = await ours.manifest('push', list('notes/docker-list', ours), ...notes);
    expect(refused, lastWords(refused)).toMatchObject({ exitCode: 2, stdout: '' });
    expect(refused.stderr).toContain('--type oci');
    await good(ours.manifest('push', list('notes/docker-list', ours), ...notes, '--type', 'oci'));
    await good(ours.manifest('create', list('notes/oci-list', ours), oci));
    await good(ours.manifest('annotate', list('notes/oci-list', ours), oci, '--annotation', 'org.example.c=d'));
    await good(ours.manifest('push', list('notes/oci-list', ours), ...notes));
    for (const name of ['notes/docker-list', 'notes/oci-list']) {
      const { text, mediaType } = await read(name, ours);
      expect(mediaType).toBe(OCI_INDEX);
      expect(JSON.parse(text)).toMatchObject({ annotations: { 'org.example.a': 'b' } });
    }
    const [entry] = (await read('notes/oci-list', ours)).entries;
    expect(entry?.annotations).toEqual({ 'org.example.c': 'd' });
  });

  it('--dry-run prints the digest and writes nothing', async () => {
    const { reference } = await stage.seed('dry/amd64');
    const named = list('dry/list', ours);
    await good(ours.manifest('create', named, reference));
    const dry = await good(ours.manifest('push', named, '--dry-run'));
    expect((await read('dry/list', ours)).status).toBe(404);
    const pushed = await good(ours.manifest('push', named));
    expect(pushed.stdout.split('\n').at(-2)).toBe(dry.stdout.trim().split('\n').at(-1));
    expect(blob(Buffer.from((await read('dry/list', ours)).text)).digest).toBe(pushed.stdout.split('\n').at(-2));
  });
});
