import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { HttpResponse } from '../../src/http/message.ts';
import { digestOf } from '../../src/model/digest.ts';
import { brokenCommit, judgeCommit, type Upload, uploadRefused } from '../../src/registry/commit.ts';
import type { Refusal } from '../../src/registry/failure.ts';
import type { UploadLessons } from '../../src/registry/upload-lessons.ts';
import type { Step, Wire } from '../../src/registry/wire.ts';
import { blobOf, clientOf, errors, failure, script, verb } from './fixture.ts';

const BLOB = blobOf(100);
const STEP: Step = {
  doing: 'copying x',
  name: 'r.test/a/b',
  host: 'r.test',
  repository: 'a/b',
  side: 'target',
  needs: 'pull,push',
};

type Answer = {
  readonly status: number;
  readonly codes?: readonly string[];
  readonly words?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly sends?: number;
};
type Progress = { readonly sent?: number; readonly body?: number; readonly takesOtherwise?: boolean };

/** What the answer to the closing PUT means; by default the whole blob was in that PUT. */
async function judge({ status, codes = [], words = '', headers = {}, sends = 1 }: Answer, progress: Progress = {}) {
  const { sent = 100, body = 100, takesOtherwise = true } = progress;
  const lessons: string[] = [];
  const learn = (what: string) => {
    lessons.push(what);
    return takesOtherwise;
  };
  const text = JSON.stringify({ errors: codes.map((code) => ({ code, message: words })) });
  const response: HttpResponse = {
    status,
    headers: codes.length === 0 ? headers : { 'content-type': 'application/json', ...headers },
    url: new URL('https://r.test/v2/a/b/blobs/uploads/1'),
    sends,
    bytes: async () => expect.unreachable(),
    stream: () => Readable.from(codes.length === 0 ? [] : [Buffer.from(text)]),
    discard: async () => undefined,
  };
  const upload: Upload = {
    wire: {
      host: 'r.test',
      transport: { baseUrl: () => new URL('https://r.test/') },
      authorizer: { advise: async () => ({ login: 'no login was found', hint: 'Log in.' }) },
    } as unknown as Wire,
    step: STEP,
    session: { repository: 'a/b', url: 'https://r.test/v2/a/b/blobs/uploads/1' },
    blob: BLOB,
    lessons: {
      taken: (bytes: number) => void lessons.push(`taken ${bytes}`),
      tooLarge: (bytes: number) => learn(`too large ${bytes}`),
      noWhole: () => learn('no whole'),
    } as unknown as UploadLessons,
  };
  return { ...(await judgeCommit(upload, response, sent, body, 250)), lessons };
}

const refusal = (status: number): Refusal => ({
  status,
  code: undefined,
  codes: [],
  message: undefined,
  detail: undefined,
  html: false,
  answeredBy: 'r.test',
  sends: 1,
});

describe('a commit that succeeds', () => {
  test.each([200, 201, 202, 204])('%i stores the blob, and its size is learnt', async (status) => {
    expect(await judge({ status })).toEqual({
      answer: { kind: 'stored', bytesSent: 250 },
      cancels: false,
      lessons: ['taken 100'],
    });
  });

  test.each([
    [
      { status: 200, headers: { 'content-type': 'text/html' } },
      /with an HTML page where the end of an upload belongs$/,
    ],
    [
      { status: 201, headers: { 'docker-content-digest': digestOf(Buffer.from('x')) } },
      new RegExp(`for another digest, ${digestOf(Buffer.from('x'))}$`),
    ],
  ])('but as no registry would breaks the protocol (%#)', async (answer, words) => {
    const error = await failure(judge(answer));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', side: 'target', registry: 'r.test' });
    expect(error.message).toMatch(words);
  });

  test('before the last byte has left is none, and its session is not there to be cancelled', async () => {
    expect(await judge({ status: 201 }, { sent: 99 })).toEqual({
      answer: {
        kind: 'broken',
        error: expect.objectContaining({
          code: 'PROTOCOL_VIOLATED',
          message: expect.stringMatching(/after 99 of 100 bytes$/),
        }),
      },
      cancels: false,
      lessons: [],
    });
  });
});

describe('a commit that is refused', () => {
  test.each<[string, Answer, Progress, object]>([
    ['401', { status: 401 }, {}, { answer: { kind: 'broken', error: { code: 'UNAUTHORIZED' } }, cancels: true }],
    ['403', { status: 403 }, {}, { answer: { kind: 'refused', error: { code: 'DENIED' } }, cancels: true }],
    [
      '429 keeps its session for another try',
      { status: 429 },
      {},
      { answer: { kind: 'limited', alive: true, error: { code: 'RATE_LIMITED' } }, cancels: false },
    ],
    [
      '500 behind the last byte may be storing it',
      { status: 500 },
      {},
      { answer: { kind: 'broken', alive: true, error: { code: 'REGISTRY_FAILED' } }, cancels: false },
    ],
    [
      '500 before the last byte has stored nothing',
      { status: 500 },
      { sent: 99 },
      { answer: { kind: 'broken', error: { code: 'REGISTRY_FAILED' } }, cancels: true },
    ],
    ['404 leaves no session', { status: 404 }, {}, { answer: { kind: 'broken' }, cancels: false, lessons: [] }],
    ['409 may leave one', { status: 409 }, {}, { answer: { kind: 'broken' }, cancels: true, lessons: [] }],
    [
      '404 BLOB_UNKNOWN at once is how Artifactory refuses one PUT',
      { status: 404, codes: ['BLOB_UNKNOWN'] },
      {},
      { answer: { kind: 'broken' }, cancels: true, lessons: ['no whole'] },
    ],
    [
      '404 BLOB_UNKNOWN to a PUT without a body says nothing of bodies',
      { status: 404, codes: ['BLOB_UNKNOWN'] },
      { body: 0 },
      { answer: { kind: 'broken' }, cancels: true, lessons: [] },
    ],
    [
      '404 BLOB_UNKNOWN to a second try may be about a session that the first used up',
      { status: 404, codes: ['BLOB_UNKNOWN'], sends: 2 },
      {},
      { answer: { kind: 'broken' }, cancels: false, lessons: [] },
    ],
    [
      '409 BLOB_UNKNOWN is not that refusal',
      { status: 409, codes: ['BLOB_UNKNOWN'] },
      {},
      { answer: { kind: 'broken' }, cancels: true, lessons: [] },
    ],
    [
      '413 where a smaller body may do',
      { status: 413 },
      {},
      { answer: { kind: 'otherwise' }, cancels: true, lessons: ['too large 100'] },
    ],
    [
      '413 where none may',
      { status: 413 },
      { takesOtherwise: false },
      { answer: { kind: 'refused' }, cancels: true, lessons: ['too large 100'] },
    ],
    ['413 to an empty body', { status: 413 }, { body: 0 }, { answer: { kind: 'refused' }, cancels: true, lessons: [] }],
    [
      '405 where another form may do',
      { status: 405 },
      {},
      { answer: { kind: 'otherwise' }, cancels: true, lessons: ['no whole'] },
    ],
    [
      '405 where none may',
      { status: 405 },
      { takesOtherwise: false },
      { answer: { kind: 'refused' }, cancels: true, lessons: ['no whole'] },
    ],
    ['405 to an empty body', { status: 405 }, { body: 0 }, { answer: { kind: 'refused' }, cancels: true, lessons: [] }],
    ['422', { status: 422 }, {}, { answer: { kind: 'refused', error: { code: 'UPLOAD_REFUSED' } }, cancels: true }],
    [
      '400 that says the bytes are others',
      { status: 400, codes: ['UNKNOWN', 'DIGEST_INVALID'] },
      {},
      {
        answer: {
          kind: 'corrupt',
          error: {
            code: 'DIGEST_MISMATCH',
            message: expect.stringContaining(
              `copying x: what was sent hashes to ${BLOB.digest}, yet: r.test answered 400`,
            ),
            hint: expect.stringMatching(/same command again.*changes bytes on their way/),
          },
        },
        cancels: true,
      },
    ],
    [
      '400 that a new upload may cure',
      { status: 400, codes: ['UNKNOWN', 'BLOB_UPLOAD_INVALID'] },
      {},
      { answer: { kind: 'broken', error: { code: 'UPLOAD_REFUSED' } }, cancels: true },
    ],
    [
      '400 in Nexus’ words for two images that race',
      { status: 400, codes: ['UNKNOWN'], words: 'asset cannot be updated' },
      {},
      { answer: { kind: 'broken' }, cancels: true },
    ],
    [
      '400 for any other reason',
      { status: 400, codes: ['UNKNOWN'] },
      {},
      { answer: { kind: 'refused' }, cancels: true },
    ],
    ['400 without a reason', { status: 400 }, {}, { answer: { kind: 'refused' }, cancels: true }],
  ])('%s', async (_what, answer, progress, ended) => {
    expect(await judge(answer, progress)).toMatchObject(ended);
  });

  test('of a session that may still be storing it is never cancelled', () => {
    const error = new PublishError('NETWORK_FAILED', 'cut', 'hint');
    expect(brokenCommit(error)).toEqual({ answer: { kind: 'broken', error, alive: true }, cancels: false });
  });

  test('tells how far it got, and whose limit to raise if it is one', () => {
    const large = uploadRefused(STEP, refusal(413), 40, BLOB);
    expect(large.message).toBe('copying x: refused after 40 of 100 bytes: r.test answered 413');
    expect(large.hint).toMatch(/client_max_body_size/);
    expect(uploadRefused(STEP, refusal(422), 40, BLOB).hint).toMatch(/^Check what the registry says/);
  });
});

describe('a manifest that is refused', () => {
  const bytes = Buffer.from('{}');
  const manifest = { bytes, digest: digestOf(bytes), mediaType: 'application/vnd.oci.image.index.v1+json' };
  const put = async (status: number, body = '', reference = 'v1', headers = {}) =>
    clientOf(await script({ status, body, headers }), { retries: 0 }).putManifest('a/b', reference, manifest, verb());
  const errorOf = (answer: Awaited<ReturnType<typeof put>>) => ('error' in answer ? answer.error : undefined);

  test.each([
    [413, errors('SIZE_INVALID'), /fewer images or annotations.*raise the limit/],
    [400, errors('NAME_INVALID'), /^Check what the registry says.*media type/],
    [400, errors('MANIFEST_INVALID'), /same command again.*does not take this manifest/],
    [409, errors('TAG_IMMUTABLE', 'tag is immutable'), /tag that does not exist yet.*allow.*to move tags/],
  ])('tells what to do about %i %s', async (status, body, hint) => {
    expect(errorOf(await put(status, body))?.hint).toMatch(hint);
  });

  test('is named by tag or by digest, as it was put', async () => {
    expect(errorOf(await put(422))?.message).toMatch(/^writing 127\.0\.0\.1:\d+\/a\/b:v1 as /);
    expect(errorOf(await put(422, '', manifest.digest))?.message).toContain(`/a/b@${manifest.digest} as`);
  });

  test('or stored with a doubt says what was wanted; or stored as another, where to look', async () => {
    expect(await put(202)).toMatchObject({
      doubt: { message: expect.stringMatching(/answered 202 where 201 belongs$/) },
    });
    const other = { 'docker-content-digest': digestOf(Buffer.from('x')) };
    expect((await failure(put(201, '', 'v1', other))).hint).toMatch(/something changes manifests on their way/);
  });
});
