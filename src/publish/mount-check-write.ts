import { PublishError } from '../errors.ts';
import { backoff, isPassingStatus } from '../http/retry.ts';
import { MEDIA_TYPES } from '../model/descriptor.ts';
import { type Digest, digestOf } from '../model/digest.ts';
import type { BlobIdentity } from '../registry/client.ts';
import { askMount, askMounts, lookAfter, provePush } from './mount-check-ask.ts';
import { removeProbe } from './mount-check-remove.ts';
import type { LeftBehind } from './mount-check-report.ts';
import {
  announceWrite,
  type CheckRun,
  type Found,
  mountedHere,
  named,
  needsPush,
  whenVisible,
} from './mount-check-run.ts';
import type { MountEvidence } from './mount-check-words.ts';
import { trackSessions } from './sessions.ts';

/** A blob that is nowhere yet, and a manifest that names it. */
type Probe = {
  readonly blob: BlobIdentity;
  readonly bytes: Uint8Array;
  readonly manifest: { readonly bytes: Uint8Array; readonly digest: Digest; readonly mediaType: string };
};

/** How often an upload of a few hundred bytes is worth being begun. */
const UPLOADS = 4;

/** How often a manifest is put that the registry calls incomplete. */
const PUTS = 3;

export async function checkWithProbe(run: CheckRun): Promise<Found> {
  const { target, source, registry } = run;
  const probe = makeProbe(run.ports.random);
  const { blob, manifest } = probe;
  announceWrite(
    `uploads ${blob.digest} (${blob.size} bytes) to ${registry.host}/${source}, mounts it into ${registry.host}/${target}, and puts ${manifest.digest}, which names it, into ${registry.host}/${source} unless it was mounted before; what the registry lets be deleted is deleted`,
    run,
  );
  const { book } = run;
  book.blob = blob;
  const uploaded: readonly LeftBehind[] = [{ what: 'blob', repository: source, digest: blob.digest }];
  const naming: readonly LeftBehind[] = [{ what: 'manifest', repository: source, digest: manifest.digest }];
  let done = false;
  try {
    await uploadProbe(probe, run, (fate) => {
      book.left = fate === 'nothing' ? [] : uploaded;
    });
    let evidence: MountEvidence = { write: true, ...(await askMounts(blob, run)) };
    const first = evidence.any === 'mounted' || evidence.first === 'mounted';
    let manifests: readonly LeftBehind[] = [];
    // In the order in which it is deleted: what names the blob, then where it got to first.
    const written = () => {
      const mounted = mountedHere(blob, evidence, run);
      return [...manifests, ...(first ? [...mounted, ...uploaded] : [...uploaded, ...mounted])];
    };
    if (!first) {
      book.left = [...naming, ...uploaded];
      const { stored, ...more } = await mountReferenced(probe, run);
      manifests = stored ? naming : [];
      evidence = { ...evidence, ...more };
    }
    book.left = written();
    evidence = { ...evidence, ...(await lookAfter(blob, evidence, run)) };
    book.left = written();
    await provePush(blob, evidence, run);
    done = true;
    book.left = await removeProbe(book.left, run);
    return { blob, evidence, left: named(book.left, run) };
  } finally {
    // Reached with something left only by a failure: the verdict is lost, but not what was written.
    if (!done && book.left.length > 0) await cleanUpAfterFailure(run);
  }
}

/** The mount with `from` once a manifest names the blob, or why none could. */
async function mountReferenced(
  probe: Probe,
  run: CheckRun,
): Promise<Pick<MountEvidence, 'second' | 'refusal' | 'unreferenced'> & { readonly stored: boolean }> {
  const { unreferenced, stored } = await putProbe(probe, run);
  if (unreferenced !== undefined) return { unreferenced, stored };
  const answer = await askMount(probe.blob, run);
  return { second: answer.kind, stored, ...(answer.kind === 'refused' ? { refusal: answer.why } : {}) };
}

async function cleanUpAfterFailure(run: CheckRun): Promise<void> {
  const { book, ports, registry, signal } = run;
  // A run that was stopped may send nothing more, and need not have written all of it.
  const { aborted } = signal;
  if (!aborted) book.left = await removeProbe(book.left, run);
  for (const { what, repository, digest } of book.left) {
    const text = `mount-check ${aborted ? 'may have left' : 'leaves'} the ${what} ${digest} in ${registry.host}/${repository}`;
    ports.emit({ kind: 'warning', text });
  }
}

/** Whether an answer of this status says that nothing was stored: of the others, what is asked may have been done. */
function storedNothing(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && !isPassingStatus(status);
}

/**
 * The blob is an image config, since registries that read configs refuse anything else, and the manifest's only layer
 * as well, since some want one (image-spec v1.1.1 manifest.md: "SHOULD have at least one entry").
 */
function makeProbe(random: () => number): Probe {
  const word = () =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  const name = [word(), word(), word(), word()].join('');
  const bytes = utf8({
    architecture: 'unknown',
    os: 'unknown',
    config: {},
    rootfs: { type: 'layers', diff_ids: [] },
    author: `manifest-publish mount-check ${name}`,
  });
  const blob = { digest: digestOf(bytes), size: bytes.byteLength };
  const manifest = utf8({
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.ociManifest,
    config: { mediaType: MEDIA_TYPES.ociConfig, ...blob },
    layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...blob }],
  });
  return {
    blob,
    bytes,
    manifest: { bytes: manifest, digest: digestOf(manifest), mediaType: MEDIA_TYPES.ociManifest },
  };
}

function utf8(document: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(document));
}

/**
 * Brings the blob into the source repository and waits until it is seen there: a mount before that would be refused
 * for the wrong reason. `tell` hears whether something may have been written.
 *
 * @throws PublishError of exit code 3 when this login may not push there
 */
async function uploadProbe(probe: Probe, run: CheckRun, tell: (fate: Fate) => void): Promise<void> {
  try {
    await upload(probe, run, tell);
  } catch (error) {
    throw needsPush(error, run);
  }
  const { registry, source, signal } = run;
  const seen = await whenVisible(async () => {
    const presence = await run.record.take(
      'HEAD',
      'blob',
      source,
      (witness) => registry.hasBlob(source, probe.blob.digest, { signal, ...witness }),
      ({ kind }) =>
        ({ present: 'there, and no manifest names it', absent: 'not to be seen', unknown: 'no news' })[kind],
    );
    return presence.kind;
  }, run);
  if (seen !== 'absent') return;
  throw new PublishError(
    'PROTOCOL_VIOLATED',
    `${registry.host}/${source} stored the blob ${probe.blob.digest} but does not show it`,
    'Run the same command again; if it repeats, the registry loses what it is sent.',
    { side: 'source', registry: registry.host, repository: source },
  );
}

/** What has become of the blob: `nothing` was stored for certain, or it `may` be there. */
type Fate = 'nothing' | 'may';

async function upload({ blob, bytes }: Probe, run: CheckRun, tell: (fate: Fate) => void): Promise<void> {
  const { registry, source, record, ports, signal } = run;
  const sessions = trackSessions({ host: registry.host, repository: source }, ports, signal);
  let mayBe = false;
  try {
    for (let turn = 1; ; turn += 1) {
      const session = await record.take(
        'POST',
        'upload',
        source,
        (witness) =>
          sessions
            .open((options) => registry.openUpload(source, blob.digest, { ...options, ...witness }))
            .then(sessions.opened),
        () => 'an upload session',
      );
      tell('may');
      const answer = await record.take(
        'PUT',
        'blob',
        source,
        (witness) => registry.upload(session, blob, bytes, { signal, ...witness }),
        ({ kind }) => (kind === 'stored' ? 'stored' : `not stored: ${kind}`),
      );
      const ours = ('alive' in answer && answer.alive) || ('interrupted' in answer && answer.interrupted !== undefined);
      if (ours) sessions.cancel(session);
      else sessions.used(session);
      if (answer.kind === 'stored') return;
      // A broken one may be committed yet, whatever becomes of the next.
      mayBe ||= answer.kind === 'broken' || (answer.kind === 'refused' && !storedNothing(answer.error.status));
      if (!mayBe) tell('nothing');
      if (answer.kind === 'refused' || answer.kind === 'corrupt' || turn === UPLOADS) throw answer.error;
      if (answer.kind !== 'otherwise') await ports.clock.sleep(backoff(turn - 1, ports.random), signal);
    }
  } finally {
    await sessions.close();
  }
}

/** Puts the manifest that names the blob. Returns why that could not be done, in words, and whether it may be there. */
async function putProbe(
  { manifest }: Probe,
  run: CheckRun,
): Promise<{ readonly unreferenced?: string; readonly stored: boolean }> {
  const { registry, source, record, ports, signal } = run;
  for (let turn = 1; ; turn += 1) {
    const answer = await record.take(
      'PUT',
      'manifest',
      source,
      (witness) => registry.putManifest(source, manifest.digest, manifest, { signal, ...witness }),
      ({ kind }) => (kind === 'stored' ? 'it names the blob' : `not taken: ${kind}`),
    );
    if (answer.kind === 'stored') break;
    if (answer.kind !== 'incomplete' || turn === PUTS) {
      const unreferenced = `no manifest could be made to name the blob: ${answer.error.message}`;
      return { unreferenced, stored: !storedNothing(answer.error.status) };
    }
    // Nexus shows late what it has (estesp/manifest-tool#191).
    await ports.clock.sleep(1000 * turn, signal);
  }
  await whenVisible(async () => {
    const presence = await record.take(
      'HEAD',
      'manifest',
      source,
      (witness) => registry.hasManifest(source, manifest.digest, { signal, ...witness }),
      ({ kind }) => ({ present: 'there', absent: 'not to be seen', unknown: 'no news' })[kind],
    );
    return presence.kind;
  }, run);
  return { stored: true };
}
