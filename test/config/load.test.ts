import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { PublishError } from '../../src/errors.ts';
import { asOrdinaryUser } from '../helpers/other-user.ts';
import { run } from '../helpers/processes.ts';

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
    ['a wrong mode', 'registries:\n  ghcr.io:\n    mount: no\n', '3:12: "registries.ghcr.io.mount" must be one of', ''],
    ['a wrong upload', 'registries:\n  ghcr.io: {upload: chunked}\n', '2:21: "registries.ghcr.io.upload" must be', ''],
    ['a chunk below 64 KiB', 'registries:\n  ghcr.io:\n    chunkSize: 5\n', '3:16: ', ''],
    ['a chunk without unit', 'registries:\n  ghcr.io:\n    chunkSize: 5MB\n', '3:16: ', ''],
    ['no chunk size', 'registries:\n  ghcr.io:\n    chunkSize: [1]\n', '3:16: ', ''],
    [
      'a chunk size that has no use',
      'registries:\n  ghcr.io:\n    upload: whole\n    chunkSize: 5MiB\n',
      '4:5: "registries.ghcr.io.chunkSize" means nothing',
      'upload: chunks',
    ],
    ['a duplicate key', 'jobs: 4\njobs: 5\n', '2:1: Map keys must be unique', ''],
    ['broken YAML', 'jobs: [4\n', '2:1: ', ''],
    ['two documents', 'jobs: 4\n---\njobs: 5\n', '2:1: more than one document', ''],
    [
      'two names of one registry that contradict each other',
      'registries:\n  docker.io:\n    mount: never\n  index.docker.io:\n    mount: auto\n',
      '4:3: "docker.io" and "index.docker.io" are one registry',
      'under "docker.io"',
    ],
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

describe('a file that would keep the program busy or full', () => {
  const bomb = ['a0: &a0 [x,x,x,x,x,x,x,x,x]'];
  for (let at = 1; at < 30; at++)
    bomb.push(
      `a${at}: &a${at} [${Array(9)
        .fill(`*a${at - 1}`)
        .join(',')}]`,
    );
  const LETTER = 'x'.repeat(1024 * 1024);

  it.each([
    ['aliases of aliases', bomb.join('\n'), '2:10: aliases stand for too much'],
    ['an alias of itself in a registry', 'registries: &a {ghcr.io: *a}\n', '1:'],
    ['lists in lists', `jobs: ${'['.repeat(20_000)}${']'.repeat(20_000)}`, 'nested too deeply'],
    ['keys without end', Array.from({ length: 30_000 }, (_, at) => `k${at}: 1`).join('\n'), 'longer than 64 KiB'],
    ['one long text', `jobs: ${LETTER}`, 'is longer than 1024 KiB'],
  ])('is refused at once: %s', async (_, text, message) => {
    const path = await write('manifest-publish.yaml', text);
    const at = performance.now();
    for (const error of [await failure(search()), await failure(named(path))]) {
      expect(error.code).toBe('CONFIG_INVALID');
      expect(error.message).toContain(message);
    }
    expect(performance.now() - at).toBeLessThan(10_000);
  });

  it('is refused also where JSON is nested too deeply to tell the place', async () => {
    await write('manifest-publish.json', `{"jobs": ${'['.repeat(20_000)}${']'.repeat(20_000)}}`);
    expect((await failure(search())).code).toBe('CONFIG_INVALID');
  });
});

describe('a file under a name of ours that cannot be read', () => {
  it.each(['manifest-publish.yaml', '.config/manifest-publish.json', 'package.json'])(
    'is told, and not passed over: %s leads to itself',
    async (name) => {
      await mkdir(join(folder, '.config'), { recursive: true });
      await symlink(basename(name), join(folder, name));
      const error = await failure(search());
      expect(error.code).toBe('CONFIG_INVALID');
      expect(error.message).toBe(`${join(folder, name)}: cannot be read (ELOOP)`);
    },
  );

  it('is told when it leads nowhere', async () => {
    await symlink('gone.yaml', join(folder, 'manifest-publish.yaml'));
    expect((await failure(search())).message).toContain('manifest-publish.yaml: cannot be read (ENOENT)');
  });

  it('is told when it is not ours to read', async () => {
    await chmod(await write('manifest-publish.yaml', 'jobs: 7\n'), 0);
    await chmod(folder, 0o755);
    const error = await asOrdinaryUser(() => failure(search()));
    expect(error.message).toContain('manifest-publish.yaml: cannot be read (EACCES)');
  });

  it('is told when it is a device', async () => {
    await symlink('/dev/zero', join(folder, 'manifest-publish.yaml'));
    expect((await failure(search())).message).toContain('manifest-publish.yaml: is not a file');
  });

  it('is passed over when it is a folder', async () => {
    await mkdir(join(folder, 'manifest-publish.yaml'));
    const path = await write('.manifest-publishrc', 'jobs: 7\n');
    expect((await search()).file).toBe(path);
  });
});

describe('trust', () => {
  const WEAKENING = [
    ['insecure', 'registries:\n  ghcr.io:\n    insecure: true\n', '3:5'],
    ['plainHttp', 'registries:\n  ghcr.io:\n    plainHttp: false\n', '3:5'],
    ['caFile', 'registries:\n  GHCR.io:\n    caFile: ca.pem\n', '3:5'],
    ['caFile', 'jobs: 4\ncaFile: ca.pem\n', '2:1'],
    ['certFile', 'registries:\n  ghcr.io:\n    certFile: c.pem\n    keyFile: k.pem\n', '3:5'],
    ['keyFile', 'registries:\n  ghcr.io:\n    maxRps: 1\n    keyFile: k.pem\n', '4:5'],
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

  it('a certificate of this machine is named from the folder of the file', async () => {
    const path = await write(
      'ci/named.yaml',
      'registries:\n  ghcr.io: {certFile: client.pem, keyFile: /etc/key.pem}\n',
    );
    expect((await named(path)).config).toEqual({
      registries: { 'ghcr.io': { certFile: join(folder, 'ci/client.pem'), keyFile: '/etc/key.pem' } },
    });
  });

  it('how blobs are sent is no weakening', async () => {
    await write('manifest-publish.yaml', 'registries:\n  ghcr.io: {mount: never, upload: chunks, chunkSize: 8MiB}\n');
    const settings = { mount: 'never', upload: 'chunks', chunkSize: 8 * 1024 * 1024 };
    expect((await search()).config).toEqual({ registries: { 'ghcr.io': settings } });
  });

  it('a rate is no weakening', async () => {
    await write('manifest-publish.yaml', 'registries:\n  index.docker.io:\n    maxRps: 0.5\n');
    expect((await search()).config).toEqual({ registries: { 'docker.io': { maxRps: 0.5 } } });
  });
});

describe('a named file', () => {
  it.each([
    ['a loop', 'loop', 'cannot be read (ELOOP)'],
    ['a folder', 'folder', 'cannot be read (EISDIR)'],
    ['a device without end', 'zero', 'is longer than 1024 KiB'],
  ])('that is %s is an error', async (_, name, message) => {
    await symlink('loop', join(folder, 'loop'));
    await mkdir(join(folder, 'folder'));
    await symlink('/dev/zero', join(folder, 'zero'));
    const error = await failure(named(join(folder, name)));
    expect(error.code).toBe('CONFIG_INVALID');
    expect(error.message).toContain(message);
  });

  it('may be a pipe, and what is wrong in it is told with its place', async () => {
    const path = join(folder, 'pipe');
    const made = await run('mkfifo', [path]);
    expect(made.exitCode).toBe(0);
    const [error] = await Promise.all([failure(named(path)), writeFile(path, 'jobs: 4\njob: 5\n')]);
    expect(error.message).toContain('2:1: unknown key "job"');
  });

  it('may be package.json', async () => {
    const path = await write('package.json', '{"manifest-publish": {"jobs": 7}}');
    expect((await named(path)).config).toEqual({ jobs: 7 });
    await write('package.json', '{"name": "app"}');
    expect((await named(path)).config).toEqual({});
  });

  it.each([
    ['certFile', 'keyFile'],
    ['keyFile', 'certFile'],
  ])('that says %s says %s too', async (key, other) => {
    const path = await write('named.yaml', `registries:\n  ghcr.io:\n    ${key}: a.pem\n`);
    expect((await failure(named(path))).message).toContain(`3:5: "registries.ghcr.io.${key}" needs "${other}"`);
  });

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
