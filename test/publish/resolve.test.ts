import { describe, expect, it, vi } from 'vitest';
import type { PublishRequest } from '../../src/publish/request.ts';
import { resolve } from '../../src/publish/resolve.ts';
import { createRunMemory } from '../../src/publish/run-memory.ts';
import type { ManifestAnswer, RepositoryUse, VerbOptions } from '../../src/registry/client.ts';
import { makeImage, makeIndex } from '../helpers/images.ts';
import { requestOf } from '../helpers/publishing.ts';
import { failure, fakeClient, fakePorts } from './fakes.ts';

const signal = new AbortController().signal;
const request = (more: Partial<PublishRequest> = {}): PublishRequest => ({
  ...requestOf('reg.test/t/all:1', ['reg.test/t/a:1', 'reg.test/t/b:1', 'other.test/c:1']),
  ...more,
});
const missing: ManifestAnswer = {
  kind: 'absent',
  error: failure('BLOB_NOT_FOUND').with({ code: 'MANIFEST_NOT_FOUND' }),
};

async function announced(more: Partial<PublishRequest>): Promise<Record<string, readonly RepositoryUse[]>> {
  const told: Record<string, readonly RepositoryUse[]> = {};
  const clients = ['reg.test', 'other.test'].map((host) =>
    fakeClient(host, {
      announce: (uses) => {
        told[host] = uses;
      },
      getManifest: async () => missing,
    }),
  );
  await resolve(request(more), createRunMemory(), fakePorts(clients), signal).catch(() => undefined);
  return told;
}

describe('what is announced', () => {
  const reads = ['t/a', 't/b'].map((repository) => ({ repository, access: 'pull' }));

  it('is a push to the target with the sources that it will be offered, and reads elsewhere', async () => {
    expect(await announced({})).toEqual({
      'reg.test': [{ repository: 't/all', access: 'push', mountFrom: ['t/a', 't/b'] }, ...reads],
      'other.test': [{ repository: 'c', access: 'pull' }],
    });
  });

  it('is no push in a dry run: whoever may only read can see the plan', async () => {
    const told = await announced({ dryRun: true });
    expect(told['reg.test']).toEqual([{ repository: 't/all', access: 'pull' }, ...reads]);
  });
});

describe('a read that fails for good', () => {
  it.each(['the tag', 'a source'])('of %s stops all others at once', async (which) => {
    const stopped = vi.fn();
    const getManifest = async (
      repository: string,
      _reference: string,
      options: VerbOptions,
    ): Promise<ManifestAnswer> => {
      if (repository === (which === 'the tag' ? 't/all' : 't/b')) throw failure('UNAUTHORIZED');
      if (repository === 't/all') return missing;
      return new Promise((_resolve, reject) => {
        options.signal.addEventListener('abort', () => {
          stopped(repository);
          reject(options.signal.reason);
        });
      });
    };
    const clients = ['reg.test', 'other.test'].map((host) => fakeClient(host, { getManifest }));
    const run = resolve(request(), createRunMemory(), fakePorts(clients), signal);
    const refused = { code: 'UNAUTHORIZED' };
    if (which === 'a source') await expect(run).rejects.toMatchObject(refused);
    else expect(await run).toMatchObject({ sources: [], repositories: [{ kind: 'failed', error: refused }] });
    expect(stopped.mock.calls.flat().sort()).toEqual(which === 'the tag' ? ['c', 't/a', 't/b'] : ['c', 't/a']);
  });

  it('leaves no child of a broken index being read behind it', async () => {
    const index = makeIndex(['a', 'b'].map((seed) => ({ manifest: makeImage(seed) })));
    const [gone, slow] = index.children.map(({ descriptor }) => descriptor.digest);
    let stopped: unknown;
    const getManifest = async (
      repository: string,
      reference: string,
      options: VerbOptions,
    ): Promise<ManifestAnswer> => {
      if (repository === 't/all' || reference === gone) return missing;
      if (reference !== slow) {
        const { mediaType, digest } = index.descriptor;
        return { kind: 'found', manifest: { bytes: index.bytes, digest, contentType: mediaType } };
      }
      return new Promise((_resolve, reject) => {
        options.signal.addEventListener('abort', () => {
          stopped = slow;
          reject(options.signal.reason);
        });
      });
    };
    const sources = requestOf('reg.test/t/all:1', ['reg.test/t/a:1']).sources;
    const run = resolve(
      request({ sources }),
      createRunMemory(),
      fakePorts([fakeClient('reg.test', { getManifest })]),
      signal,
    );
    await expect(run).rejects.toMatchObject({ exitCode: 4 });
    expect(stopped).toBe(slow);
  });
});
