import { afterAll, beforeAll, expect, it } from 'vitest';
import { countByKind, isMount, type RecordingProxy, startProxy } from '../helpers/proxy.ts';
import { blob, debianSources } from './images.ts';
import { withPeers } from './lane.ts';
import { clientAt, DOCKER, makeClient } from './manifest-clients.ts';
import { type Stage, startStage } from './manifest-stage.ts';
import { lastWords } from './publish-command.ts';
import { missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources();
const IMAGES = SOURCES.flatMap((source) => source.images);

/** aws/containers-roadmap#1459: "error mounting", and then? */
withPeers([DOCKER, 'docker-registry'], 'a list that docker manifest could not push', () => {
  let stage: Stage;
  let refusing: RecordingProxy;
  beforeAll(async () => {
    stage = await startStage();
    refusing = await startProxy(stage.host, { refuseMounts: true });
    for (const source of SOURCES) await pushSource(stage.host, source);
  });
  afterAll(async () => {
    await refusing?.stop();
    await stage?.stop();
  });

  it("is pushed by ours from docker's own draft, with the digest that docker would have given it", async () => {
    const docker = await makeClient('docker', stage.folder);
    const references = (host: string) => SOURCES.map(({ repository, tag }) => `${host}/${repository}:${tag}`);
    const list = `${refusing.host}/debian/debian:bullseye`;
    const [armhf = ''] = references(refusing.host).filter((reference) => reference.includes('arm32v7'));
    const commands = [
      ['create', '--insecure', list, ...references(refusing.host)],
      ['annotate', list, armhf, '--os-features', 'hard-float'],
    ];
    for (const words of commands) {
      const done = await docker.manifest(...words);
      expect(done, lastWords(done)).toMatchObject({ exitCode: 0 });
    }
    const died = await docker.manifest('push', '--insecure', list);
    expect(died, lastWords(died)).toMatchObject({ exitCode: 1, stdout: '' });
    expect(died.stderr).toContain('error mounting');
    expect(await stage.read('debian/debian:bullseye')).toMatchObject({ status: 404 });

    refusing.forget();
    const ours = clientAt('ours', docker.home);
    const shown = await ours.manifest('inspect', list);
    expect(shown, lastWords(shown)).toMatchObject({
      exitCode: 0,
      stdout: (await docker.manifest('inspect', list)).stdout,
    });
    const done = await ours.manifest('push', '--insecure', list);
    expect(done, lastWords(done)).toMatchObject({ exitCode: 0 });
    const pushed = await stage.read('debian/debian:bullseye');
    expect(done.stdout.split('\n').at(-2)).toBe(blob(Buffer.from(pushed.text)).digest);
    expect(await missingIn(stage.host, 'debian/debian', IMAGES)).toEqual([]);
    expect(refusing.exchanges.filter(isMount)).toHaveLength(40);

    // The same where docker can: straight at the registry, which mounts.
    const elsewhere = await makeClient('docker', stage.folder);
    const other = `${stage.host}/debian/elsewhere:bullseye`;
    const [hard = ''] = references(stage.host).filter((reference) => reference.includes('arm32v7'));
    await elsewhere.manifest('create', '--insecure', other, ...references(stage.host));
    await elsewhere.manifest('annotate', other, hard, '--os-features', 'hard-float');
    const twin = await elsewhere.manifest('push', '--insecure', other);
    expect(twin, lastWords(twin)).toMatchObject({ exitCode: 0 });
    expect(pushed.text).toBe((await stage.read('debian/elsewhere:bullseye')).text);
    const lines = (text: string, repository: string) =>
      text.replaceAll(`/debian/${repository}@`, '@').replaceAll(/[\d.]+:\d+@/g, '@');
    expect(lines(done.stdout, 'debian')).toBe(lines(twin.stdout, 'elsewhere'));

    // docker's draft is docker's: it is still there, and a second push finds nothing to do.
    expect((await docker.manifest('inspect', list)).exitCode).toBe(0);
    refusing.forget();
    const again = await ours.manifest('push', '--insecure', list);
    expect(again, lastWords(again)).toMatchObject({ exitCode: 0, stdout: done.stdout });
    expect(Object.keys(countByKind(refusing.exchanges)).filter((kind) => !/ (GET|HEAD) /.test(kind))).toEqual([]);
  });
});
