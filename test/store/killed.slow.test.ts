import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { withDirectory } from '../helpers/registry.ts';
import { buildWriter } from './built-writer.ts';
import { REAL_CLOCK, storeIn } from './drafts.ts';
import { LIST, numberOf } from './writer.ts';

const KILLS = 200;

/** A kill comes so many ms after the first change at the latest; a change takes a few. */
const LATEST = 25;

/** Runs the writer, kills it at some moment, and tells the last number that it said was written. */
async function runAndKill(writer: string, folder: string, moment: number): Promise<number | undefined> {
  const child = spawn(process.execPath, [writer, folder, 'counts'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  const first = new Promise<void>((resolve) => {
    child.stdout.on('data', (piece: Buffer) => {
      output += piece.toString('utf8');
      resolve();
    });
  });
  const closed = once(child, 'close');
  await Promise.race([first, closed]);
  await sleep(moment);
  child.kill('SIGKILL');
  await closed;
  expect(child.signalCode).toBe('SIGKILL');
  const said = output
    .slice(0, output.lastIndexOf('\n') + 1)
    .trimEnd()
    .split('\n')
    .at(-1);
  return said === undefined || said === '' ? undefined : Number(said);
}

describe('a process that is killed while it creates and annotates', () => {
  it(`leaves the old draft or the new one, ${KILLS} times, and nobody has to clean up`, async () => {
    await withDirectory(async (directory) => {
      const writer = await buildWriter(directory);
      const folder = join(directory, 'drafts');
      const left = new Map<string, number>();
      for (let kill = 0; kill < KILLS; kill++) {
        const said = await runAndKill(writer, folder, Math.random() * LATEST);
        for (const name of await readdir(folder)) {
          const kind = name.replace(/^.*\.json\.?/, '').replace(/\..*$/, '');
          left.set(kind, (left.get(kind) ?? 0) + 1);
        }
        const number = numberOf(await storeIn(folder).read(LIST));
        // What it said is there; of what it had not said yet, the last change may be.
        expect(number).toBeGreaterThanOrEqual(said ?? 0);
        expect(number).toBeLessThanOrEqual((said ?? 0) + 1);
      }
      // The kills did hit changes under way.
      expect(left.get('lock') ?? 0).toBeGreaterThan(KILLS / 4);
      // What does not even tell who made it goes when it is old.
      const later = { ...REAL_CLOCK, epoch: () => Date.now() + 700_000 };
      await storeIn(folder, { wait: 0, clock: later }).change(LIST, async (current) => current);
      expect(await readdir(folder)).toHaveLength(1);
    });
    // Two hundred processes are started one after another, on a machine that may be busy.
  }, 400_000);
});
