import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../helpers/processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MIB = 1024 ** 2;
const GIB = Number(process.env['MP_COPY_GIB'] ?? 1);
const SMALL = 100 * MIB;
const LARGE = GIB * 1024 * MIB;
/** Of the program, in bytes. */
const LIMIT = 180_000_000;
/**
 * In bytes. A short run ends before node has widened its young generation, to 32 MiB and no further; apart from that peaks
 * of one and the same run differ by some.
 */
const NOISE = 48_000_000;
/** One busy core makes, hashes, sends, hashes again and counts less than 100 MiB a second; the digest is computed twice. */
const TIMEOUT = 120_000 + GIB * 120_000;

let folder: string;
let server: ChildProcess;
let hosts: { readonly source: string; readonly target: string };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifest-publish-copy-'));
  const script = fileURLToPath(new URL('copy-server.ts', import.meta.url));
  server = spawn(process.execPath, ['scripts/run-ts.js', script, `${SMALL}`, `${LARGE}`], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => server.kill('SIGKILL'));
  let said = '';
  for await (const piece of server.stdout ?? []) {
    said += piece;
    const [, source, target] = /^ready (\S+) (\S+)$/m.exec(said) ?? [];
    if (source === undefined || target === undefined) continue;
    hosts = { source, target };
    return;
  }
  throw new Error(`the registries did not start: ${said}`);
}, TIMEOUT);

afterAll(async () => {
  server.kill();
  await rm(folder, { recursive: true, force: true });
});

describe(`a layer of ${GIB} GiB that is streamed from one registry to another`, () => {
  it('takes less than 180 MB of memory, and no more than one of 100 MiB', { timeout: TIMEOUT }, async () => {
    const small = await copy(SMALL);
    const large = await copy(LARGE);
    expect(small).toBeGreaterThan(0);
    expect(large).toBeLessThan(LIMIT);
    expect(large - small).toBeLessThan(NOISE);
  });
});

/** Copies the image with a layer of this size, looks for it in the target, and tells the peak of memory. */
async function copy(size: number): Promise<number> {
  const repository = `big/of${size}`;
  const args = [`${hosts.target}/${repository}:all`, `${hosts.source}/${repository}:one`];
  const bin = join(ROOT, 'bin', 'run.js');
  const done = await run(process.execPath, [bin, 'publish', '--json', ...args], {
    env: { HOME: folder },
    cwd: folder,
    timeout: TIMEOUT,
  });
  expect(done.exitCode, done.stderr).toBe(0);
  const { totals } = JSON.parse(done.stdout) as { totals: { bytesSent: number; retries: number } };
  expect(totals.retries).toBe(0);
  expect(totals.bytesSent).toBeGreaterThanOrEqual(size);
  const manifest = JSON.parse(await get('GET', `/v2/${repository}/manifests/one`, hosts.source)) as {
    layers: { digest: string }[];
  };
  const path = `/v2/${repository}/blobs/${manifest.layers[0]?.digest}`;
  expect(await get('HEAD', path, hosts.target)).toBe(String(size));
  return done.peakMemory;
}

/** The body; of a HEAD the length that it tells. */
function get(method: string, path: string, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'application/vnd.oci.image.manifest.v1+json' };
    const sending = request(`http://${host}${path}`, { method, headers }, (answer) => {
      let body = '';
      answer.on('data', (piece) => {
        body += piece;
      });
      answer.on('end', () => resolve(method === 'HEAD' ? `${answer.headers['content-length']}` : body));
    });
    sending.on('error', reject);
    sending.end();
  });
}
