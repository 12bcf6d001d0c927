import type { Authorizer, Scope } from '../auth/scope.ts';
import type { Clock } from '../http/clock.ts';
import type { Transport } from '../http/message.ts';
import { createCanceller } from './cancel.ts';
import type { RegistryClient, RepositoryUse } from './client.ts';
import { isPresent } from './presence.ts';
import { putManifest } from './put-manifest.ts';
import { getManifest, openBlob, readBlob } from './read.ts';
import { mountBlob, openUpload } from './session.ts';
import { upload } from './upload.ts';
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
};

/**
 * The verbs of one registry over HTTP. It keeps no connection and needs no end; all it remembers is which repositories
 * will be pushed to.
 */
export function createRegistryClient(options: RegistryClientOptions): RegistryClient {
  const { host, transport, authorizer, clock, cancelTimeout } = options;
  const access = createAccess();
  const wire: Wire = { host, transport, authorizer, access };
  const cancel = createCanceller(wire, clock, cancelTimeout);
  return {
    host,
    announce: (uses) => {
      for (const use of uses) if (use.access === 'push') access.pushing(use.repository);
      authorizer.announce(host, uses.flatMap(scopeSets));
    },
    getManifest: (...request) => getManifest(wire, ...request),
    hasManifest: (...request) => isPresent(wire, 'manifest', ...request),
    hasBlob: (...request) => isPresent(wire, 'blob', ...request),
    readBlob: (...request) => readBlob(wire, ...request),
    openBlob: (...request) => openBlob(wire, ...request),
    mountBlob: (...request) => mountBlob(wire, ...request),
    openUpload: (...request) => openUpload(wire, ...request),
    upload: (...request) => upload(wire, cancel, ...request),
    cancelUpload: (session) => cancel(session),
    putManifest: (...request) => putManifest(wire, ...request),
  };
}

/** The scopes of every request that the use will bring: of the repository, and of each pair for mounts. */
function scopeSets({ repository, access, mountFrom }: RepositoryUse): readonly (readonly Scope[])[] {
  if (access === 'pull') return [[{ repository, actions: 'pull' }]];
  const target: Scope = { repository, actions: 'pull,push' };
  return [
    [target],
    ...(mountFrom ?? []).map((from): readonly Scope[] => [target, { repository: from, actions: 'pull' }]),
  ];
}
