import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import {
  makeImage,
  putBuilt,
  type RunningRegistry,
  seedDebian,
  startRegistry,
  type TagMove,
} from '../../src/registry-server/index.ts';
import { makeRandom, type Random } from '../peers/random.ts';
import { type Ended, runProgram, startProgram } from './child.ts';

const ROUNDS = Number(process.env['MP_RACES'] ?? 1);
const SEED = Number.isInteger(Number(process.env['FC_SEED'])) ? Number(process.env['FC_SEED']) : Date.now() % 2 ** 31;
const PUBLISHERS = 16;
const TARGET = 'debian/debian';
const TAG = 'bullseye';

/** Every publisher's list: another choice of the eight images for each, or another order. */
type Publisher = { readonly args: readonly string[]; readonly list: string };

/** How one publisher ended; `moves` are the tag's from its start to its end. */
type Finish = Ended & { readonly list: string; readonly killed: boolean; readonly moves: readonly TagMove[] };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifest-publish-races-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What is promised of a round, whatever the guard: in words, what was not so. */
function judge(finishes: readonly Finish[], moves: readonly TagMove[], old: string | undefined): string[] {
  const lists = new Set(finishes.map(({ list }) => list));
  const problems: string[] = [];
  for (const { from, to, missing } of moves) {
    if (to === undefined || !lists.has(to)) problems.push(`the tag moved to ${to}, which is nobody's list`);
    if (from !== old && (from === undefined || !lists.has(from))) problems.push(`the tag had held ${from}`);
    if (missing.length > 0) problems.push(`the tag moved to ${to} while ${missing.length} things were missing`);
  }
  for (const { killed, exitCode, stdout, list, moves: own } of finishes) {
    if (exitCode !== 0) continue;
    if (stdout !== `${list}\n`) problems.push(`a publisher of ${list} printed ${stdout}`);
    if (!killed && !own.some(({ to }) => to === list)) problems.push(`exit 0, but the tag never held ${list}`);
  }
  for (const { killed, exitCode, stderr } of finishes) {
    if (!killed && exitCode !== 0 && exitCode !== 7) problems.push(`a publisher ended with ${exitCode}: ${stderr}`);
  }
  return problems;
}

/** With a guard: who ends with 0 has seen its own list after its PUT, who ends with 7 says whether it moved the tag. */
function judgeGuard(finishes: readonly Finish[], moves: readonly TagMove[], final: string | undefined): string[] {
  const problems: string[] = [];
  for (const { killed, exitCode, stderr, list } of finishes) {
    if (killed || exitCode !== 7) continue;
    const moved = moves.some(({ to }) => to === list);
    const says = stderr.includes('somebody else changed it');
    if (moved !== says) problems.push(`${list} ${moved ? 'was' : 'was not'} put, and the publisher says: ${stderr}`);
  }
  const winner = finishes.find(({ list }) => list === final);
  if (winner === undefined) problems.push(`nobody won: the tag holds ${final}`);
  else if (!winner.killed && winner.exitCode !== 0) problems.push(`the winner ended with ${winner.exitCode}`);
  return problems;
}

/** Sixteen at once; some are killed when the registry has answered a number of requests drawn by lot. */
async function race(
  registry: RunningRegistry,
  publishers: readonly Publisher[],
  flags: readonly string[],
  random: Random,
  answered: Set<() => void>,
): Promise<readonly Finish[]> {
  return Promise.all(
    publishers.map(async ({ args, list }): Promise<Finish> => {
      const since = registry.tagMoves.length;
      const { child, ended } = startProgram(folder, ['publish', ...flags, ...args]);
      let left = random.below(5) === 0 ? random.below(PUBLISHERS * 60) : Number.POSITIVE_INFINITY;
      const count = () => {
        left -= 1;
        if (left === 0) child.kill('SIGKILL');
      };
      answered.add(count);
      const end = await ended;
      answered.delete(count);
      return { ...end, list, killed: child.signalCode === 'SIGKILL', moves: registry.tagMoves.slice(since) };
    }),
  );
}

async function round(
  mode: 'exists' | 'ignore',
  guard: 'none' | 'expect' | 'clobber',
  random: Random,
): Promise<string[]> {
  const answered = new Set<() => void>();
  const registry = await startRegistry({
    changes: { mount: { mode } },
    onEntry: () => {
      for (const count of answered) count();
    },
  });
  try {
    const images = seedDebian(registry, { layers: 2 }).map(({ repository }) => `${registry.host}/${repository}:${TAG}`);
    const old = guard === 'clobber' ? undefined : putBuilt(registry, TARGET, makeImage('before them all'), TAG);
    const target = `${registry.host}/${TARGET}:${TAG}`;
    const chosen = new Map<string, readonly string[]>();
    while (chosen.size < PUBLISHERS) {
      const some = random.shuffled(images).slice(0, 2 + random.below(images.length - 1));
      chosen.set(some.join(' '), some);
    }
    const publishers: Publisher[] = [];
    for (const sources of chosen.values())
      publishers.push({ args: [target, ...sources], list: listOf(registry, sources) });
    const flags = { none: [], expect: [`--expect-digest=${old}`], clobber: ['--no-clobber'] }[guard];
    const finishes = await race(registry, publishers, flags, random, answered);
    const moves = registry.tagMoves;
    const problems = judge(finishes, moves, old);
    const final = registry.tagOf(TARGET, TAG);
    if (guard === 'none') return [...problems, ...notAllDone(finishes)];
    const held = moves.length === 0 ? [] : judgeGuard(finishes, moves, final);
    const [late] = publishers.filter(({ list }) => list !== final);
    const after = await runProgram(folder, ['publish', ...flags, ...(late?.args ?? [])]);
    if (moves.length > 0 && after.exitCode !== 7) held.push(`who comes later ended with ${after.exitCode}`);
    if (moves.length > 0 && registry.tagOf(TARGET, TAG) !== final) held.push('who came later moved the tag');
    return [...problems, ...held];
  } finally {
    await registry.close();
  }
}

function notAllDone(finishes: readonly Finish[]): readonly string[] {
  return finishes.flatMap(({ killed, exitCode, stderr }) =>
    killed || exitCode === 0 ? [] : [`without a guard nobody is turned away: ${exitCode} ${stderr}`],
  );
}

/** The list as the documentation describes it: entries in the order of the arguments. */
function listOf(registry: RunningRegistry, sources: readonly string[]): string {
  const manifests = sources.map((source) => {
    const repository = source.slice(registry.host.length + 1, -TAG.length - 1);
    const image = registry.manifestOf(repository, TAG);
    const config = JSON.parse(image?.bytes.toString() ?? '').config.digest as string;
    const { architecture, os, variant } = JSON.parse(registry.blobOf(repository, config)?.toString() ?? '');
    const { mediaType, digest, bytes } = image ?? {};
    return { mediaType, size: bytes?.length, digest, platform: { architecture, os, variant } };
  });
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  return digestOf(Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests }, undefined, 2)));
}

describe(`${PUBLISHERS} publishers of one tag, some of them killed (seed ${SEED})`, () => {
  const timeout = 60_000 + ROUNDS * 60_000;
  const rounds = async (guard: 'none' | 'expect' | 'clobber', count: number) => {
    const problems: string[] = [];
    for (let number = 0; number < count; number += 1) {
      const random = makeRandom(SEED + number);
      const mode = number % 2 === 0 ? 'ignore' : 'exists';
      const found = await round(mode, guard, random);
      problems.push(...found.map((problem) => `round ${number}: ${problem}`));
    }
    expect(problems.join('\n')).toBe('');
  };

  it(`leave one complete list at every moment, and every exit 0 was true (${ROUNDS} rounds)`, { timeout }, () =>
    rounds('none', ROUNDS),
  );

  const guarded = Math.ceil(ROUNDS / 4);
  it(`with --expect-digest nobody is told a thing that was not so (${guarded} rounds)`, { timeout }, () =>
    rounds('expect', guarded),
  );

  it(`with --no-clobber the first one keeps the tag from all who come later (${guarded} rounds)`, { timeout }, () =>
    rounds('clobber', guarded),
  );
});
