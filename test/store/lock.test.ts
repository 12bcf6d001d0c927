import { mkdir, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { annotateDraft } from '../../src/store/annotate.ts';
import type { DraftStore, StoredDraft } from '../../src/store/draft.ts';
import { draftFileName } from '../../src/store/file-name.ts';
import { withDirectory } from '../helpers/registry.ts';
import { fakeClock, imageEntry, linux, REAL_CLOCK, storedDraft, storeIn, thisProcess } from './drafts.ts';

const APP = 'docker.io/acme/app:1';
const SOURCE = 'docker.io/acme/a:1';
const made = storedDraft(APP, imageEntry(SOURCE, linux('amd64')));
const NAME = `${draftFileName(APP)}.json`;

/** Adds an annotation, so that a lost change is seen. */
const note = (store: DraftStore, key: string): Promise<void> =>
  store.change(APP, async (current) => noted(current ?? made, key));

function noted(stored: StoredDraft, key: string): StoredDraft {
  const name = { source: SOURCE, shown: { list: APP, source: SOURCE } };
  return { ...stored, draft: annotateDraft(stored.draft, name, { platform: {}, annotations: { [key]: '' } }).draft };
}

async function notes(store: DraftStore): Promise<readonly string[]> {
  const read = await store.read(APP);
  const changes = read?.draft.entries[0]?.children[0]?.changes;
  return Object.keys(changes?.annotations ?? {}).sort();
}

/** A lock as another process would have left it. */
async function leaveLock(folder: string, owner: object | string, token = 'left', kind = 'lock'): Promise<string> {
  const lock = join(folder, `${NAME}.${kind}`);
  await mkdir(lock, { recursive: true });
  const text = typeof owner === 'string' ? owner : JSON.stringify(owner);
  await writeFile(join(lock, `owner-${token}`), text);
  await writeFile(join(lock, `draft-${token}`), '{"half":');
  return lock;
}

const HERE = { ...thisProcess(), host: 'here' };
const DEAD = { ...HERE, isAlive: () => false };
const ALIVE = { ...HERE, isAlive: () => true };

describe('changes at the same time', () => {
  it('follow one another: none is lost', async () => {
    await withDirectory(async (folder) => {
      const stores = [storeIn(folder), storeIn(folder, { writer: { ...HERE, pid: 1, isAlive: () => true } })];
      const keys = Array.from({ length: 20 }, (_, place) => `k${place}`);
      await Promise.all(keys.map((key, place) => note(stores[place % 2] ?? storeIn(folder), key)));
      expect(await notes(storeIn(folder))).toEqual([...keys].sort());
      expect(await readdir(folder)).toEqual([NAME]);
    });
  });

  it('of different lists do not wait for each other', async () => {
    await withDirectory(async (folder) => {
      const store = storeIn(folder, { wait: 0 });
      const other = storedDraft('docker.io/acme/app:2', imageEntry(SOURCE, linux('amd64')));
      await store.change(APP, async () => {
        await store.change(other.draft.reference, async () => other);
        return made;
      });
      expect((await store.list()).drafts).toHaveLength(2);
    });
  });

  it('are waited for, and named when they take too long', async () => {
    await withDirectory(async (folder) => {
      const clock = fakeClock();
      const store = storeIn(folder, { clock, writer: ALIVE });
      await note(store, 'before');
      const lock = await leaveLock(folder, { pid: 4711, host: 'here', epoch: clock.epoch() });
      await expect(note(store, 'late')).rejects.toMatchObject({
        code: 'FILE_FAILED',
        exitCode: 8,
        message: `${join(folder, NAME)} is locked by process 4711 on "here" since 2023-11-14T22:13:20.000Z`,
      });
      expect(clock.now()).toBeGreaterThanOrEqual(10_000);
      expect(clock.now()).toBeLessThan(11_000);
      expect(await notes(store)).toEqual(['before']);
      expect((await readdir(folder)).sort()).toEqual([NAME, `${NAME}.lock`]);
      expect((await readdir(lock)).sort()).toEqual(['draft-left', 'owner-left']);
    });
  });

  it('end with the signal', async () => {
    await withDirectory(async (folder) => {
      await leaveLock(folder, { pid: 4711, host: 'here', epoch: Date.now() });
      const store = storeIn(folder, {
        writer: ALIVE,
        signal: AbortSignal.abort(new Error('interrupted')),
        clock: fakeClock(Date.now()),
      });
      await expect(note(store, 'x')).rejects.toThrow('interrupted');
      expect(await readdir(folder)).toEqual([`${NAME}.lock`]);
    });
  });
});

describe('a lock that nobody will give back is taken over', () => {
  const now = 1_700_000_000_000;
  it.each<[string, object | string, typeof HERE, boolean]>([
    ['its process has ended', { pid: 4711, host: 'here', epoch: now }, DEAD, true],
    ['its process still runs', { pid: 4711, host: 'here', epoch: now }, ALIVE, false],
    ['it is of another machine', { pid: 4711, host: 'there', epoch: now }, DEAD, false],
    ['it is of another machine, and old', { pid: 4711, host: 'there', epoch: now - 600_001 }, DEAD, true],
    ['it is not that old', { pid: 4711, host: 'there', epoch: now - 580_000 }, DEAD, false],
    ['it is from the future', { pid: 4711, host: 'here', epoch: now + 700_000 }, ALIVE, true],
    ['an earlier process had our number', { pid: HERE.pid, host: 'here', epoch: now }, ALIVE, true],
  ])('%s', async (_when, owner, writer, taken) => {
    await withDirectory(async (folder) => {
      await leaveLock(folder, owner);
      const store = storeIn(folder, { clock: fakeClock(now), writer });
      if (!taken) {
        await expect(note(store, 'x')).rejects.toMatchObject({ code: 'FILE_FAILED' });
        return;
      }
      await note(store, 'x');
      expect(await notes(store)).toEqual(['x']);
      expect(await readdir(folder)).toEqual([NAME]);
    });
  });

  it.each<[string, string]>([
    ['no text', ''],
    ['half a text', '{"pid":47'],
    ['nonsense', '{"pid":"x","host":7,"epoch":1e300}'],
  ])('its owner wrote %s: only its age counts', async (_what, text) => {
    await withDirectory(async (folder) => {
      const clock = fakeClock(Date.now());
      const store = storeIn(folder, { clock, writer: DEAD });
      const lock = await leaveLock(folder, text);
      await expect(note(store, 'x')).rejects.toMatchObject({
        message: expect.stringContaining('another process since'),
      });
      await utimes(lock, 0, 0);
      await note(store, 'x');
      expect(await readdir(folder)).toEqual([NAME]);
    });
  });

  it('it is empty: its owner was killed while giving it back', async () => {
    await withDirectory(async (folder) => {
      await mkdir(join(folder, `${NAME}.lock`));
      const store = storeIn(folder, { wait: 0 });
      await note(store, 'x');
      expect(await readdir(folder)).toEqual([NAME]);
    });
  });

  it('and so is what killed processes prepared', async () => {
    await withDirectory(async (folder) => {
      await leaveLock(folder, { pid: 4711, host: 'here', epoch: Date.now() }, 'a', 'new.a');
      await leaveLock(folder, { pid: 4711, host: 'there', epoch: Date.now() }, 'b', 'new.b');
      await leaveLock(folder, { pid: 4711, host: 'there', epoch: Date.now() }, 'c', 'dead.c');
      await writeFile(join(folder, `${NAME}.new.d`), 'no folder');
      await note(storeIn(folder, { writer: DEAD }), 'x');
      expect((await readdir(folder)).sort()).toEqual([NAME, `${NAME}.new.b`, `${NAME}.new.d`]);
    });
  });
});

/** Takes everybody else for dead. */
const DOUBTER = { ...DEAD, pid: 1 };

describe('a holder that was only thought dead', () => {
  it('writes nothing, begins anew and keeps what came in between', async () => {
    await withDirectory(async (folder) => {
      const [store, other] = [storeIn(folder, { writer: ALIVE }), storeIn(folder, { writer: DOUBTER })];
      let times = 0;
      await store.change(APP, async (current) => {
        times += 1;
        // The other store takes us for dead, and the lock over.
        if (times === 1) await note(other, 'between');
        return noted(current ?? made, 'late');
      });
      expect(times).toBe(2);
      expect(await notes(store)).toEqual(['between', 'late']);
      expect(await readdir(folder)).toEqual([NAME]);
    });
  });

  it('writes nothing while the next one holds the lock', async () => {
    await withDirectory(async (folder) => {
      const [store, other] = [storeIn(folder, { writer: ALIVE }), storeIn(folder, { writer: DOUBTER })];
      let second: Promise<void> | undefined;
      let end = (): void => undefined;
      await store.change(APP, async (current) => {
        if (second !== undefined) return noted(current ?? made, 'late');
        await new Promise<void>((holds) => {
          second = other.change(APP, async (before) => {
            holds();
            await new Promise<void>((resolve) => {
              end = resolve;
            });
            return noted(before ?? made, 'between');
          });
        });
        // Comes back while the other one has it, and finds it taken until it is given back.
        setTimeout(end, 50);
        return noted(current ?? made, 'late');
      });
      await second;
      expect(await notes(store)).toEqual(['between', 'late']);
      expect(await readdir(folder)).toEqual([NAME]);
    });
  });

  it('gives up when it never comes through', async () => {
    await withDirectory(async (folder) => {
      const lock = join(folder, `${NAME}.lock`);
      const lost = storeIn(folder).change(APP, async () => {
        await rm(lock, { recursive: true });
        return made;
      });
      await expect(lost).rejects.toMatchObject({ code: 'FILE_FAILED', message: expect.stringContaining('10 times') });
      expect(await readdir(folder)).toEqual([]);
    });
  });

  it("does not give back the next one's lock", async () => {
    await withDirectory(async (folder) => {
      const lock = join(folder, `${NAME}.lock`);
      const store = storeIn(folder);
      await store.change(APP, async () => {
        await rename(lock, `${lock}-away`);
        await leaveLock(folder, { pid: 4711, host: 'here', epoch: Date.now() });
        return undefined;
      });
      expect((await readdir(lock)).sort()).toEqual(['draft-left', 'owner-left']);
    });
  });

  it('and whose preparation was swept away prepares again', async () => {
    await withDirectory(async (folder) => {
      const lock = await leaveLock(folder, { pid: 4711, host: 'here', epoch: Date.now() });
      const clock = {
        ...REAL_CLOCK,
        sleep: async () => {
          for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
          await rm(lock, { recursive: true, force: true });
        },
      };
      const store = storeIn(folder, { writer: ALIVE, clock });
      await note(store, 'x');
      expect(await notes(store)).toEqual(['x']);
    });
  });
});
