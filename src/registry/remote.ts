import type { Authorizer, Scope } from '../auth/scope.ts';
import type { Clock } from '../http/clock.ts';
import type { Transport } from '../http/message.ts';
import { createCanceller } from './cancel.ts';
import type { RegistryClient, RepositoryUse } from './client.ts';
import { deleteContent } from './delete.ts';
import { openBlob } from './open-blob.ts';
import { isPresent } from './presence.ts';
import { mountAnyBlob } from './probe.ts';
import { putManifest } from './put-manifest.ts';
import { getManifest, readBlob } from './read.ts';
import { listReferrers } from './referrers.ts';
import { mountBlob, openUpload } from './session.ts';
import { upload } from './upload.ts';
import { createUploadLessons, type UploadMode } from './upload-lessons.ts';
import type { UploadSizes } from './upload-sizes.ts';
import { resumeUpload } from './upload-status.ts';
import { createAccess, type Wire } from './wire.ts';

/** @see createRegistryClient */
export type RegistryClientOptions = {
  /** As the user knows it, for example `docker.io`. */
  readonly host: string;
  readonly transport: Transport;
  readonly authorizer: Authorizer;
  /** Ends cancellations in time. It must not be one that jumps. */
  readonly clock: Clock;
  /** Longest time a cancelled upload session is given to answer, in ms. Default 5,000. */
  readonly cancelTimeout?: number;
  /** `never`: policy asks for no mount on this host. Default `auto`. */
  readonly mounting?: 'auto' | 'never';
  /** How blobs are sent; `auto`, the default: whole until the host wants chunks. `chunkSize` in bytes, to begin with. */
  readonly uploading?: UploadMode;
  /** Sizes on which uploads turn; tests make them small. */
  readonly uploadSizes?: Partial<UploadSizes>;
  /** `--retries`: how often a read that breaks off is taken up again. Default 5. */
  readonly retries?: number;
};

const RETRIES = 5;

/**
 * The verbs of one registry over HTTP. It keeps no connection and needs no end; what it remembers is which repositories
 * will be pushed to, and in which form the registry takes blobs.
 */
export function createRegistryClient(options: RegistryClientOptions): RegistryClient {
  const { host, transport, authorizer, clock, cancelTimeout, mounting = 'auto' } = options;
  const access = createAccess();
  const wire: Wire = { host, transport, authorizer, access };
  const cancel = createCanceller(wire, clock, cancelTimeout);
  const lessons = createUploadLessons(host, clock, options.uploading, options.uploadSizes);
  const retries = options.retries ?? RETRIES;
  return {
    host,
    mounting,
    announce: (uses) => {
      for (const use of uses) if (use.access === 'push') access.pushing(use.repository);
      authorizer.announce(
        host,
        uses.flatMap((use) => scopeSets(use, mounting)),
      );
    },
    getManifest: (...request) => getManifest(wire, retries, ...request),
    listReferrers: (...request) => listReferrers(wire, retries, ...request),
    hasManifest: (...request) => isPresent(wire, 'manifest', ...request),
    hasBlob: (...request) => isPresent(wire, 'blob', ...request),
    readBlob: (...request) => readBlob(wire, retries, ...request),
    openBlob: (...request) => openBlob(wire, retries, ...request),
    mountBlob: (...request) => mountBlob(wire, ...request),
    mountAnyBlob: (...request) => mountAnyBlob(wire, ...request),
    openUpload: (...request) => openUpload(wire, ...request),
    uploadTurn: lessons.turn,
    upload: (...request) => upload(wire, lessons, cancel, ...request),
    resumeUpload: (...request) => resumeUpload(wire, lessons, ...request),
    cancelUpload: (session) => cancel(session),
    putManifest: (...request) => putManifest(wire, ...request),
    deleteManifest: (...request) => deleteContent(wire, 'manifest', ...request),
    deleteBlob: (...request) => deleteContent(wire, 'blob', ...request),
  };
}

/** The scopes of every request that the use will bring: of the repository, and of each pair for mounts. */
function scopeSets(
  { repository, access, mountFrom = [] }: RepositoryUse,
  mounting: RegistryClient['mounting'],
): readonly (readonly Scope[])[] {
  if (access === 'pull') return [[{ repository, actions: 'pull' }]];
  const target: Scope = { repository, actions: 'pull,push' };
  return [
    [target],
    ...(mounting === 'never' ? [] : mountFrom).map((from): readonly Scope[] => [
      target,
      { repository: from, actions: 'pull' },
    ]),
  ];
}
