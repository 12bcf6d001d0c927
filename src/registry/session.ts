import type { Scope } from '../auth/scope.ts';
import { type ErrorCode, PublishError } from '../errors.ts';
import { failureCode } from '../http/failure.ts';
import type { HttpResponse } from '../http/message.ts';
import type { Digest } from '../model/digest.ts';
import type { MountAnswer, UploadSession, VerbOptions } from './client.ts';
import { failureFor, type Refusal, readRefusal, refusedWith, violated } from './failure.ts';
import {
  chunkLimits,
  contradictsDigest,
  digestHeader,
  locationDigest,
  mountPath,
  resolveLocation,
  uploadPath,
} from './protocol.ts';
import { MOUNT, meaningOf, OPEN } from './statuses.ts';
import { type Step, scopeOf, sendTo, type Wire, writingStep } from './wire.ts';

const EMPTY = new Uint8Array(0);

/** A mount is worth three sends: after that the bytes are faster. */
const MOUNT_RETRIES = 2;

type MountFailure = { readonly sourceBarred: boolean; readonly why: string };

/** Failures of a mount that are no more than a refusal, and whether the source repository is to blame. */
const MOUNT_FAILURES: Partial<Record<ErrorCode, MountFailure>> = {
  // The token server refused the pair of scopes: an unreadable or impossible source does that (Docker Hub, GHCR).
  UNAUTHORIZED: { sourceBarred: true, why: 'no token for this mount' },
  DENIED: { sourceBarred: true, why: 'no token for this mount' },
  NETWORK_FAILED: { sourceBarred: false, why: 'mount got no answer' },
  REGISTRY_FAILED: { sourceBarred: false, why: 'no token for this mount' },
  PROTOCOL_VIOLATED: { sourceBarred: false, why: 'mount got a broken answer' },
};

/**
 * Redirects that no write is sent after. Of a mount they are an answer as good as a 4xx: nothing has been sent to where
 * they lead, and uploads need not be redirected as well. A 307 or 308 that is not followed leads to another origin,
 * which ends the run.
 */
const UNFOLLOWED: readonly (number | undefined)[] = [301, 302, 303];

/** @see RegistryClient.mountBlob */
export function mountBlob(
  wire: Wire,
  repository: string,
  digest: Digest,
  from: string,
  options: VerbOptions,
): Promise<MountAnswer> {
  const sources: readonly Scope[] = [{ repository: from, actions: 'pull' }];
  return askForMount(wire, repository, digest, { path: mountPath(repository, digest, from), sources }, options);
}

/** POSTs a mount in whatever form the path has; `sources` are the rights it takes besides those on the target. */
export async function askForMount(
  wire: Wire,
  repository: string,
  digest: Digest,
  { path, sources }: { readonly path: string; readonly sources: readonly Scope[] },
  options: VerbOptions,
): Promise<MountAnswer> {
  const step = mountStep(wire, repository);
  try {
    const response = await sendTo(
      wire,
      step,
      {
        method: 'POST',
        to: { path },
        // Without a length of 0 Google answers 411, and a page.
        body: EMPTY,
        retries: MOUNT_RETRIES,
        scopes: [scopeOf(step), ...sources],
      },
      options,
    );
    return await mountAnswer(wire, repository, digest, response);
  } catch (error) {
    const refused = error instanceof PublishError ? refusalIn(error) : undefined;
    if (refused === undefined || options.signal.aborted) throw error;
    return { kind: 'refused', ...refused };
  }
}

function refusalIn({ code, status, cause }: PublishError): MountFailure | undefined {
  if (code === 'ORIGIN_REFUSED' && UNFOLLOWED.includes(status)) {
    return { sourceBarred: true, why: `mount answered with a redirect (${status})` };
  }
  // Three sends have been waited for, a minute each: as much again for every blob would keep the run for an hour.
  if (code === 'NETWORK_FAILED' && failureCode(cause) === 'UND_ERR_HEADERS_TIMEOUT') {
    return { sourceBarred: true, why: 'mount got no answer in time' };
  }
  return MOUNT_FAILURES[code];
}

async function mountAnswer(
  wire: Wire,
  repository: string,
  digest: Digest,
  response: HttpResponse,
): Promise<MountAnswer> {
  const meaning = meaningOf(MOUNT, response.status);
  const why = `mount answered ${response.status}`;
  if (meaning === 'mounted') {
    await response.discard();
    const said = [digestHeader(response.headers), locationDigest(response.headers['location'])];
    const other = said.some((named) => contradictsDigest(named, digest));
    return other ? { kind: 'refused', sourceBarred: false, why: `${why} for another digest` } : { kind: 'mounted' };
  }
  if (meaning === 'session') {
    await response.discard();
    const session = sessionOf(wire, repository, response);
    if (session !== undefined) return { kind: 'session', session, why };
    return { kind: 'refused', sourceBarred: false, why: `${why} without a usable Location` };
  }
  const refusal = await readRefusal(response);
  if (meaning === 'limited') throw await failureFor(meaning, wire, mountStep(wire, repository), refusal);
  const code = refusal.code === undefined ? '' : ` ${refusal.code}`;
  return { kind: 'refused', sourceBarred: meaning === 'barred', why: `${why}${code}` };
}

/** @see RegistryClient.openUpload */
export async function openUpload(
  wire: Wire,
  repository: string,
  digest: Digest,
  options: VerbOptions,
): Promise<UploadSession> {
  const step = uploadStep(wire, repository);
  const request = { to: { path: uploadPath(repository, digest) }, body: EMPTY, scopes: [scopeOf(step)] };
  const response = await sendTo(wire, step, { method: 'POST', ...request }, options).catch((error: unknown) => {
    throw withRepositoryHint(wire.host, error);
  });
  const meaning = meaningOf(OPEN, response.status);
  if (meaning === 'session') {
    await response.discard();
    const session = sessionOf(wire, repository, response);
    if (session === undefined) throw violated(step, response, 'without a usable Location');
    return session;
  }
  throw await openFailed(wire, step, await readRefusal(response));
}

async function openFailed(wire: Wire, step: Step, refusal: Refusal): Promise<PublishError> {
  const meaning = meaningOf(OPEN, refusal.status);
  switch (meaning) {
    case 'absent':
      return refusedWith('REPOSITORY_NOT_FOUND', step, refusal, REPOSITORY_HINT, `${step.name}: no such repository`);
    case 'refused': {
      const hint =
        refusal.status === 405
          ? 'Write to the registry itself: this one takes no uploads, as mirrors and read-only registries do.'
          : 'Check that this registry takes uploads, and what its message says.';
      return refusedWith('UPLOAD_REFUSED', step, refusal, hint);
    }
    case 'session':
      throw new Error('a session is no failure');
    default:
      return failureFor(meaning, wire, step, refusal);
  }
}

const REPOSITORY_HINT =
  'Create the repository first; ECR needs it to exist, or a creation template with CREATE_ON_PUSH that matches its name.';

/** ECR may cut the connection where it means that the repository does not exist. */
function withRepositoryHint(host: string, error: unknown): unknown {
  const isEcr = host === 'public.ecr.aws' || /\.dkr\.ecr[.-]/.test(host);
  return isEcr && error instanceof PublishError && error.code === 'NETWORK_FAILED'
    ? error.with({ hint: REPOSITORY_HINT, side: 'target' })
    : error;
}

function mountStep(wire: Wire, repository: string): Step {
  return writingStep(wire, 'mounting a blob into', repository, '');
}

function uploadStep(wire: Wire, repository: string): Step {
  return writingStep(wire, 'opening an upload to', repository, '');
}

function sessionOf(wire: Wire, repository: string, response: HttpResponse): UploadSession | undefined {
  const url = resolveLocation(response.headers['location'], response.url, wire.transport.baseUrl(wire.host));
  const chunk = chunkLimits(response.headers);
  return url === undefined ? undefined : { repository, url, ...(chunk === undefined ? {} : { chunk }) };
}
