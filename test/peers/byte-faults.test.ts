import { afterAll, beforeAll, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { publish } from '../../src/publish/publish.ts';
import { type ByteFault, type ByteProxy, startByteProxy } from '../helpers/byte-proxy.ts';
import { startDebianRegistry } from '../helpers/external-registry.ts';
import { requestOf } from '../helpers/publishing.ts';
import { jumpingClock } from '../http/fixture.ts';
import { world } from '../reliability/matrix-stage.ts';
import { makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { digestOfTag, missingIn } from './registry-access.ts';
import { SOURCES, type Stage, startStage } from './registry-stage.ts';

const TWO = SOURCES.slice(0, 2);
const IMAGES = TWO.flatMap(({ images }) => images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));

const LAYER = /^GET \S+\/blobs\/sha256/;
const SOURCE = /^GET \S+\/debian\/(?!wire)\S+\/manifests\//;
const UPLOAD = /^PUT \S+\/blobs\/uploads\//;
const CHILD = /^PUT \S+\/manifests\/sha256/;
const TAG = /^PUT \S+\/manifests\/bullseye/;
const OPEN = /^POST \S+\/blobs\/uploads\//;

const ALWAYS = Number.POSITIVE_INFINITY;

/** How the run ends; `after` counts bytes, the head's included. */
const TABLE: readonly (readonly [name: string, exit: number, fault: ByteFault])[] = [
  ['a layer is cut', 0, { request: LAYER, in: 'answer', after: 900, how: 'close' }],
  ['a layer is reset', 0, { request: LAYER, in: 'answer', after: 900, how: 'reset' }],
  ['a layer falls silent', 0, { request: LAYER, in: 'answer', after: 900, how: 'stall' }],
  ['a bit of a layer is wrong', 0, { request: LAYER, in: 'answer', after: 900, how: 'corrupt' }],
  ['a bit of every layer is wrong', 6, { request: LAYER, in: 'answer', after: 900, how: 'corrupt', times: ALWAYS }],
  ['a source is cut', 0, { request: SOURCE, in: 'answer', after: 400, how: 'close' }],
  ['an upload is cut', 0, { request: UPLOAD, in: 'request', after: 900, how: 'close' }],
  ['an upload is reset', 0, { request: UPLOAD, in: 'request', after: 900, how: 'reset' }],
  ['an upload falls silent', 0, { request: UPLOAD, in: 'request', after: 900, how: 'stall' }],
  ['a bit of an upload is wrong', 0, { request: UPLOAD, in: 'request', after: 900, how: 'corrupt' }],
  ['the answer to an upload is lost', 0, { request: UPLOAD, in: 'answer', how: 'lose' }],
  ['the answer to a POST is lost', 0, { request: OPEN, in: 'answer', how: 'lose' }],
  ['the answer to a child is lost', 0, { request: CHILD, in: 'answer', how: 'lose' }],
  ['the answer to the tag is lost', 0, { request: TAG, in: 'answer', how: 'lose' }],
  ['the head of an answer is cut', 0, { request: CHILD, in: 'answer', after: 20, how: 'close' }],
  ['every PUT of a child is reset', 5, { request: CHILD, in: 'request', after: 10, how: 'reset', times: ALWAYS }],
  ['every PUT of the tag is reset', 5, { request: TAG, in: 'request', after: 10, how: 'reset', times: ALWAYS }],
];

withPeers(['docker-registry'], "a wire that fails, before Debian's docker-registry", () => {
  let stage: Stage;
  let wire: ByteProxy;
  let number = 0;

  beforeAll(async () => {
    stage = await startStage(startDebianRegistry, 'anonymous', []);
    wire = await startByteProxy(stage.refusing.host);
  });
  afterAll(async () => {
    await wire?.stop();
    await stage?.stop();
  });

  /** Publishes two images through the wire: the exit code, and what was said. */
  async function run(repository: string): Promise<{ readonly exit: number; readonly text: string }> {
    const clock = jumpingClock();
    const network = { timeouts: { headers: 2000, body: 2000, connect: 2000 } };
    const nothing = { addresses: {}, reach: {}, logins: {}, configText: undefined, uploadSizes: {} };
    const { ports, close } = world({ ...nothing, clock, network, direct: true }, [], () => undefined);
    const sources = TWO.map((source) => `${wire.host}/${source.repository}:${source.tag}`);
    try {
      await publish(requestOf(`${wire.host}/${repository}:bullseye`, sources), ports, AbortSignal.timeout(60_000));
      return { exit: 0, text: '' };
    } catch (error) {
      if (!(error instanceof PublishError)) throw error;
      return { exit: error.exitCode, text: error.message };
    } finally {
      await close();
    }
  }

  it.each(TABLE)('%s: exit %i, and the next run finds nothing wrong', async (_name, exit, fault) => {
    number += 1;
    const repository = `debian/wire-${number}`;
    const before = wire.struck();
    wire.add(fault);
    const first = await run(repository);
    wire.mend();
    expect(first.exit, first.text).toBe(exit);
    expect(wire.struck(), 'the fault did not strike').toBeGreaterThan(before);
    if (exit !== 0)
      expect(await digestOfTag(stage.inside, repository, 'bullseye').catch(() => undefined)).toBeUndefined();
    const second = await run(repository);
    expect(second.exit, second.text).toBe(0);
    expect(await digestOfTag(stage.inside, repository, 'bullseye')).toBe(INDEX.digest);
    expect(await missingIn(stage.inside, repository, IMAGES)).toEqual([]);
  });
});
