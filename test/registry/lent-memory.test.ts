import { randomFillSync } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { selfSigned } from '../http/certificate.ts';
import { type Blob, onClose, realClock, world } from './fixture.ts';

const KIB = 1024;
const certificate = selfSigned(['127.0.0.1']);

/** How one blob is sent by its source and taken by its target. */
const copy = fc.record({
  size: fc.oneof(fc.integer({ min: 1, max: 300 * KIB }), fc.integer({ min: 1, max: 5000 * KIB })),
  /** What the source writes at a time, in bytes. */
  piece: fc.constantFrom(1000, 16 * KIB, 64 * KIB, 1024 * KIB),
  /** Where the source breaks off the first time, as a part of the blob. */
  cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined, freq: 3 }),
  ranges: fc.boolean(),
  /** How long the target takes nothing at first, and after each of so many bytes, in ms. */
  late: fc.constantFrom(0, 0, 5, 60),
  rest: fc.constantFrom(0, 0, 1, 3),
  every: fc.constantFrom(64 * KIB, 512 * KIB),
});
type Copy = typeof copy extends fc.Arbitrary<infer T> ? T : never;

async function serving(secure: boolean, listener: RequestListener): Promise<string> {
  const server = secure ? createTlsServer(certificate, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onClose(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Sends blobs by their digest; what is no blob is there and empty. */
function source(blobs: ReadonlyMap<string, Blob & Copy>): RequestListener {
  const cuts = new Set<string>();
  return (request, response) => {
    const blob = blobs.get((request.url ?? '').split('/').at(-1) ?? '');
    if (blob === undefined) {
      response.end();
      return;
    }
    const asked = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const from = blob.ranges ? asked : 0;
    const range = from > 0 ? { 'content-range': `bytes ${from}-${blob.size - 1}/${blob.size}` } : {};
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': blob.size - from, ...range });
    const isCut = blob.cut !== undefined && !cuts.has(blob.digest);
    cuts.add(blob.digest);
    const end = isCut ? Math.floor(blob.size * (blob.cut ?? 1)) : blob.size;
    void (async () => {
      for (let at = from; at < end && !response.destroyed; at += blob.piece) {
        response.write(blob.bytes.subarray(at, Math.min(end, at + blob.piece)));
        while (response.writableNeedDrain && !response.destroyed) await sleep(1);
      }
      if (isCut) request.socket.destroy();
      else response.end();
    })();
  };
}

/** Takes bodies in its own time and says where they differ first; `at` of a session is how much it has. */
function target(blobs: ReadonlyMap<string, Blob & Copy>, wrong: string[], done: Set<string>): RequestListener {
  const stands = new Map<string, number>();
  return (request, response) => {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const name = path.split('/').at(-1) ?? '';
    const blob = blobs.get(name);
    if (blob === undefined) {
      response.writeHead(404).end();
      return;
    }
    void (async () => {
      await sleep(blob.late);
      let at = stands.get(name) ?? 0;
      let rested = 0;
      for await (const chunk of request as AsyncIterable<Buffer>) {
        if (!chunk.equals(blob.bytes.subarray(at, at + chunk.byteLength))) wrong.push(`${blob.size} bytes, at ${at}`);
        at += chunk.byteLength;
        if (blob.rest > 0 && at - rested > blob.every) {
          rested = at;
          await sleep(blob.rest);
        }
      }
      stands.set(name, at);
      if (query.includes('digest=') && at === blob.size) done.add(name);
      const headers = { location: path, range: `0-${at - 1}` };
      response.writeHead(query.includes('digest=') ? 201 : 202, headers).end();
    })().catch(() => undefined);
  };
}

describe('many copies at once, whose memory is used again', () => {
  test('bring every byte as it was, whatever the pace of either side', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(copy, { minLength: 2, maxLength: 8 }),
        fc.boolean(),
        fc.boolean(),
        fc.constantFrom('whole' as const, 'chunks' as const),
        async (copies, sourceSecure, targetSecure, mode) => {
          const blobs = new Map(
            copies.map((one) => {
              const bytes = randomFillSync(Buffer.alloc(one.size));
              const digest = digestOf(bytes);
              return [digest as string, { ...one, bytes, digest }];
            }),
          );
          const wrong: string[] = [];
          const done = new Set<string>();
          const hosts = {
            source: await serving(sourceSecure, source(blobs)),
            target: await serving(targetSecure, target(blobs, wrong, done)),
          };
          const { client, transport } = world({ kind: 'none' }, { ca: [certificate.cert], clock: realClock });
          const from = client(hosts.source);
          const to = client(hosts.target, undefined, {
            uploading: { mode, chunkSize: 700 * KIB },
            uploadSizes: { least: 64 * KIB },
          });
          const signal = AbortSignal.timeout(60_000);
          // Both schemes are known then.
          const nothing = digestOf(Buffer.from('nothing'));
          await Promise.all([from, to].map((one) => one.hasBlob('acme/app', nothing, { signal })));
          const answers = await Promise.all(
            [...blobs.values()].map(async (blob) => {
              const body = await from.openBlob('acme/app', blob, { signal });
              const scheme = targetSecure ? 'https' : 'http';
              const session = { repository: 'acme/app', url: `${scheme}://${hosts.target}/u/${blob.digest}` };
              return to.upload(session, blob, body, { signal });
            }),
          );
          await transport.close();
          expect(wrong).toEqual([]);
          expect(answers.map(({ kind }) => kind)).toEqual(answers.map(() => 'stored'));
          expect(done.size).toBe(blobs.size);
        },
      ),
      { numRuns: 15 },
    );
  });
});
