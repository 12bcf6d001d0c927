import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Digest } from '../../src/model/digest.ts';
import type { JournalEntry } from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, seedImage } from '../helpers/images.ts';
import { type SeenRegistry, type SeenRun, spellings, violations } from '../helpers/invariants.ts';
import { publishTo, rerunConverges, withPorts } from '../helpers/publishing.ts';
import { withRegistry } from '../helpers/registry.ts';
import { canary, loginText } from '../helpers/watching.ts';

const image = makeImage('one');
const list = makeIndex([{ manifest: image, platform: { architecture: 'amd64', os: 'linux' } }]);
const OLD = `sha256:${'0'.repeat(64)}` as Digest;
const NEW = list.descriptor.digest;
const CHILD = image.descriptor.digest;
const HOST = '127.0.0.1:5000';

function entry(
  operation: JournalEntry['operation'],
  reference: string,
  at: number,
  more: Partial<JournalEntry> = {},
): JournalEntry {
  const method = operation.endsWith('Put') ? 'PUT' : 'GET';
  const path = `/v2/t/all/manifests/${reference}`;
  return {
    operation,
    reference,
    method,
    path,
    start: at,
    end: at + 1,
    listener: 'registry',
    connection: 1,
    query: '',
    repository: 't/all',
    headers: {},
    authorization: 'none',
    status: operation.endsWith('Put') ? 201 : 200,
    location: undefined,
    bytesIn: 0,
    bytesOut: 0,
    startedAt: 0,
    endedAt: 1,
    failure: undefined,
    ...more,
  };
}

const GOOD: SeenRegistry = {
  host: HOST,
  journal: [entry('manifestPut', CHILD, 1), entry('manifestPut', 'v1', 3)],
  tagMoves: [{ repository: 't/all', tag: 'v1', from: OLD, to: NEW, missing: [] }],
  sessions: 0,
  tagOf: () => NEW,
  manifestOf: (_repository, reference) =>
    reference === CHILD
      ? { bytes: image.bytes, mediaType: image.descriptor.mediaType, digest: CHILD }
      : { bytes: list.bytes, mediaType: list.descriptor.mediaType, digest: NEW },
};

const RUN: SeenRun = {
  registries: [GOOD],
  exitCode: 0,
  printed: [NEW],
  outputs: { stdout: `${NEW}\n` },
  secrets: [],
  connected: ['127.0.0.1'],
  openSockets: 0,
  lingered: 10,
  alone: true,
};

/** What is found in a run at a registry that differs so from the good one. */
const found = (registry: Partial<SeenRegistry>, run: Partial<SeenRun> = {}) =>
  violations({ ...RUN, ...run, registries: [{ ...GOOD, ...registry }] }).map((text) => text.slice(0, 2));

const authorized = (scheme: 'basic' | 'bearer', value: string) => ({
  authorization: scheme,
  headers: { authorization: `${scheme === 'basic' ? 'Basic' : 'Bearer'} ${value}` },
});

const SECRET = canary();
const BASIC = Buffer.from(`robot:${SECRET}`).toString('base64');

describe('the checker of invariants', () => {
  it('finds nothing in a good run', () => expect(violations(RUN)).toEqual([]));

  it.each<[string, Partial<SeenRegistry>]>([
    [
      'a tag that moves to an image',
      { tagMoves: [{ repository: 't/all', tag: 'v1', from: OLD, to: CHILD, missing: [] }, ...GOOD.tagMoves] },
    ],
    [
      'a tag that moves twice',
      { tagMoves: [...GOOD.tagMoves, { repository: 't/all', tag: 'v1', from: NEW, to: OLD, missing: [] }] },
    ],
    [
      'a tag that is deleted',
      { tagMoves: [{ repository: 't/all', tag: 'v1', from: OLD, to: undefined, missing: [] }, ...GOOD.tagMoves] },
    ],
  ])('N1: %s', (_name, registry) => expect(found(registry)).toContain('N1'));

  it('N2: something was missing when the tag moved', () =>
    expect(found({ tagMoves: [{ repository: 't/all', tag: 'v1', from: OLD, to: NEW, missing: [CHILD] }] })).toEqual([
      'N2',
    ]));

  it('N2: the tag was put before a child was answered', () =>
    expect(found({ journal: [entry('manifestPut', CHILD, 1, { end: 4 }), entry('manifestPut', 'v1', 3)] })).toEqual([
      'N2',
    ]));

  it.each(spellings(SECRET))('N3: a secret in what was written, spelled %s', (spelling) =>
    expect(found({}, { secrets: [{ text: SECRET, host: HOST }], outputs: { stderr: `error: ${spelling}` } })).toEqual([
      'N3',
    ]),
  );

  it('N3: a token that only the registry was shown, in a report', () => {
    const journal = [
      entry('ping', '', 0, { status: 401 }),
      entry('manifestGet', 'v1', 5, authorized('bearer', 'token-0123456789')),
      ...GOOD.journal,
    ];
    expect(found({ journal }, { outputs: { report: '{"x":"token-0123456789"}' } })).toEqual(['N3']);
  });

  it('N3: the signature of a session', () => {
    const journal = [...GOOD.journal, entry('uploadPut', 'id', 5, { query: '_state=0123456789abcdef' })];
    expect(found({ journal }, { outputs: { stderr: '0123456789abcdef' } })).toEqual(['N3']);
  });

  it.each<[string, readonly JournalEntry[]]>([
    [
      'a login at another host',
      [
        entry('ping', '', 0, { status: 401 }),
        entry('storage', 'x', 5, { listener: 'storage', ...authorized('bearer', 'x') }),
      ],
    ],
    ['a login that nobody asked for', [entry('manifestGet', 'v1', 5, authorized('basic', BASIC))]],
    [
      'a password where tokens are wanted',
      [
        entry('ping', '', 0, { status: 401 }),
        entry('token', '', 2),
        entry('manifestGet', 'v1', 5, authorized('basic', BASIC)),
      ],
    ],
  ])('N4: %s', (_name, journal) => expect(found({ journal: [...journal, ...GOOD.journal] })).toEqual(['N4']));

  it("N4: another host's password", () => {
    const journal = [
      entry('ping', '', 0, { status: 401 }),
      entry('manifestGet', 'v1', 5, authorized('basic', BASIC)),
      ...GOOD.journal,
    ];
    expect(found({ journal }, { secrets: [{ text: SECRET, host: 'other.example.test' }] })).toEqual(['N4']);
    expect(found({ journal }, { secrets: [{ text: SECRET, host: HOST }] })).toEqual([]);
  });

  it("N4: another registry's token", () => {
    const at = (host: string): SeenRegistry => ({
      ...GOOD,
      host,
      journal: [
        entry('ping', '', 0, { status: 401 }),
        entry('manifestGet', 'v1', 5, authorized('bearer', 'token-0123456789')),
        ...GOOD.journal,
      ],
    });
    expect(violations({ ...RUN, registries: [at('one:1'), at('two:2')] })).toHaveLength(2);
  });

  it.each(['169.254.169.254', '10.0.0.1', '93.184.215.14', '::ffff:10.0.0.1', 'fd00:ec2::254'])(
    'N5: %s was connected to',
    (address) => expect(found({}, { connected: [address] })).toEqual(['N5']),
  );

  it('N6: success without a tag that was taken or shown', () =>
    expect(found({ journal: [], tagMoves: [] })).toEqual(['N6']));

  it('N6: another digest than the one that was said', () => expect(found({}, { printed: [OLD] })).toContain('N6'));

  it('N7: sockets, and a process that lingers', () => {
    expect(found({}, { openSockets: 1 })).toEqual(['N7']);
    expect(found({}, { lingered: 4500 })).toEqual(['N7']);
  });

  it('sessions that were left open, unless a signal ended it or the registry lets nobody cancel', () => {
    expect(found({ sessions: 1 })).toEqual(['1 ']);
    expect(found({ sessions: 1 }, { exitCode: undefined })).toEqual([]);
    expect(found({ sessions: 1, journal: [...GOOD.journal, entry('uploadDelete', 'id', 5, { status: 405 })] })).toEqual(
      [],
    );
  });
});

describe('the doors of tests', () => {
  const sources = ['t/a:1'];

  it('N3: the port by which a test runs something tells a password that an event holds', () =>
    expect(
      withPorts({ logins: { 'x.example.test': SECRET } }, async (ports) =>
        ports.emit({ kind: 'warning', text: SECRET }),
      ),
    ).rejects.toThrow());

  it('N7: and a socket that was left open', () =>
    withRegistry({}, async (registry) => {
      let socket: Socket | undefined;
      const leaving = withPorts({}, async () => {
        socket = connect(Number(registry.host.split(':')[1]), '127.0.0.1');
      });
      await expect(leaving).rejects.toThrow();
      socket?.destroy();
    }));

  it('N8: a run that sends again what was there', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      seedImage(registry, 't/a', '1');
      const { lists } = await publishTo(registry, 't/all:1', sources);
      const digest = lists[0]?.index?.digest ?? '';
      const layer = makeImage('t/a:1').blobs[1];
      const upload = async (): Promise<string> => {
        const opened = await fetch(`${registry.url}/v2/t/all/blobs/uploads/`, { method: 'POST' });
        const url = `${opened.headers.get('location')}?digest=${layer?.descriptor.digest}`;
        await fetch(new URL(url, registry.url), {
          method: 'PUT',
          body: layer !== undefined && 'bytes' in layer.content ? new Uint8Array(layer.content.bytes) : '',
        });
        return digest;
      };
      await expect(rerunConverges(registry, 't/all', upload, digest)).rejects.toThrow('N8');
      await expect(rerunConverges(registry, 't/all', async () => OLD, digest)).rejects.toThrow('N8');
      await rerunConverges(
        registry,
        't/all',
        async () => (await publishTo(registry, 't/all:1', sources)).lists[0]?.index?.digest ?? '',
        digest,
      );
    }));

  it('every login text holds the stranger that no run may show', () =>
    expect(loginText()).toContain('stranger.example.test'));
});
