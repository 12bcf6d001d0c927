import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PublishReport } from '../../src/publish/report.ts';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { startRegistry } from '../helpers/registry.ts';
import { cli, emptyFolder, parsed } from './program.ts';

const folder = emptyFolder();
let registry: RunningRegistry;
let sources: readonly string[];
let target: string;

beforeEach(async () => {
  registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
  sources = seedDebian(registry).map((image) => `${registry.host}/${image.repository}:${image.tag}`);
  target = `${registry.host}/debian/debian:bullseye`;
});

afterEach(() => registry.close());

const published = () => registry.tagOf('debian/debian', 'bullseye');

describe('publish', () => {
  it('prints the digest on stdout and nothing else, also with progress', async () => {
    const { stdout, stderr, exitCode } = await cli(folder, ['publish', target, ...sources, '--progress', 'plain']);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(`${published()}\n`);
    expect(stderr).toContain(target);
    expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
    expect(registry.openSessions()).toBe(0);
  });

  it('takes flags before, between and after the arguments', async () => {
    const [amd64 = '', armel = '', armhf = ''] = sources;
    const args = ['publish', '-t', '11', target, '--tag', 'oldstable', amd64, '-q', armel, armhf, '--tag=stable'];
    const { stdout, stderr, exitCode } = await cli(folder, args);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    expect(registry.tags('debian/debian')).toEqual(['11', 'bullseye', 'oldstable', 'stable']);
    for (const tag of registry.tags('debian/debian')) expect(`${registry.tagOf('debian/debian', tag)}\n`).toBe(stdout);
  });

  it('has nothing to do the second time, and says so with the same digest', async () => {
    const first = await cli(folder, ['publish', target, ...sources]);
    registry.clearJournal();
    const second = await cli(folder, ['publish', target, ...sources, '--json']);
    const report = parsed(second) as unknown as PublishReport;
    expect(second.exitCode).toBe(0);
    expect(`${report.lists[0]?.index?.digest}\n`).toBe(first.stdout);
    expect(report.lists[0]?.targets).toEqual([{ reference: target, digest: published(), action: 'unchanged' }]);
    expect(registry.journal.filter((entry) => !['GET', 'HEAD'].includes(entry.method))).toEqual([]);
  });

  it('--json prints the report, whose totals add up', async () => {
    const finished = await cli(folder, ['publish', target, ...sources, '--json', '--progress', 'none']);
    const report = parsed(finished) as unknown as PublishReport;
    expect(report.schemaVersion).toBe(1);
    expect(report.totals.blobs).toEqual({ present: 0, mounted: 0, copied: 40, skipped: 0 });
    expect(report.totals.requests).toBe(registry.journal.length);
    expect(report.lists[0]?.images).toHaveLength(8);
  });

  it('--dry-run prints the digest that the index would have, and writes nothing', async () => {
    const files = ['--digest-file', 'dry-digest', '--metadata-file', 'dry-metadata', '--report', 'dry-report'];
    const dry = await cli(folder, ['publish', target, ...sources, '--dry-run', ...files]);
    expect(dry.exitCode, dry.stderr).toBe(0);
    expect(dry.stderr).toContain('linux/arm/v7');
    expect(published()).toBeUndefined();
    expect(registry.journal.filter((entry) => !['GET', 'HEAD'].includes(entry.method))).toEqual([]);
    expect(readdirSync(folder).filter((name) => name.includes('dry'))).toEqual(['dry-report']);
    expect(JSON.parse(readFileSync(join(folder, 'dry-report'), 'utf8'))).toMatchObject({ dryRun: true });
    const wet = await cli(folder, ['publish', target, ...sources]);
    expect(wet.stdout).toBe(dry.stdout);
  });

  it('writes digest, metadata and report files', async () => {
    const files = ['--digest-file', 'digest', '--metadata-file', 'metadata', '--report', 'report'];
    const { stdout, exitCode } = await cli(folder, ['publish', target, ...sources, '-t', '11', ...files]);
    expect(exitCode).toBe(0);
    expect(readFileSync(join(folder, 'digest'), 'utf8')).toBe(stdout);
    const { bytes, mediaType } = registry.manifestOf('debian/debian', 'bullseye') ?? {
      bytes: Buffer.of(),
      mediaType: '',
    };
    expect(JSON.parse(readFileSync(join(folder, 'metadata'), 'utf8'))).toEqual({
      'containerimage.descriptor': { mediaType, digest: published(), size: bytes.length },
      'containerimage.digest': published(),
      'image.name': `${target},${registry.host}/debian/debian:11`,
    });
    expect(JSON.parse(readFileSync(join(folder, 'report'), 'utf8'))).toMatchObject({ schemaVersion: 1 });
  });

  it('a file that cannot be written ends it before anything is asked of a registry', async () => {
    const { stdout, stderr, exitCode } = await cli(folder, [
      'publish',
      target,
      ...sources,
      '--digest-file',
      'no/such/digest',
    ]);
    expect(stderr).toContain('--digest-file: no/such/digest (ENOENT)');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 8 });
    expect(registry.journal).toEqual([]);
  });

  it('a source that is missing is exit code 4, and no tag moves', async () => {
    const missing = `${registry.host}/debian/missing:bullseye`;
    const { stdout, stderr, exitCode } = await cli(folder, ['publish', target, ...sources, missing]);
    expect(stderr).toContain(missing);
    expect(stderr).toContain('SOURCE_NOT_FOUND (exit 4)');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
    expect(published()).toBeUndefined();
    const json = await cli(folder, ['publish', target, missing, '--json']);
    expect(parsed(json)).toMatchObject({ error: { code: 'SOURCE_NOT_FOUND', side: 'source', exitCode: 4 } });
    expect(json.exitCode).toBe(4);
  });

  it('platforms that are expected and not there are exit code 4, before anything is written', async () => {
    const { stderr, exitCode } = await cli(folder, [
      'publish',
      target,
      ...sources,
      '--expect-platforms',
      'linux/amd64,linux/riscv64',
    ]);
    expect(stderr).toContain('PLATFORM_NOT_FOUND');
    expect(exitCode).toBe(4);
    expect(registry.journal.filter((entry) => !['GET', 'HEAD'].includes(entry.method))).toEqual([]);
  });

  it('--debug writes one line per request, and no secret', async () => {
    const { stdout, stderr } = await cli(folder, ['publish', target, ...sources.slice(0, 1), '--debug']);
    expect(stdout).toBe(`${published()}\n`);
    for (const { method, path } of registry.journal) expect(stderr).toMatch(new RegExp(`${method} .*${path}`));
  });

  it('a registry that is not there is exit code 5 and names the host', async () => {
    const { stderr, exitCode } = await cli(folder, [
      'publish',
      '127.0.0.1:1/a/b:1',
      '127.0.0.1:1/a/c:1',
      '--retries',
      '0',
    ]);
    expect(stderr).toContain('127.0.0.1:1');
    expect(exitCode).toBe(5);
  });

  it('--timeout ends it with exit code 5 and without a tag', async () => {
    registry.configure({ answer: { latencyMs: 60_000 } });
    const started = performance.now();
    const { stderr, exitCode } = await cli(folder, ['publish', target, ...sources, '--timeout', '300ms']);
    expect(stderr).toContain('TIMED_OUT (exit 5)');
    expect(exitCode).toBe(5);
    expect(performance.now() - started).toBeLessThan(4000);
    expect(published()).toBeUndefined();
  });

  it('uses the login that docker has', async () => {
    registry.configure({ auth: { scheme: 'basic', anonymousPull: false } });
    const refused = await cli(folder, ['publish', target, ...sources]);
    expect(refused.exitCode).toBe(3);
    const config = join(folder, 'docker');
    mkdirSync(config, { recursive: true });
    const auth = Buffer.from('robot:secret').toString('base64');
    writeFileSync(join(config, 'config.json'), JSON.stringify({ auths: { [registry.host]: { auth } } }));
    const allowed = await cli(folder, ['publish', target, ...sources, '--debug'], { env: { DOCKER_CONFIG: config } });
    expect(allowed.exitCode, allowed.stderr).toBe(0);
    expect(allowed.stderr).not.toContain(auth);
    expect(allowed.stderr).not.toContain('secret');
  });

  it('takes defaults from a configuration that it finds', async () => {
    const own = emptyFolder();
    writeFileSync(join(own, 'manifest-publish.yaml'), 'type: docker\nprogress: json\n');
    const { stderr, exitCode } = await cli(own, ['publish', target, ...sources]);
    expect(stderr).toContain('INDEX_TYPE_CONFLICT');
    expect(exitCode).toBe(2);
    const plain = await cli(own, ['publish', target, ...sources, '--type', 'oci', '--progress', 'plain']);
    expect(plain.stderr).toContain('config: manifest-publish.yaml\n');
    const flag = await cli(own, ['publish', target, ...sources, '--type', 'oci']);
    expect(flag.exitCode).toBe(0);
    for (const line of flag.stderr.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
  });
});

describe('inspect', () => {
  it('prints the digest, the bytes, docker’s text, a tree, or JSON', async () => {
    await cli(folder, ['publish', target, ...sources]);
    const { bytes } = registry.manifestOf('debian/debian', 'bullseye') ?? { bytes: Buffer.of() };
    expect((await cli(folder, ['inspect', target, '--digest'])).stdout).toBe(`${published()}\n`);
    expect((await cli(folder, ['inspect', '--raw', target])).stdout).toBe(bytes.toString());
    const text = (await cli(folder, ['inspect', target])).stdout;
    expect(text).toMatch(/^\{\n {3}"schemaVersion": 2,\n/);
    expect(JSON.parse(text).manifests).toHaveLength(8);
    const tree = (await cli(folder, ['inspect', target, '--tree'])).stdout;
    expect(tree.trim().split('\n')).toHaveLength(9);
    expect(parsed(await cli(folder, ['inspect', target, '--json']))).toMatchObject({
      reference: target,
      digest: published(),
      size: bytes.length,
      manifest: JSON.parse(bytes.toString()),
    });
  });

  it('of nothing is exit code 4', async () => {
    const { stdout, stderr, exitCode } = await cli(folder, ['inspect', target]);
    expect(stderr).toContain('MANIFEST_NOT_FOUND');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
  });
});

describe('verify', () => {
  it('is content with what publish left', async () => {
    await cli(folder, ['publish', target, ...sources]);
    for (const flags of [[], ['--deep']]) {
      const { stdout, stderr, exitCode } = await cli(folder, ['verify', target, ...flags]);
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain(String(published()));
    }
  });

  it('finds what is missing: exit code 6, and with --json one document', async () => {
    await cli(folder, ['publish', target, ...sources]);
    const [layer = ''] = seedDebian(registry)[0]?.layers ?? [];
    registry.deleteBlob('debian/debian', layer);
    const { stdout, stderr, exitCode } = await cli(folder, ['verify', target]);
    expect(stdout).toContain(layer.slice(0, 19));
    expect(stderr).toContain('VERIFY_FAILED (exit 6)');
    expect(exitCode).toBe(6);
    const json = await cli(folder, ['verify', target, '--json']);
    expect(json.exitCode).toBe(6);
    expect(parsed(json)).toMatchObject({
      problems: [{ digest: layer }],
      error: { code: 'VERIFY_FAILED', exitCode: 6 },
    });
  });
});

describe('demo', () => {
  it('shows the whole way and ends with the digest', async () => {
    const started = performance.now();
    const { stdout, stderr, exitCode } = await cli(folder, ['demo'], { env: { MANIFEST_PUBLISH_JOBS: 'ignored' } });
    expect(exitCode, stderr).toBe(0);
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(stdout).toContain('linux/arm/v7');
    expect(stdout).toContain('verified');
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^sha256:[a-f0-9]{64}$/);
    expect(existsSync(join(folder, '.local'))).toBe(false);
  });
});
