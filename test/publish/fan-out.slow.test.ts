import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../helpers/processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MIB = 1024 ** 2;
const SMALL = 64 * MIB;
const LARGE = 512 * MIB;
/** Of the program, in bytes; the same as for one target. */
const LIMIT = 180_000_000;
/**
 * In bytes. A short run ends before node has widened its young generation, to 32 MiB and no further; apart from that peaks
 * of one and the same run differ by some.
 */
const NOISE = 48_000_000;
/** Each byte is made, hashed four times, sent and counted three times. */
const TIMEOUT = 300_000;

let folder: string;
let server: ChildProcess;
let said = '';
let hosts: readonly string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifest-publish-fan-out-'));
  const script = fileURLToPath(new URL('fan-out-server.ts', import.meta.url));
  server = spawn(process.execPath, ['scripts/run-ts.js', script, `${SMALL}`, `${LARGE}`], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => server.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    server.stdout?.on('data', (piece: Buffer) => {
      said += String(piece);
      const ready = /^ready (.+)$/m.exec(said)?.[1];
      if (ready === undefined) return;
      hosts = ready.split(' ');
      resolve();
    });
    server.once('exit', () => reject(new Error(`the registries did not start: ${said}`)));
  });
}, TIMEOUT);

afterAll(async () => {
  server.kill();
  await rm(folder, { recursive: true, force: true });
});

describe('a layer of 512 MiB that is streamed to three registries', () => {
  it('is read once, in less than 180 MB of memory, no more than one of 64 MiB takes', {
    timeout: TIMEOUT,
  }, async () => {
    const small = await copy(SMALL);
    const large = await copy(LARGE);
    expect(small).toBeGreaterThan(0);
    expect(large).toBeLessThan(LIMIT);
    expect(large - small).toBeLessThan(NOISE);
  });
});

/** Copies the image with a layer of this size to all three, and tells the peak of memory. */
async function copy(size: number): Promise<number> {
  const [source, ...targets] = hosts;
  const [first = '', ...others] = targets.map((host) => `${host}/big/of${size}:all`);
  const args = [first, `${source}/big/of${size}:one`, ...others.flatMap((name) => ['-t', name])];
  said = '';
  const bin = join(ROOT, 'bin', 'run.js');
  const done = await run(process.execPath, [bin, 'publish', '--json', ...args], {
    env: { HOME: folder },
    cwd: folder,
    timeout: TIMEOUT,
  });
  expect(done.exitCode, done.stdout + done.stderr).toBe(0);
  const { totals } = JSON.parse(done.stdout) as { totals: { bytesSent: number; retries: number } };
  expect(totals.retries).toBe(0);
  expect(totals.bytesSent).toBeGreaterThanOrEqual(3 * size);
  const layers = [...said.matchAll(/^read \S+ (\d+)$/gm)]
    .map(([, bytes]) => Number(bytes))
    .filter((bytes) => bytes >= MIB);
  expect(layers).toEqual([size]);
  return done.peakMemory;
}
