import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type ExternalRegistry, PEER_USER, startDebianRegistry } from '../helpers/external-registry.ts';
import type { Finished } from '../helpers/processes.ts';
import { attestedSources, OCI_INDEX } from './images.ts';
import { withPeers } from './lane.ts';
import { type Client, clientAt, DOCKER, good } from './manifest-clients.ts';
import { DOCKER_LIST } from './manifest-images.ts';
import { arm, type Stage, startStage } from './manifest-stage.ts';
import { lastWords, makeHome } from './publish-command.ts';
import { digestOfTag, pushSource } from './registry-access.ts';

/**
 * Where ours does otherwise than docker manifest, on purpose. Each test asks docker too: a difference that docker has
 * mended is none, and docs/coming-from-docker-manifest.md names these tests.
 */
withPeers([DOCKER, 'docker-registry'], 'ours differs from docker manifest:', () => {
  let stage: Stage;
  let docker: Client;
  let ours: Client;
  beforeAll(async () => {
    stage = await startStage();
  });
  afterAll(() => stage?.stop());
  beforeEach(async () => {
    ({ docker, ours } = await stage.clients());
  });

  const list = (name: string, client: Client) => `${stage.host}/${name}:${client.name}`;
  const read = (name: string, client: Client) => stage.read(`${name}:${client.name}`);

  it('two images for one platform are pushed by docker, told of at create and refused at push by ours', async () => {
    const sources = [await stage.seed('twice/a'), await stage.seed('twice/b')].map(({ reference }) => reference);
    await good(docker.manifest('create', '--insecure', list('twice/list', docker), ...sources));
    await good(docker.manifest('push', '--insecure', list('twice/list', docker)));
    expect((await read('twice/list', docker)).entries).toHaveLength(2);

    const created = await good(ours.manifest('create', list('twice/list', ours), ...sources));
    expect(created.stderr).toContain('linux/amd64');
    const pushed = await ours.manifest('push', list('twice/list', ours));
    expect(pushed, lastWords(pushed)).toMatchObject({ exitCode: 2, stdout: '' });
    expect(pushed.stderr).toContain('linux/amd64');
    expect((await read('twice/list', ours)).status).toBe(404);
  });

  it.each([
    ['armv7', 'v7'],
    ['7', 'v7'],
    ['armv6', 'v6'],
  ])('--variant %s is written as it is by docker, as %s by ours', async (written, right) => {
    const name = `spelled-${written}`;
    const { reference } = await stage.seed(`${name}/arm`, arm());
    for (const client of [docker, ours]) {
      await good(client.manifest('create', '--insecure', list(`${name}/list`, client), reference));
      await good(client.manifest('annotate', list(`${name}/list`, client), reference, '--variant', written));
      await good(client.manifest('push', '--insecure', list(`${name}/list`, client)));
    }
    const theirs = await read(`${name}/list`, docker);
    expect(theirs.text).toContain(`"variant": "${written}"`);
    const text = theirs.text.replace(`"variant": "${written}"`, `"variant": "${right}"`);
    expect((await read(`${name}/list`, ours)).text).toBe(text);
  });

  it('arm64/v7, which is on no machine, is refused at annotate by ours alone, and the draft stays', async () => {
    const platform = { architecture: 'arm64', os: 'linux' };
    const { reference } = await stage.seed('nowhere/arm64', { platform });
    for (const client of [docker, ours]) {
      await good(client.manifest('create', '--insecure', list('nowhere/list', client), reference));
    }
    await good(docker.manifest('annotate', list('nowhere/list', docker), reference, '--variant', 'v7'));
    const refused = await ours.manifest('annotate', list('nowhere/list', ours), reference, '--variant', 'v7');
    expect(refused, lastWords(refused)).toMatchObject({ exitCode: 2, stdout: '' });
    expect(refused.stderr).toContain('linux/arm/v7');
    await good(ours.manifest('push', list('nowhere/list', ours)));
    expect((await read('nowhere/list', ours)).entries).toMatchObject([{ platform }]);
  });

  it('any pair of system and architecture may be annotated, not those of a table alone', async () => {
    const { reference } = await stage.seed('table/loong64', { platform: {} });
    for (const client of [docker, ours]) {
      await good(client.manifest('create', '--insecure', list('table/list', client), reference));
    }
    const flags = ['--os', 'linux', '--arch', 'loong64'];
    const refused = await docker.manifest('annotate', list('table/list', docker), reference, ...flags);
    expect(refused.stderr).toContain('unsupported os/arch combination');
    await good(ours.manifest('annotate', list('table/list', ours), reference, ...flags));
    await good(ours.manifest('push', list('table/list', ours)));
    const platform = { architecture: 'loong64', os: 'linux' };
    expect((await read('table/list', ours)).entries).toMatchObject([{ platform }]);
  });

  it('references that docker keeps in one file stay two', async () => {
    const sources = [
      await stage.seed('one/q', { tag: 'x-1' }),
      await stage.seed('one/q-x', { ...arm('v7'), tag: '1' }),
    ];
    for (const client of [docker, ours]) {
      const references = sources.map(({ reference }) => reference);
      await good(client.manifest('create', '--insecure', list('one/list', client), ...references));
      await good(client.manifest('push', '--insecure', list('one/list', client)));
    }
    expect((await read('one/list', docker)).entries).toHaveLength(1);
    expect((await read('one/list', ours)).entries).toHaveLength(2);
  });

  it('--amend reads a tag again that has moved, and keeps what was annotated', async () => {
    const { reference } = await stage.seed('moved/arm', arm());
    for (const client of [docker, ours]) {
      await good(client.manifest('create', '--insecure', list('moved/list', client), reference));
      await good(client.manifest('annotate', list('moved/list', client), reference, '--variant', 'v6'));
    }
    const before = await digestOfTag(stage.host, 'moved/arm', '1');
    const { source } = await stage.seed('moved/arm', { ...arm(), edition: 'second' });
    for (const client of [docker, ours]) {
      await good(client.manifest('create', '--insecure', '--amend', list('moved/list', client), reference));
      await good(client.manifest('push', '--insecure', list('moved/list', client)));
    }
    const platform = { architecture: 'arm', variant: 'v6' };
    expect((await read('moved/list', docker)).entries).toMatchObject([{ digest: before, platform }]);
    expect((await read('moved/list', ours)).entries).toMatchObject([{ digest: source.document.digest, platform }]);
  });

  it('an index as a source is taken in with its images and attestations', async () => {
    const sources = attestedSources().slice(0, 2);
    for (const source of sources) await pushSource(stage.host, source);
    const references = sources.map(({ repository, tag }) => `${stage.host}/${repository}:${tag}`);
    const refused = await docker.manifest('create', '--insecure', list('attested/list', docker), ...references);
    expect(refused.stderr).toContain(`${references[0]} is a manifest list`);
    await good(ours.manifest('create', list('attested/list', ours), ...references));
    await good(ours.manifest('push', list('attested/list', ours)));
    const { entries } = await read('attested/list', ours);
    const images = sources.flatMap((source) => source.images.map(({ entry }) => entry));
    expect(entries.map(({ digest }) => digest).sort()).toEqual(images.map(({ digest }) => digest).sort());
    const speakOf = entries.map(({ annotations }) => annotations?.['vnd.docker.reference.digest']);
    expect(speakOf.filter((digest) => digest !== undefined)).toHaveLength(2);
  });

  it('a create that failed leaves nothing behind, so that the next one needs no --amend', async () => {
    const { reference } = await stage.seed('half/amd64');
    const late = `${stage.host}/half/late:1`;
    for (const client of [docker, ours]) {
      const failed = await client.manifest('create', '--insecure', list('half/list', client), reference, late);
      expect(failed.stderr).toContain('no such manifest');
    }
    await stage.seed('half/late', arm('v7'));
    const again = await docker.manifest('create', '--insecure', list('half/list', docker), reference, late);
    expect(again.stderr).toContain('refusing to amend');
    await good(ours.manifest('create', list('half/list', ours), reference, late));
  });

  it('a list whose name has a digest is refused at create', async () => {
    const { reference, source } = await stage.seed('digest/amd64');
    const named = `${stage.host}/digest/list@${source.document.digest}`;
    await good(docker.manifest('create', '--insecure', named, reference));
    const refused = await ours.manifest('create', named, reference);
    expect(refused, lastWords(refused)).toMatchObject({ exitCode: 2, stdout: '' });
  });

  it('a registry on this machine is spoken to over plain HTTP without --insecure', async () => {
    const { reference } = await stage.seed('plain/amd64');
    const refused = await docker.manifest('create', list('plain/list', docker), reference);
    expect(refused.stderr).toContain(`no such manifest: ${reference}`);
    await good(ours.manifest('create', list('plain/list', ours), reference));
    await good(ours.manifest('push', list('plain/list', ours)));
    expect((await read('plain/list', ours)).status).toBe(200);
  });

  it('images of another registry are copied', async () => {
    const other = await startStage('other');
    const { reference } = await other.seed('across/amd64');
    for (const client of [docker, ours]) {
      await good(client.manifest('create', '--insecure', list('across/list', client), reference));
    }
    const refused = await docker.manifest('push', '--insecure', list('across/list', docker));
    expect(refused.stderr).toContain('cannot use source images from a different registry');
    await good(ours.manifest('push', list('across/list', ours)));
    expect((await read('across/list', ours)).entries).toHaveLength(1);
    await other.stop();
  });

  it('mixed images become an OCI index whatever their order, with a warning', async () => {
    const sources = [await stage.seed('mixed/a'), await stage.seed('mixed/b', { ...arm('v7'), family: 'oci' })];
    const outcomes: Finished[] = [];
    for (const client of [docker, ours]) {
      const references = sources.map(({ reference }) => reference);
      await good(client.manifest('create', '--insecure', list('mixed/list', client), ...references));
      outcomes.push(await good(client.manifest('push', '--insecure', list('mixed/list', client))));
    }
    expect((await read('mixed/list', docker)).mediaType).toBe(DOCKER_LIST);
    expect((await read('mixed/list', ours)).mediaType).toBe(OCI_INDEX);
    expect(outcomes[0]?.stderr).toBe('');
    expect(outcomes[1]?.stderr).toMatch(/Docker.*OCI|OCI.*Docker/);
  });

  it('a wrong password is told apart from an image that is not there', async () => {
    await stage.seed('login/amd64');
    const guarded: ExternalRegistry = await startDebianRegistry(`${stage.folder}/registry`, {
      auth: { kind: 'basic', user: PEER_USER },
    });
    const reference = `${guarded.host}/login/amd64:1`;
    const login = { host: guarded.host, name: PEER_USER.name, password: 'not-the-password' };
    const home = await makeHome(stage.folder, [login]);
    const typed = ['create', '--insecure', `${guarded.host}/login/list:1`, reference];
    const theirs = await clientAt('docker', home).manifest(...typed);
    const refused = await clientAt('ours', home).manifest(...typed);
    await guarded.stop();
    expect(theirs.stderr).toContain('no such manifest');
    expect(refused, lastWords(refused)).toMatchObject({ exitCode: 3, stdout: '' });
    expect(refused.stderr).not.toContain('no such manifest');
  });
});
