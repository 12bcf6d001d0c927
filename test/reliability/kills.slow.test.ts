import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeImage, putBuilt, seedDebian, startRegistry } from '../../src/registry-server/index.ts';
import { runProgram } from './child.ts';
import { startGate } from './gate.ts';
import { type Boundary, boundariesOf, killAt } from './kill.ts';

const ALL = process.env['MP_KILLS'] === 'all';
/** Of the two cases together there are 284 requests, each with two sides and two signals. */
const SAMPLE = 8;
const TARGET = 'debian/debian';
const TAG = 'bullseye';

describe.each([
  ['mounts that work', 'exists', 106],
  ['mounts that are refused', 'ignore', 178],
] as const)('a publish of eight architectures with %s', (_, mode, requests) => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'manifest-publish-kills-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const boundaries = boundariesOf(requests, ALL ? 'all' : SAMPLE);
  it(`ended at any of ${requests} requests, is finished by the same command (${boundaries.length} ends)`, {
    timeout: 60_000 + boundaries.length * 10_000,
  }, async () => {
    const problems: string[] = [];
    const left = [...boundaries];
    const lane = async () => {
      for (let boundary = left.shift(); boundary !== undefined; boundary = left.shift()) {
        problems.push(...(await endAndFinish(boundary, mode, folder)));
      }
    };
    // The program is slow to start; two at a time use a second core, if there is one.
    await Promise.all([lane(), lane()]);
    expect(problems.join('\n')).toBe('');
  });

  it('makes as many requests as that', async () => {
    const { count } = await withStage(mode, folder, async ({ gate, args }) => {
      const { exitCode, stderr } = await runProgram(folder, ['publish', ...args]);
      expect(exitCode, stderr).toBe(0);
      return { count: gate.passed.length };
    });
    expect(count).toBe(requests);
  });
});

function endAndFinish(boundary: Boundary, mode: 'exists' | 'ignore', folder: string): Promise<readonly string[]> {
  return withStage(mode, folder, async ({ registry, gate, args, old, list }) => {
    const blobs = new Set(registry.repositories().flatMap((repository) => blobsBelow(registry, repository)));
    const problems = await killAt(boundary, {
      gate,
      folder,
      args,
      repository: TARGET,
      tag: TAG,
      old,
      list,
      held: async () => registry.tagOf(TARGET, TAG),
      blobs: async () => new Set([...blobs].filter((digest) => registry.hasBlob(TARGET, digest))),
      missing: async () => registry.missingFrom(TARGET, TAG),
      sessions: () => (boundary.signal === 'SIGINT' ? registry.openSessions() : undefined),
    });
    const moves = registry.tagMoves.filter(({ to, missing }) => to !== list || missing.length > 0);
    return [...problems, ...moves.map((move) => `the tag moved: ${JSON.stringify(move)}`)];
  });
}

type Staged = {
  readonly registry: Awaited<ReturnType<typeof startRegistry>>;
  readonly gate: Awaited<ReturnType<typeof startGate>>;
  readonly args: readonly string[];
  readonly old: string;
  readonly list: string;
};

/** Digest of the list, which is the same in every stage: two sources of truth would be one too many here. */
let known: string | undefined;

async function withStage<T>(
  mode: 'exists' | 'ignore',
  folder: string,
  use: (staged: Staged) => Promise<T>,
): Promise<T> {
  const registry = await startRegistry({ changes: { mount: { mode } } });
  const gate = await startGate(registry.host);
  try {
    const images = seedDebian(registry);
    // What the tag holds shares nothing with the list, or less would be to be done.
    const old = putBuilt(registry, TARGET, makeImage('something else'), TAG);
    const args = [TARGET, ...images.map(({ repository }) => repository)].map((name) => `${gate.host}/${name}:${TAG}`);
    known ??= (await runProgram(folder, ['publish', '--dry-run', ...args])).stdout.trim();
    gate.watch(() => 'pass');
    return await use({ registry, gate, args, old, list: known });
  } finally {
    await gate.stop();
    await registry.close();
  }
}

function blobsBelow(registry: Staged['registry'], repository: string): readonly string[] {
  return registry.tags(repository).flatMap((tag) => {
    const text = registry.manifestOf(repository, tag)?.bytes.toString() ?? '{}';
    const { config, layers = [] } = JSON.parse(text) as { config?: { digest: string }; layers?: { digest: string }[] };
    return [...(config === undefined ? [] : [config]), ...layers].map(({ digest }) => digest);
  });
}
