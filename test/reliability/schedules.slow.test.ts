import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runSchedule } from './run-schedule.ts';
import { type Schedule, schedules } from './schedule.ts';

const COUNT = Number(process.env['MP_SCHEDULES'] ?? 1000);
/** The first of as many numbers as there are schedules; `MP_SCHEDULE` repeats one of them alone. */
const ONLY = process.env['MP_SCHEDULE'];
const FIRST = Number(ONLY ?? fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 30);
/** More than this need not be seen of one fault. */
const ENOUGH = 10;

describe('random faults', () => {
  it(`break no promise, and the next run finishes the job (${COUNT} schedules from ${FIRST} on)`, {
    timeout: COUNT * 500 + 60_000,
  }, async () => {
    const failed: string[] = [];
    const exits: Record<number, number> = {};
    const last = FIRST + (ONLY === undefined ? COUNT : 1);
    for (let number = FIRST; number < last && failed.length < ENOUGH; number += 1) {
      const schedule = scheduleOf(number);
      const { problems, exitCode } = await runSchedule(schedule);
      exits[exitCode] = (exits[exitCode] ?? 0) + 1;
      if (problems.length > 0) failed.push(tell(number, schedule, problems));
    }
    expect(failed.join('\n\n')).toBe('');
    // Faults that touch nothing would prove nothing.
    if (COUNT >= 1000 && ONLY === undefined) {
      expect(Object.keys(exits)).toEqual(expect.arrayContaining(['0', '3', '4', '5', '6', '143']));
      expect(exits[0]).toBeLessThan(COUNT * 0.8);
    }
  });
});

/** What was found on the way, spelled out: whatever the generator makes of a number some day, these stay. */
const FOUND: Readonly<Record<string, Schedule>> = {
  // The tag's PUT was carried out, its answer never came, and by the time of the second try the login had ended: the
  // error said that no tag had moved.
  'a PUT of the tag that was carried out unanswered, and is turned away when it is sent again': {
    images: [5],
    elsewhere: 0,
    docker: false,
    tags: 1,
    old: 'none',
    guarded: false,
    verify: true,
    auth: 'basic',
    profile: {},
    requests: 3,
    jobs: 4,
    retries: 5,
    upload: 'auto',
    seed: 1903883759,
    faults: [
      { at: 'target', operation: 'manifestPut', onTags: true, action: { kind: 'loseAnswer' } },
      {
        at: 'target',
        operation: 'manifestPut',
        onTags: true,
        nth: 2,
        times: 8,
        action: { kind: 'answer', status: 401, body: '{"errors":[]}', headers: { 'Content-Type': 'application/json' } },
      },
    ],
  },
  // The rest of the same: here the tag cannot be read either, and may have moved for all that is known.
  'the same, and the tag cannot be read any more': {
    images: [5, 2],
    elsewhere: 0,
    docker: false,
    tags: 1,
    old: 'other',
    guarded: false,
    verify: true,
    auth: 'basic',
    profile: {},
    requests: 3,
    jobs: 4,
    retries: 5,
    upload: 'auto',
    seed: 1,
    faults: [
      { at: 'target', operation: 'manifestPut', onTags: true, action: { kind: 'loseAnswer' } },
      {
        at: 'target',
        operation: 'manifestPut',
        onTags: true,
        nth: 2,
        times: 8,
        action: { kind: 'answer', status: 403 },
      },
      {
        at: 'target',
        operation: 'manifestGet',
        onTags: true,
        nth: 2,
        times: 8,
        action: { kind: 'answer', status: 403 },
      },
    ],
  },
  // Two tags were on their way when the run was ended: the error told of one of them.
  'a run that is ended while it moves several tags': {
    images: [6, 7, 5],
    elsewhere: 3,
    docker: true,
    tags: 3,
    old: 'overlapping',
    guarded: true,
    verify: true,
    auth: 'bearer',
    profile: {
      mount: { mode: 'off(403)' },
      upload: {
        location: 'absolute',
        state: '_state',
        cancel: '204',
        status: 'right',
        put: '201',
        patch: 'ranged',
        stale: '404',
        commit: 'ok',
      },
      manifest: { headMissing: '404', childError: '400 MANIFEST_BLOB_UNKNOWN' },
    },
    requests: 64,
    jobs: 4,
    retries: 1,
    upload: 'auto',
    seed: 0,
    faults: [
      { at: 'source', operation: 'token', nth: 1, times: 2, action: { kind: 'reset', when: 'before' } },
      { at: 'target', operation: 'uploadPatch', nth: 1, times: 3, action: { kind: 'corrupt', at: 694 } },
      { at: 'target', operation: 'uploadGet', nth: 1, times: 8, action: { kind: 'loseAnswer' } },
    ],
    endAt: 35,
  },
  // The tag's PUT was carried out unanswered, and the next one was answered with a blob that is missing, for ever: the
  // error said that no tag had moved.
  'a PUT of the tag that was carried out unanswered, and then lacks a blob by the registry': {
    images: [1, 4],
    elsewhere: 1,
    docker: true,
    tags: 1,
    old: 'overlapping',
    guarded: false,
    verify: false,
    auth: 'bearer',
    profile: {
      mount: { mode: 'ignore' },
      upload: {
        location: 'absolute',
        state: '_stateHash',
        cancel: '204',
        status: '405',
        put: '201',
        patch: 'ranged',
        stale: '416',
        commit: 'loseAnswer',
      },
      manifest: { headMissing: '404', childError: '404 BLOB_UNKNOWN' },
    },
    requests: 2,
    jobs: 1,
    retries: 1,
    upload: 'auto',
    seed: 2147483643,
    faults: [
      {
        at: 'target',
        operation: 'manifestPut',
        onTags: true,
        nth: 3,
        times: 8,
        action: {
          kind: 'answer',
          status: 404,
          body: '{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"scripted"}]}',
          headers: {},
        },
      },
      { at: 'target', operation: 'manifestPut', nth: 1, times: 8, action: { kind: 'loseAnswer' } },
    ],
  },
  // A chunk that was refused after others had been taken: the session was cancelled where it had begun, not where it
  // stood, and stayed open.
  'a chunk that is refused after others were taken': {
    images: [5],
    elsewhere: 0,
    docker: true,
    tags: 1,
    old: 'none',
    guarded: true,
    verify: true,
    auth: 'bearer',
    profile: {
      mount: { mode: 'off(403)' },
      upload: {
        location: 'relative',
        state: '_state',
        cancel: '204',
        status: 'right',
        put: '201',
        patch: 'ranged',
        stale: '404',
        commit: 'ok',
      },
    },
    requests: 2,
    jobs: 1,
    retries: 2,
    upload: 'chunks',
    seed: 28,
    faults: [
      { at: 'target', operation: 'uploadPatch', nth: 2, times: 8, action: { kind: 'answer', status: 403, body: '' } },
    ],
  },
  // A 401 whose token server has no address took the place of the login that had worked until then, so that nothing
  // could be cancelled any more.
  'a challenge that names no address, after the login has worked': {
    images: [1, 2],
    elsewhere: 0,
    docker: true,
    tags: 1,
    old: 'none',
    guarded: false,
    verify: false,
    auth: 'basic',
    profile: {
      mount: { mode: 'off(404)' },
      upload: {
        location: 'relative',
        state: '_state',
        cancel: '204',
        status: 'plusOne',
        put: '201',
        patch: 'none(405)',
        stale: '404',
        commit: 'ok',
      },
    },
    requests: 8,
    jobs: 1,
    retries: 5,
    upload: 'auto',
    seed: 89694750,
    faults: [
      {
        at: 'target',
        operation: 'uploadPut',
        nth: 1,
        action: {
          kind: 'answer',
          status: 401,
          body: '{"errors":[]}',
          headers: { 'WWW-Authenticate': 'Bearer realm="/token",service="x"' },
        },
      },
    ],
    endAt: 23,
  },
};

describe('a schedule that was found', () => {
  it.each(Object.entries(FOUND))('%s', async (_, schedule) => {
    expect((await runSchedule(schedule)).problems).toEqual([]);
  });
});

function scheduleOf(number: number): Schedule {
  const [schedule] = fc.sample(schedules, { seed: number, numRuns: 1 });
  if (schedule === undefined) throw new Error('no schedule');
  return schedule;
}

function tell(number: number, schedule: Schedule, problems: readonly string[]): string {
  return [
    ...problems,
    `again: MP_SCHEDULE=${number} npx vitest run --project faults test/reliability/schedules`,
    JSON.stringify(schedule),
  ].join('\n');
}
