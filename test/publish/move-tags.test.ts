import { describe, expect, it } from 'vitest';
import { type ErrorCode, PublishError } from '../../src/errors.ts';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import type { Digest } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import { compose } from '../../src/publish/compose.ts';
import { moveTags } from '../../src/publish/move-tags.ts';
import type { ChildPlacement } from '../../src/publish/place-children.ts';
import type { TagState } from '../../src/publish/resolved.ts';
import type { TagGuard } from '../../src/publish/tag-guard.ts';
import type { ManifestAnswer, PutAnswer } from '../../src/registry/client.ts';
import { fakeClient, fakePorts } from './fakes.ts';
import { blob, child, digest, image, request, resolution, source, withPlatform } from './values.ts';

const one = withPlatform(child('t/amd64', image('amd64', [blob('layer')])), { os: 'linux', architecture: 'amd64' });
const composition = compose(request(), resolution([source(one)]), new Map(), new Map());
const OURS = composition.index.digest;
const OLD = digest('old');
const OTHER = digest('other');
const NAME = 'reg.test/t/all:1';

function error(code: ErrorCode): PublishError {
  return new PublishError(code, code.toLowerCase(), 'hint', { registry: 'reg.test' });
}

type Held = Digest | 'nothing' | 'unknown';

function answerOf(held: Held): ManifestAnswer {
  if (held === 'nothing') return { kind: 'absent', error: error('MANIFEST_NOT_FOUND') };
  if (held === 'unknown') return { kind: 'unknown', error: error('DENIED') };
  return { kind: 'found', manifest: { bytes: Buffer.alloc(0), digest: held, contentType: MEDIA_TYPES.ociIndex } };
}

/** Moves one tag. `reads`: what it holds each time it is read, the last for ever; a missing one fails the test. */
async function move(options: {
  readonly before: Held;
  readonly put?: PutAnswer | PublishError;
  readonly reads?: readonly Held[];
  readonly guard?: TagGuard;
  /** Tags that are not there yet, whose PUT fails with that. */
  readonly others?: Readonly<Record<string, PublishError>>;
}) {
  const { before, put = { kind: 'stored' }, reads = [], guard, others = {} } = options;
  let read = 0;
  let puts = 0;
  const client = fakeClient('reg.test', {
    ...(reads.length === 0
      ? {}
      : { getManifest: async () => answerOf(reads[Math.min(read++, reads.length - 1)] ?? 'unknown') }),
    putManifest: async (_repository, tag) => {
      puts += 1;
      const failure = others[tag];
      if (failure !== undefined) throw failure;
      if (put instanceof PublishError) throw put;
      return put;
    },
  });
  // A look that has its own end must not be cut by a clock that does not wait.
  const ports = fakePorts([client]);
  const { slept } = ports;
  const clock = {
    ...ports.clock,
    sleep: (milliseconds: number, signal: AbortSignal) =>
      milliseconds === 5000
        ? new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        : Promise.resolve(void slept.push(milliseconds)),
  };
  const reference = parseReference(NAME);
  const state = { reference, tag: '1' } as const;
  const tag: TagState =
    before === 'nothing'
      ? { ...state, kind: 'absent' }
      : before === 'unknown'
        ? { ...state, kind: 'unknown', error: error('DENIED') }
        : { ...state, kind: 'present', digest: before, isImage: false, children: [] };
  const placement = { repair: async () => 'nothing missing' } as unknown as ChildPlacement;
  const more = Object.keys(others).map((name): TagState => {
    return { kind: 'absent', reference: parseReference(`reg.test/t/all:${name}`), tag: name };
  });
  const outcome = await moveTags([tag, ...more], {
    target: { host: 'reg.test', repository: 't/all' },
    registry: client,
    composition,
    placement,
    guard,
    ports: { ...ports, clock },
    signal: new AbortController().signal,
  }).then(
    ([target]) => target?.action,
    (thrown: unknown) => thrown,
  );
  return { outcome, reads: read, puts, slept, events: ports.events };
}

describe('a tag that is put', () => {
  it('is not read again after a 201', async () => {
    expect(await move({ before: 'nothing' })).toMatchObject({ outcome: 'created', puts: 1, reads: 0 });
    expect(await move({ before: OLD })).toMatchObject({ outcome: 'updated', puts: 1, reads: 0 });
  });

  const doubt = error('PROTOCOL_VIOLATED');
  it('is read once after another success, and has moved only if it holds the index', async () => {
    const put = { kind: 'stored', doubt } as const;
    expect(await move({ before: OLD, put, reads: [OURS] })).toMatchObject({ outcome: 'updated', reads: 1 });
    expect(await move({ before: OLD, put, reads: [OLD] })).toMatchObject({
      outcome: {
        code: 'PROTOCOL_VIOLATED',
        exitCode: 6,
        moved: [],
        message: expect.stringContaining(`holds ${OLD} now`),
      },
      reads: 1,
    });
    expect((await move({ before: 'nothing', put, reads: ['nothing'] })).outcome).toMatchObject({
      exitCode: 6,
      moved: [],
      message: expect.stringContaining(`${NAME} is not there now`),
    });
    expect((await move({ before: OLD, put, reads: ['unknown'] })).outcome).toMatchObject({
      exitCode: 6,
      moved: [`${NAME} (perhaps)`],
    });
  });

  it('to other bytes, as the registry says, is read, and what it holds is told', async () => {
    const put = error('DIGEST_MISMATCH');
    expect((await move({ before: OLD, put, reads: [OTHER] })).outcome).toMatchObject({
      code: 'DIGEST_MISMATCH',
      moved: [NAME],
      message: expect.stringContaining(`${NAME} holds ${OTHER} now`),
    });
    expect((await move({ before: OLD, put, reads: [OLD] })).outcome).toMatchObject({
      moved: [],
      message: expect.stringContaining(`holds ${OLD} now`),
    });
    expect((await move({ before: 'unknown', put, reads: [OTHER] })).outcome).toMatchObject({
      moved: [`${NAME} (perhaps)`],
    });
    expect((await move({ before: OLD, put, reads: ['unknown'] })).outcome).toMatchObject({
      moved: [`${NAME} (perhaps)`],
    });
    const right = await move({ before: OLD, put, reads: [OURS] });
    expect(right.outcome).toBe('updated');
    expect(right.events).toContainEqual({ kind: 'warning', text: expect.stringContaining('holds the right one') });
  });

  it('beside others tells what may have become of each of them, whichever failure is thrown', async () => {
    const others = { '2': error('NETWORK_FAILED'), '3': error('NETWORK_FAILED'), '4': error('DENIED') };
    const { outcome } = await move({ before: 'nothing', reads: ['unknown'], others });
    const moved = outcome instanceof PublishError ? outcome.moved : [];
    expect([...(moved ?? [])].sort()).toEqual([NAME, 'reg.test/t/all:2 (perhaps)', 'reg.test/t/all:3 (perhaps)']);
  });

  it('where a page answers is read as well', async () => {
    const put = error('PROTOCOL_VIOLATED');
    expect((await move({ before: OLD, put, reads: [OLD] })).outcome).toMatchObject({ exitCode: 6, moved: [] });
  });
});

describe('--no-clobber', () => {
  const guard = { noClobber: true };

  it('reads the tag just before and after its PUT', async () => {
    const done = await move({ before: 'nothing', reads: ['nothing', OURS], guard });
    expect(done).toMatchObject({ outcome: 'created', puts: 1, reads: 2 });
  });

  it('leaves a tag alone that appeared while the run was placing blobs', async () => {
    const done = await move({ before: 'nothing', reads: [OTHER], guard });
    expect(done).toMatchObject({ outcome: { code: 'TAG_EXISTS', exitCode: 7, moved: [] }, puts: 0 });
    expect((done.outcome as PublishError).message).toContain(`${NAME} exists: it holds ${OTHER}`);
  });

  it('is content with a tag that holds the index meanwhile', async () => {
    expect(await move({ before: 'nothing', reads: [OURS], guard })).toMatchObject({ outcome: 'unchanged', puts: 0 });
    expect(await move({ before: OURS, guard })).toMatchObject({ outcome: 'unchanged', puts: 0, reads: 0 });
  });

  it('tells who finds the tag changed after the PUT', async () => {
    const done = await move({ before: 'nothing', reads: ['nothing', OTHER], guard });
    expect(done.outcome).toMatchObject({ code: 'TAG_CHANGED', exitCode: 7, moved: [NAME] });
    expect((done.outcome as PublishError).message).toContain(`was moved to ${OURS}, and now holds ${OTHER}`);
  });

  it('waits 1, 2 and 4 s for a registry that shows the tag late', async () => {
    const late = await move({ before: 'nothing', reads: ['nothing', 'nothing', 'nothing', 'nothing', OURS], guard });
    expect(late).toMatchObject({ outcome: 'created', slept: [1000, 2000, 4000] });
    const never = await move({ before: 'nothing', reads: ['nothing'], guard });
    expect(never).toMatchObject({ outcome: { code: 'TAG_CHANGED', exitCode: 7 }, slept: [1000, 2000, 4000] });
  });

  it('ends when the tag cannot be read', async () => {
    const before = await move({ before: 'nothing', reads: ['unknown'], guard });
    expect(before).toMatchObject({ outcome: { code: 'DENIED', exitCode: 3, moved: [] }, puts: 0 });
    const after = await move({ before: 'nothing', reads: ['nothing', 'unknown'], guard });
    expect(after.outcome).toMatchObject({ code: 'DENIED', exitCode: 3, moved: [NAME] });
  });
});

describe('--expect-digest', () => {
  const guard = { expectDigest: OLD };

  it('moves a tag that holds the expected digest just before', async () => {
    expect(await move({ before: OLD, reads: [OLD, OURS], guard })).toMatchObject({ outcome: 'updated', puts: 1 });
  });

  it.each([OTHER, 'nothing'] as const)('does not move a tag that holds %s just before', async (held) => {
    expect(await move({ before: OLD, reads: [held], guard })).toMatchObject({
      outcome: { code: 'TAG_CHANGED', exitCode: 7, moved: [] },
      puts: 0,
    });
  });

  it('waits for the tag to show, but not when it shows something else', async () => {
    expect(await move({ before: OLD, reads: [OLD, OLD, OURS], guard })).toMatchObject({ slept: [1000] });
    expect(await move({ before: OLD, reads: [OLD, OTHER], guard })).toMatchObject({
      outcome: { code: 'TAG_CHANGED', moved: [NAME] },
      slept: [],
    });
  });
});
