import { afterAll, beforeAll, expect, it } from 'vitest';
import type { MountCheck } from '../../src/publish/mount-check-report.ts';
import {
  type ExternalRegistry,
  makeFolder,
  startCraneRegistry,
  startDebianRegistry,
  startDistributionV3,
} from '../helpers/external-registry.ts';
import { type Finished, run } from '../helpers/processes.ts';
import { isMount, startProxy } from '../helpers/proxy.ts';
import { debianSources, type Source } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, makeHome, PROGRAM } from './publish-command.ts';
import { ask, pushSource } from './registry-access.ts';

const [SOURCE] = debianSources() as readonly [Source];
const TARGET = 'debian/mount-check';

/** Registries of others, how they mount, and what they let be deleted of a blob of ours. */
const REGISTRIES = [
  {
    program: 'docker-registry',
    name: "Debian's docker-registry",
    start: startDebianRegistry,
    verdict: 'existence',
    mounts: [202, 201],
    deleted: true,
  },
  {
    program: 'distribution-v3',
    name: 'distribution 3',
    start: startDistributionV3,
    verdict: 'existence',
    mounts: [202, 201],
    deleted: true,
  },
  {
    program: 'crane',
    name: 'crane registry serve',
    start: startCraneRegistry,
    // It mounts nothing, whoever names the blob.
    verdict: 'never',
    mounts: [202, 202, 202],
    deleted: false,
  },
] as const;

for (const { program, name, start, verdict, mounts, deleted } of REGISTRIES) {
  withPeers([program], `mount-check of ${name}`, () => {
    let folder: Awaited<ReturnType<typeof makeFolder>>;
    let registry: ExternalRegistry;
    beforeAll(async () => {
      folder = await makeFolder();
      registry = await start(folder.path);
      await pushSource(registry.host, SOURCE);
    });
    afterAll(async () => {
      await registry?.stop();
      await folder.remove();
    });

    it(`--write finds ${verdict}, by ${mounts.join(', ')}`, async () => {
      const proxy = await startProxy(registry.host);
      const done = await mountCheck(folder.path, proxy.host, ['--write', '--expect', verdict]);
      await proxy.stop();
      expect(done.exitCode, lastWords(done)).toBe(0);
      const check = JSON.parse(done.stdout) as MountCheck;
      expect(check.verdict).toBe(verdict);
      expect(proxy.exchanges.filter(isMount).map(({ status }) => status)).toEqual(mounts);
      const { digest } = check.blob;
      for (const repository of [SOURCE.repository, TARGET]) {
        const { status } = await ask(registry.host, 'HEAD', `/v2/${repository}/blobs/${digest}`);
        if (deleted) expect(status, repository).toBe(404);
      }
      // The image that was there is untouched.
      const tag = await ask(registry.host, 'GET', `/v2/${SOURCE.repository}/tags/list`);
      expect(JSON.parse(tag.body.toString('utf8'))).toMatchObject({ tags: [SOURCE.tag] });
    });

    it('without --write asks with the config that is there, and writes nothing into the source', async () => {
      const proxy = await startProxy(registry.host);
      const done = await mountCheck(folder.path, proxy.host, []);
      await proxy.stop();
      expect(done.exitCode, lastWords(done)).toBe(0);
      const check = JSON.parse(done.stdout) as MountCheck;
      expect(check.verdict).toBe(verdict === 'never' ? 'never' : 'mounts');
      expect(check.blob.digest).toBe(SOURCE.images[0]?.blobs[0]?.digest);
      const writes = proxy.exchanges.filter(({ method }) => !['GET', 'HEAD'].includes(method));
      expect(writes.filter(({ path }) => path.startsWith(`/v2/${SOURCE.repository}/`))).toEqual([]);
    });
  });
}

async function mountCheck(folder: string, host: string, flags: readonly string[]): Promise<Finished> {
  const home = await makeHome(folder);
  const words = ['mount-check', `${host}/${TARGET}`, `${host}/${SOURCE.repository}:${SOURCE.tag}`, '--json', ...flags];
  return run(process.execPath, [PROGRAM, ...words], { env: { HOME: home }, cwd: home });
}
