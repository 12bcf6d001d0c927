import { Readable } from 'node:stream';
import { PublishError } from '../../src/errors.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import type { PublishPorts } from '../../src/publish/ports.ts';
import type { CopyPlaces, Limiter, RegistryClient, UploadSession } from '../../src/registry/client.ts';

type Verbs = Omit<RegistryClient, 'host'>;

/** A client with only the verbs a test sets: any other fails the test, there is no success by default. */
export function fakeClient(host: string, verbs: Partial<Verbs>): RegistryClient {
  const unset = (verb: string) => (): never => {
    throw new Error(`${verb} of ${host} must not be called here`);
  };
  return {
    host,
    mounting: 'auto',
    uploadTurn: async () => ({ release: () => undefined }),
    resumeUpload: unset('resumeUpload'),
    announce: () => undefined,
    getManifest: unset('getManifest'),
    listReferrers: unset('listReferrers'),
    hasManifest: unset('hasManifest'),
    hasBlob: unset('hasBlob'),
    readBlob: unset('readBlob'),
    openBlob: unset('openBlob'),
    mountBlob: unset('mountBlob'),
    mountAnyBlob: unset('mountAnyBlob'),
    openUpload: unset('openUpload'),
    upload: unset('upload'),
    cancelUpload: unset('cancelUpload'),
    putManifest: unset('putManifest'),
    deleteManifest: unset('deleteManifest'),
    deleteBlob: unset('deleteBlob'),
    ...verbs,
  };
}

export type FakePorts = PublishPorts & {
  readonly events: PublishEvent[];
  readonly slept: number[];
  /** Copies that hold their places now. */
  readonly held: () => number;
};

export function fakePorts(clients: readonly RegistryClient[], retries = 5): FakePorts {
  const events: PublishEvent[] = [];
  const slept: number[] = [];
  let held = 0;
  const place = (host: string) => ({ host, release: () => undefined });
  const limiter: Limiter = {
    take: async (host) => place(host),
    takeCopy: async ({ source, target }): Promise<CopyPlaces> => {
      held += 1;
      return {
        source: source === undefined ? undefined : place(source),
        target: place(target),
        release: () => {
          held -= 1;
        },
      };
    },
  };
  return {
    registry: (host) => {
      const client = clients.find((one) => one.host === host);
      if (client === undefined) throw new Error(`no client for ${host}`);
      return client;
    },
    limiter,
    clock: { now: () => 0, epoch: () => 0, sleep: async (milliseconds) => void slept.push(milliseconds) },
    random: () => 1,
    emit: (event) => events.push(event),
    traffic: () => ({ requests: 0, retries: 0 }),
    retries,
    events,
    slept,
    held: () => held,
  };
}

/** A session that a test can recognise. */
export function session(name: string): UploadSession {
  return { repository: 't/all', url: `http://reg.test/v2/t/all/blobs/uploads/${name}` };
}

export function body(text: string): Readable {
  return Readable.from([Buffer.from(text)]);
}

export function failure(code: 'NETWORK_FAILED' | 'BLOB_NOT_FOUND' | 'UNAUTHORIZED' | 'DIGEST_MISMATCH'): PublishError {
  return new PublishError(code, code.toLowerCase(), 'hint');
}
