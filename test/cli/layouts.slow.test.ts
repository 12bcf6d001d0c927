import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedAttested, seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { cli, emptyFolder, parsed } from './program.ts';

let folder: string;
let registry: RunningRegistry;

beforeEach(async () => {
  folder = emptyFolder();
  registry = await startRegistry();
  seedAttested(registry, 't/amd64', '1', { os: 'linux', architecture: 'amd64' });
  seedImage(registry, 't/arm64', '1', { platform: { os: 'linux', architecture: 'arm64' } });
});

afterEach(() => registry.close());

const full = (name: string) => `${registry.host}/${name}`;

describe('OCI image layouts', () => {
  it('are target, further tag and source, and give the same digest as a registry', async () => {
    const out = await cli(folder, [
      'publish',
      'oci:out:1',
      full('t/amd64:1'),
      full('t/arm64:1'),
      '-t',
      full('t/app:1'),
    ]);
    expect(out.exitCode, out.stderr).toBe(0);
    expect(out.stdout).toBe(`${registry.tagOf('t/app', '1')}\n`);
    expect(existsSync(join(folder, 'out', 'oci-layout'))).toBe(true);
    expect(JSON.parse(readFileSync(join(folder, 'out', 'index.json'), 'utf8'))).toMatchObject({
      manifests: [{ digest: out.stdout.trim(), annotations: { 'org.opencontainers.image.ref.name': '1' } }],
    });
    const back = await cli(folder, ['publish', full('t/back:1'), 'oci:out:1']);
    expect(back.exitCode, back.stderr).toBe(0);
    expect(back.stdout).toBe(out.stdout);
    expect(registry.missingFrom('t/back', '1')).toEqual([]);
  });

  it('are inspected and verified as registries are', async () => {
    const out = await cli(folder, ['publish', 'oci:out:1', full('t/amd64:1'), full('t/arm64:1')]);
    expect(out.exitCode, out.stderr).toBe(0);
    expect((await cli(folder, ['inspect', 'oci:out:1', '--digest'])).stdout).toBe(out.stdout);
    const tree = await cli(folder, ['inspect', 'oci:out:1', '--tree']);
    expect(tree.stdout).toMatch(/linux\/amd64 .*\+ attestation/);
    expect(tree.stdout).toContain('linux/arm64');
    for (const flags of [[], ['--deep']]) {
      const verified = await cli(folder, ['verify', 'oci:out:1', ...flags]);
      expect(verified.exitCode, verified.stderr).toBe(0);
      expect(verified.stdout).toContain(out.stdout.trim());
    }
    const json = parsed(await cli(folder, ['verify', 'oci:out:1', '--json']));
    expect(json).toMatchObject({ problems: [], manifests: 4 });
  });

  it('that are not there are exit code 4', async () => {
    for (const words of [
      ['publish', full('t/app:1'), 'oci:none:1'],
      ['inspect', 'oci:none:1'],
      ['verify', 'oci:none:1'],
    ]) {
      const { stderr, exitCode } = await cli(folder, words);
      expect(stderr).toContain('oci:none');
      expect(exitCode, stderr).toBe(4);
    }
    expect(existsSync(join(folder, 'none'))).toBe(false);
  });
});
