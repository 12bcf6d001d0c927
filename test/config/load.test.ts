import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { PublishError } from '../../src/errors.ts';

let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'config-')));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return path;
}

const search = (from = folder) => loadConfig({ named: undefined, namedByEnvironment: undefined, folder: from });
const named = (path: string) => loadConfig({ named: path, namedByEnvironment: undefined, folder });

async function failure(promise: Promise<unknown>): Promise<PublishError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof PublishError)) throw new Error(`not refused: ${String(error)}`);
  return error;
}

describe('the search', () => {
  it.each([
    'manifest-publish.yaml',
    'manifest-publish.yml',
    '.manifest-publishrc',
    '.manifest-publishrc.yaml',
    '.manifest-publishrc.yml',
    '.config/manifest-publish.yaml',
    '.config/manifest-publish.yml',
    '.config/manifest-publishrc',
    '.config/manifest-publishrc.yaml',
    '.config/manifest-publishrc.yml',
  ])('finds YAML in %s', async (name) => {
    const path = await write(name, 'jobs: 7\ntimeout: 1h30m\n');
    expect(await search()).toEqual({ config: { jobs: 7, timeout: 5_400_000 }, file: path });
  });

  it.each([
    'manifest-publish.json',
    '.manifest-publishrc.json',
    '.config/manifest-publish.json',
    '.config/manifest-publishrc.json',
  ])('finds JSON in %s', async (name) => {
    const path = await write(name, '{"jobs": 7}');
    expect(await search()).toEqual({ config: { jobs: 7 }, file: path });
  });

  it('takes the address of the schema, which sets nothing', async () => {
    await write('manifest-publish.json', '{"$schema": "https://example.test/config.schema.json", "jobs": 7}');
    expect((await search()).config).toEqual({ jobs: 7 });
    await write('manifest-publish.json', '{"$schema": 1}');
    expect((await failure(search())).message).toContain('"$schema" must be an address');
  });

  it('finds the key of package.json', async () => {
    const path = await write('package.json', '{"name": "app", "manifest-publish": {"jobs": 7}}');
    expect(await search()).toEqual({ config: { jobs: 7 }, file: path });
  });

  it('goes up to the folder that holds package.json, and not beyond', async () => {
    const path = await write('manifest-publish.yaml', 'jobs: 7\n');
    await mkdir(join(folder, 'a/b'), { recursive: true });
    expect((await search(join(folder, 'a/b'))).file).toBe(path);
    await write('a/package.json', '{"name": "inner"}');
    expect(await search(join(folder, 'a/b'))).toEqual({ config: {}, file: undefined });
  });

  it('takes an empty file for none', async () => {
    await write('manifest-publish.yaml', '');
    expect(await search()).toEqual({ config: {}, file: undefined });
  });

  it('never runs code, whatever the checkout holds', async () => {
    // cosmiconfig's own factory would run the first two, and take the third from where the fourth says.
    const code = `require('node:fs').writeFileSync(${JSON.stringify(join(folder, 'ran'))}, '')`;
    for (const name of ['.config/config.js', '.config/config.cjs', 'evil.cjs', '.manifest-publishrc.cjs']) {
      await write(name, code);
    }
    await write(
      'package.json',
      '{"name": "app", "cosmiconfig": {"searchPlaces": ["evil.cjs"]}, "manifest-publish": {"jobs": 7}}',
    );
    expect((await search()).config).toEqual({ jobs: 7 });
    await expect(realpath(join(folder, 'ran'))).rejects.toThrow('ENOENT');
  });
});

describe('what is wrong is told with line and column', () => {
  it.each([
    ['an unknown key', 'jobs: 4\njob: 5\n', '2:1: unknown key "job"', 'Did you mean "jobs"'],
    [
      'an unknown key of a registry',
      'registries:\n  ghcr.io:\n    maxrps: 2\n',
      '3:5: unknown key',
      'Did you mean "maxRps"',
    ],
    ['a wrong value', 'retries:   many\n', '1:12: "retries" must be a whole number from 0 to 20', ''],
    ['a number out of bounds', 'jobs: 65\n', '1:7: "jobs" must be a whole number from 1 to 64', ''],
    ['no duration', 'timeout: 10\n', '1:10: "timeout" must be a duration such as 90s', ''],
    ['no host', 'registries:\n  registry: {maxRps: 2}\n', '2:3: "registries.registry" is not a registry host', ''],
    ['a duplicate key', 'jobs: 4\njobs: 5\n', '2:1: Map keys must be unique', ''],
    ['broken YAML', 'jobs: [4\n', '2:1: ', ''],
    ['a list', '- jobs\n', '1:1: the configuration must be a map', ''],
    ['an import', 'jobs: 4\n$import: other.yaml\n', '2:1: "$import" is not supported', ''],
  ])('%s', async (_, text, message, hint) => {
    await write('manifest-publish.yaml', text);
    const error = await failure(search());
    expect(error.code).toBe('CONFIG_INVALID');
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain(`manifest-publish.yaml:${message}`);
    expect(error.hint).toContain(hint);
  });

  it('in JSON', async () => {
    await write('manifest-publish.json', '{\n  "jobs": 4,\n  "job": 5\n}\n');
    expect((await failure(search())).message).toContain('manifest-publish.json:3:3: unknown key "job"');
    await write('manifest-publish.json', '{\n  "jobs": 4,\n}\n');
    expect((await failure(search())).message).toContain('manifest-publish.json:3:1: ');
  });

  it('below the key of package.json', async () => {
    await write('package.json', '{\n  "name": "app",\n  "manifest-publish": {\n    "job": 5\n  }\n}\n');
    expect((await failure(search())).message).toContain('package.json:4:5: unknown key "job"');
  });
});

describe('trust', () => {
  const WEAKENING = [
    ['insecure', 'registries:\n  ghcr.io:\n    insecure: true\n', '3:5'],
    ['plainHttp', 'registries:\n  ghcr.io:\n    plainHttp: false\n', '3:5'],
    ['caFile', 'registries:\n  GHCR.io:\n    caFile: ca.pem\n', '3:5'],
    ['caFile', 'jobs: 4\ncaFile: ca.pem\n', '2:1'],
  ] as const;

  it.each(WEAKENING)('a file found by search may not set %s', async (key, text, at) => {
    await write('manifest-publish.yaml', text);
    const error = await failure(search());
    expect(error.code).toBe('CONFIG_INVALID');
    expect(error.message).toContain(
      `manifest-publish.yaml:${at}: a configuration found by search may not set "${key}"`,
    );
    expect(error.hint).toContain('--config');
  });

  it.each(WEAKENING)('a file named by the environment may not set %s', async (key, text) => {
    const path = await write('named.yaml', text);
    const error = await failure(loadConfig({ named: undefined, namedByEnvironment: path, folder }));
    expect(error.message).toContain(`may not set "${key}"`);
  });

  it('a file named on the command line may', async () => {
    const path = await write(
      'ci/named.yaml',
      'caFile: ca.pem\nregistries:\n  GHCR.io: {insecure: true, caFile: /etc/ca.pem}\n',
    );
    expect((await named(path)).config).toEqual({
      caFile: join(folder, 'ci/ca.pem'),
      registries: { 'ghcr.io': { insecure: true, caFile: '/etc/ca.pem' } },
    });
  });

  it('a rate is no weakening', async () => {
    await write('manifest-publish.yaml', 'registries:\n  index.docker.io:\n    maxRps: 0.5\n');
    expect((await search()).config).toEqual({ registries: { 'docker.io': { maxRps: 0.5 } } });
  });
});

describe('a named file', () => {
  it('that is missing is an error', async () => {
    const error = await failure(named(join(folder, 'missing.yaml')));
    expect(error.code).toBe('CONFIG_INVALID');
    expect(error.message).toContain('ENOENT');
  });

  it('is never code', async () => {
    const path = await write('config.mjs', 'export default {}');
    expect((await failure(named(path))).message).toContain('not a data file');
  });

  it('goes before the one of the environment', async () => {
    const first = await write('first.yaml', 'jobs: 1\n');
    const second = await write('second.yaml', 'jobs: 2\n');
    expect((await loadConfig({ named: first, namedByEnvironment: second, folder })).config).toEqual({ jobs: 1 });
  });
});
