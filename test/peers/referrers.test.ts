import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ExternalRegistry,
  makeFolder,
  startCraneRegistry,
  startDistributionV3,
} from '../helpers/external-registry.ts';
import { needProgram, run } from '../helpers/processes.ts';
import { debianSources } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, publish } from './publish-command.ts';
import { digestOfTag, missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources().slice(0, 2);
const [FIRST] = SOURCES;
const IMAGE = FIRST?.images[0];
const CONTENT = '{"packages":[]}';
const SBOM = 'application/vnd.example.sbom';

/** Runs a client of others in a home of its own, and gives what it prints. */
async function tell(program: string, folder: string, args: readonly string[]): Promise<string> {
  const env = { HOME: folder, DOCKER_CONFIG: folder, REGCTL_CONFIG: join(folder, 'regctl.json') };
  const done = await run(needProgram(program), args, { cwd: folder, env });
  expect(done, lastWords(done)).toMatchObject({ exitCode: 0 });
  return done.stdout;
}

function oras(folder: string, args: readonly string[]): Promise<string> {
  const [command = '', ...rest] = args;
  return tell('oras', folder, [command, '--plain-http', ...rest]);
}

function regctl(folder: string, host: string, args: readonly string[]): Promise<string> {
  return tell('regctl', folder, ['--host', `reg=${host},tls=disabled`, ...args]);
}

/** `oras attach` and `regctl` write and read what the others have to find: neither is asked how it does so. */
withPeers(['oras', 'regctl'], 'referrers that oras attaches', () => {
  const registries = [
    ['distribution-v3', 'distribution 3, by the fallback tag', startDistributionV3],
    ['crane', 'crane registry serve', () => startCraneRegistry()],
  ] as const;
  for (const [program, name, start] of registries) {
    withPeers([program], name, () => {
      let folder: Awaited<ReturnType<typeof makeFolder>>;
      let registry: ExternalRegistry;
      beforeAll(async () => {
        folder = await makeFolder();
        registry = await start(folder.path);
        for (const source of SOURCES) await pushSource(registry.host, source);
        await writeFile(join(folder.path, 'sbom.json'), CONTENT);
        await oras(folder.path, ['attach', '--artifact-type', SBOM, at(FIRST?.repository), 'sbom.json:text/json']);
      });
      afterAll(async () => {
        await registry?.stop();
        await folder.remove();
      });

      const at = (repository = ''): string => `${registry.host}/${repository}@${IMAGE?.manifest.digest}`;

      it('are found by oras and regctl where they were published to, and a second run writes nothing', async () => {
        const target = `${registry.host}/debian/signed`;
        const args = [`${target}:1`, ...SOURCES.map(({ repository, tag }) => `${registry.host}/${repository}:${tag}`)];
        const done = await publish(folder.path, [...args, '--referrers', 'all']);
        expect(done, lastWords(done)).toMatchObject({ exitCode: 0 });
        expect(
          await missingIn(
            registry.host,
            'debian/signed',
            SOURCES.flatMap(({ images }) => images),
          ),
        ).toEqual([]);

        const discovered = await oras(folder.path, ['discover', '--format', 'json', at('debian/signed')]);
        expect(JSON.parse(discovered)).toMatchObject({ referrers: [{ artifactType: SBOM }] });
        const listed = await regctl(folder.path, registry.host, [
          'artifact',
          'list',
          at('debian/signed'),
          '--format',
          '{{json .}}',
        ]);
        expect(JSON.parse(listed)).toMatchObject({ descriptors: [{ artifactType: SBOM }] });
        const [{ digest }] = (JSON.parse(discovered) as { referrers: [{ digest: string }] }).referrers;
        await oras(folder.path, ['pull', '-o', 'out', `${target}@${digest}`]);
        expect(await readFile(join(folder.path, 'out', 'sbom.json'), 'utf8')).toBe(CONTENT);

        const list = await digestOfTag(registry.host, 'debian/signed', IMAGE?.manifest.digest.replace(':', '-') ?? '');
        const again = await publish(folder.path, [...args, '--referrers', 'all']);
        expect(again.report?.totals.blobs).toMatchObject({ mounted: 0, copied: 0 });
        expect(await digestOfTag(registry.host, 'debian/signed', IMAGE?.manifest.digest.replace(':', '-') ?? '')).toBe(
          list,
        );
      });

      it('stand beside what regctl adds there afterwards, and beside what was there before', async () => {
        const own = [
          'artifact',
          'put',
          '--subject',
          at('debian/signed'),
          '--artifact-type',
          'application/vnd.example.own',
        ];
        await regctl(folder.path, registry.host, [...own, '-f', 'sbom.json']);
        await oras(folder.path, ['attach', '--artifact-type', 'x/later', at(FIRST?.repository), 'sbom.json:text/json']);
        const args = [`${registry.host}/debian/signed:2`, `${registry.host}/${FIRST?.repository}:${FIRST?.tag}`];
        const done = await publish(folder.path, [...args, '--referrers', 'all']);
        expect(done, lastWords(done)).toMatchObject({ exitCode: 0 });
        const discovered = await oras(folder.path, ['discover', '--format', 'json', at('debian/signed')]);
        const { referrers } = JSON.parse(discovered) as { referrers: readonly { artifactType: string }[] };
        expect(referrers.map(({ artifactType }) => artifactType).sort()).toEqual([
          'application/vnd.example.own',
          SBOM,
          'x/later',
        ]);
      });
    });
  }
});
