import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createMountMemory } from '../../src/publish/mount-memory.ts';
import { trackSessions } from '../../src/publish/sessions.ts';
import { placeBlob } from '../../src/publish/transfer.ts';
import { body, fakeClient, fakePorts, session } from './fakes.ts';
import { digest } from './values.ts';

describe('the place of a copy at its source', () => {
  it('is held until the blob has been read, and no longer: the answer to its PUT may take minutes', async () => {
    const told: string[] = [];
    const stream = body('hello');
    const source = fakeClient('other.test', { openBlob: async () => stream });
    const target = fakeClient('reg.test', {
      hasBlob: async () => ({ kind: 'absent' }),
      openUpload: async () => session('new'),
      upload: async (_session, _blob, sent) => {
        told.push('upload begins');
        for await (const _chunk of sent as Readable) told.push('reading');
        if (!stream.closed) await once(stream, 'close');
        await new Promise(setImmediate);
        told.push('upload answered');
        return { kind: 'stored', bytesSent: 5 };
      },
    });
    const ports = fakePorts([source, target]);
    const place = (host: string) => ({ host, release: () => void told.push(`released ${host}`) });
    const limiter = {
      ...ports.limiter,
      takeCopy: async () => ({
        source: place('other.test'),
        target: place('reg.test'),
        release: () => void told.push('released both'),
      }),
    };
    const at = { host: 'reg.test', repository: 't/all' };
    const { signal } = new AbortController();
    const blob = {
      digest: digest('hello'),
      size: 5,
      sources: [{ host: 'other.test', repository: 't/a' }],
      mountFrom: [],
      present: false,
      waitsFor: [],
    };
    const outcome = await placeBlob(blob, {
      target: at,
      registry: target,
      ports: { ...ports, limiter },
      signal,
      mounts: createMountMemory(),
      sessions: trackSessions(at, ports, signal),
      inMemory: new Map(),
      gate: Promise.resolve(),
      stop: () => undefined,
    });
    expect(outcome.how).toBe('copied');
    expect(told).toEqual(['upload begins', 'reading', 'released other.test', 'upload answered', 'released both']);
  });
});
