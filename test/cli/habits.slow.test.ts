import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { startRegistry, writes } from '../helpers/registry.ts';
import { cli, emptyFolder, parsed } from './program.ts';

// What people write who come from elsewhere, or slip. A wrong program would ask Docker Hub: proxies lead nowhere.

let folder: string;
let registry: RunningRegistry;

beforeEach(async () => {
  folder = emptyFolder();
  registry = await startRegistry();
  seedImage(registry, 'w/amd64', '1', { platform: { os: 'linux', architecture: 'amd64' } });
  seedImage(registry, 'w/arm64', '1', { platform: { os: 'linux', architecture: 'arm64' } });
});

afterEach(() => registry.close());

const full = (name: string) => `${registry.host}/${name}`;

function publish(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const nowhere = 'http://127.0.0.1:9';
  return cli(folder, ['publish', ...words], {
    env: { HTTPS_PROXY: nowhere, HTTP_PROXY: nowhere, NO_PROXY: '127.0.0.1', ...env },
  });
}

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

describe('sources that are written first, as with imagetools create -t', () => {
  it.each([[[]], [['--dry-run']]])('do not cost an image its tag: %j', async (flags) => {
    const before = registry.tagOf('w/amd64', '1');
    const words = ['-t', full('w/app:1'), full('w/amd64:1'), full('w/arm64:1'), ...flags];
    const { stdout, stderr, exitCode } = await publish(words);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 7 });
    expect(stderr).toContain(`TARGET ${full('w/amd64:1')} is an image of its own (${before})`);
    expect(stderr).toContain('hint: TARGET comes first: publish TARGET SOURCE...');
    expect(stderr).toContain('TAG_EXISTS (exit 7)');
    expect(registry.tagOf('w/amd64', '1')).toBe(before);
    expect(writes(registry)).toEqual([]);
  });

  it('and by digest: TARGET is missing', async () => {
    const source = `${full('w/amd64')}@${registry.tagOf('w/amd64', '1')}`;
    const { stderr, exitCode } = await publish(['-t', full('w/app:1'), source, full('w/arm64:1')]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('hint: TARGET is missing before the sources');
  });

  it('with a tag alone are warned of, as they are without -t', async () => {
    const { stderr, exitCode } = await publish(['-t', 'latest', full('w/amd64:1'), full('w/arm64:1')]);
    expect(exitCode, stderr).toBe(0);
    expect(stderr).toContain('it is replaced by the list');
  });
});

describe('what is no image', () => {
  it.each(['lists.yaml', 'spec.YML', 'meta.json', 'linux/amd64=meta.json'])('a file: %s', async (word) => {
    for (const words of [[word], [full('w/app:1'), word]]) {
      const { stderr, exitCode } = await publish(words);
      const name = word.replace(/.*=/, '');
      expect(exitCode).toBe(2);
      expect(stderr).toContain(`"${name}" looks like a file`);
      expect(stderr).toContain(`Write -f ${name} for a spec file`);
      expect(stderr).toContain(`docker.io/library/${name}`);
    }
  });

  it('a platform behind a blank, in the command line and in a spec file', async () => {
    const words = ['--expect-platforms', 'linux/amd64', 'linux/arm64', full('w/app:1'), full('w/amd64:1')];
    const { stderr, exitCode } = await publish(words);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('"linux/arm64" is a platform, not an image');
    expect(stderr).toContain('hint: Put a comma between platforms, as in linux/amd64,linux/arm64');
    const spec = write('one.yaml', `target: ${full('w/app:1')}\nsources: [linux/arm64]\n`);
    expect((await publish(['-f', spec])).stderr).toContain('one.yaml:2:11: "linux/arm64" is a platform, not an image');
  });
});

describe('inputs of builds', () => {
  it.each([
    [['--digests-dir', 'digests'], 'publish TARGET --digests-dir digests'],
    [['--template', 'a/ARCH', '--platforms', 'linux/amd64'], 'publish TARGET --template a/ARCH'],
  ])('without TARGET say where it stands: %j', async (words, hint) => {
    const { stderr, exitCode } = await publish(words);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('missing argument TARGET');
    expect(stderr).toContain(`TARGET is the first argument: manifest-publish ${hint}`);
  });

  it('from a variable are named as they were written', async () => {
    const words = [full('w/app:1'), '--from-metadata', 'env:M'];
    const { stderr, exitCode } = await publish(words, { M: 'no JSON' });
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/error: env:M:1:1: /);
  });

  it('are not of bake, but --bake-target is there', async () => {
    const digest = registry.tagOf('w/amd64', '1');
    const build = write(
      'build.json',
      JSON.stringify({ 'containerimage.digest': digest, 'image.name': full('w/amd64:1') }),
    );
    const words = [full('w/app:1'), '--from-metadata', build, '--bake-target', 'app'];
    const { stderr, exitCode } = await publish(words);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(
      '--bake-target is for a file of docker buildx bake, and --from-metadata names none: build.json',
    );
    // Beside one of bake it is another source.
    const bake = write(
      'bake.json',
      JSON.stringify({
        app: { 'containerimage.digest': registry.tagOf('w/arm64', '1'), 'image.name': full('w/arm64:1') },
      }),
    );
    const both = await publish([...words, '--from-metadata', bake]);
    expect(both.exitCode, both.stderr).toBe(0);
  });
});

describe('several lists', () => {
  const spec = () => {
    const list = (name: string, source: string) =>
      `  - { target: '${full(`w/${name}:1`)}', sources: ['${full(source)}'] }\n`;
    return write(
      'lists.yaml',
      `lists:\n${list('one', 'w/gone:1')}${list('two', 'w/amd64:1')}${list('three', 'w/gone:1')}`,
    );
  };

  it('with --keep-going tell a reason once, and the hint of its kind', async () => {
    const { stderr, exitCode } = await publish(['-f', spec(), '--keep-going', '--progress', 'plain']);
    expect(exitCode).toBe(9);
    // Each list was named at a place of its own, so that there are two reasons.
    for (const place of ['lists.yaml:2:', 'lists.yaml:4:']) expect(stderr.split(place), stderr).toHaveLength(2);
    expect(stderr).toContain('3 of 3 lists done');
    expect(stderr).toMatch(/error: 2 of 3 lists failed: [^;]*\n/);
    expect(stderr).not.toContain('Run the same command again');
    const document = parsed(await publish(['-f', spec(), '--keep-going', '--json']));
    expect(document).toMatchObject({ error: { message: expect.stringContaining('; the first because ') as string } });
    expect((await publish(['-f', spec(), '--keep-going', '-q'])).stderr).toContain('; the first because ');
  });

  it('may be gone through with --keep-going where there is one', async () => {
    const words = [full('w/app:1'), full('w/amd64:1'), '--keep-going'];
    expect((await publish(words)).exitCode).toBe(0);
  });
});

it('an image that is named twice is said to be', async () => {
  const { stderr, exitCode } = await publish([full('w/app:1'), full('w/amd64:1'), full('w/amd64:1')]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('the image for linux/amd64 is named twice');
  expect(stderr).toContain('hint: Leave one of the two out');
});

describe('a layout', () => {
  it('is not told as another registry, and heals as the hint of verify --deep says', async () => {
    const made = await publish(['oci:out:1', full('w/amd64:1')]);
    expect(made.exitCode, made.stderr).toBe(0);
    expect(made.stderr).toContain('nothing is mounted into a layout');
    const back = await publish([full('w/back:1'), 'oci:out:1']);
    expect(back.stderr).toContain('source in a layout');
    expect(`${made.stderr}${back.stderr}`).not.toContain('another registry');

    const report = parsed(await publish(['oci:out:1', full('w/amd64:1'), '--dry-run', '--json']));
    expect(report).toMatchObject({ dryRun: true });
    const layer = (JSON.parse(readFileSync(join(folder, layerOf()), 'utf8')) as { layers: { digest: string }[] })
      .layers[0];
    const path = join('out', 'blobs', (layer?.digest ?? '').replace(':', '/'));
    const bytes = readFileSync(join(folder, path));
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    writeFileSync(join(folder, path), bytes);
    const broken = await cli(folder, ['verify', '--deep', 'oci:out:1']);
    expect(broken.exitCode).toBe(6);
    expect(broken.stderr).toContain(`Remove the file ${path}; then publish it again.`);
    expect(broken.stdout).not.toContain('download');
    rmSync(join(folder, path));
    await publish(['oci:out:1', full('w/amd64:1')]);
    expect((await cli(folder, ['verify', '--deep', 'oci:out:1'])).exitCode).toBe(0);
  });

  const layerOf = () => join('out', 'blobs', (registry.tagOf('w/amd64', '1') ?? '').replace(':', '/'));

  it('that was named with its digest shows it once', async () => {
    const digest = registry.tagOf('w/amd64', '1');
    const { stdout } = await cli(folder, ['verify', `${full('w/amd64:1')}@${digest}`]);
    expect(stdout.split(`${digest}`)).toHaveLength(2);
  });
});
