import { PublishError } from '../errors.ts';
import { type ImageManifest, isForeignLayer } from '../model/manifest.ts';
import { formatReference, type Reference } from '../model/reference.ts';
import type { BlobIdentity } from '../registry/client.ts';
import { askMounts, look, lookAfter, provePush } from './mount-check-ask.ts';
import { registryOf } from './mount-check-registry.ts';
import type { BrokenMountCheck, MountCheck } from './mount-check-report.ts';
import { announceWrite, type CheckRun, type Found, mountedHere, named } from './mount-check-run.ts';
import { readSourceImage } from './mount-check-source.ts';
import { recordSteps } from './mount-check-steps.ts';
import { decideMount, MOUNT_SPEC, type MountEvidence, publishSentence, verdictSentence } from './mount-check-words.ts';
import { checkWithProbe } from './mount-check-write.ts';
import type { PublishPorts } from './ports.ts';
import { trackSessions } from './sessions.ts';

/**
 * Asks how a registry answers mounts from one repository into another. Without `write` the config of an image that is
 * there is mounted; with it a blob of our own, first while no manifest names it and then once one does, which is what
 * ECR's answer depends on. Everything that is written is told beforehand, as a warning; no session stays open.
 *
 * @throws PublishError when SOURCE is not there, or TARGET takes no uploads at all; a refused mount is an answer
 * @see distribution-spec v1.1.1 spec.md, section "Mounting a blob from another repository"
 * @see https://github.com/aws/containers-roadmap/issues/2860
 */
export async function checkMounts(
  target: Reference,
  source: Reference,
  options: {
    readonly write: boolean;
    /** Told what there is to tell of a check that fails, just before it throws. */
    readonly onFailure?: (broken: BrokenMountCheck) => void;
  },
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<MountCheck> {
  const registry = ports.registry(target.host);
  const { repository, host } = target;
  registry.announce([
    { repository: source.repository, access: options.write ? 'push' : 'pull' },
    { repository, access: 'push', mountFrom: [source.repository] },
  ]);
  const sessions = trackSessions({ host, repository }, ports, signal);
  const record = recordSteps();
  const book: CheckRun['book'] = { left: [] };
  const run: CheckRun = {
    registry,
    target: repository,
    source: source.repository,
    record,
    sessions,
    ports,
    signal,
    book,
  };
  try {
    const image = await readSourceImage(source, options, run);
    const found = options.write ? await checkWithProbe(run) : await checkWithConfig(image.config, run);
    return reportOf(target, source, options.write, image, found, run);
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    const told = signal.aborted ? error.with({ hint: endedHint(options.write, error.code) }) : error;
    options.onFailure?.(brokenReport(target, source, options.write, told, run));
    throw told;
  } finally {
    await sessions.close();
  }
}

/** Nothing of a check is taken up again: a run with `write` makes a blob that is new. */
function endedHint(write: boolean, code: PublishError['code']): string {
  const again = write ? 'it begins anew, with a blob of its own' : 'it begins anew';
  return `${code === 'TIMED_OUT' ? 'Allow more time, or run' : 'Run'} the same command again: ${again}.`;
}

function brokenReport(
  target: Reference,
  source: Reference,
  write: boolean,
  { message }: PublishError,
  run: CheckRun,
): BrokenMountCheck {
  const { blob, left } = run.book;
  return {
    schemaVersion: 1,
    target: `${target.host}/${target.repository}`,
    source: formatReference(source),
    write,
    ...(blob === undefined ? {} : { blob: { digest: blob.digest, size: blob.size } }),
    steps: run.record.steps,
    verdict: 'unknown',
    unknown: { because: message, lied: false },
    meaning: verdictSentence('unknown'),
    spec: MOUNT_SPEC,
    publish: 'cannot be told: the check did not come to its end.',
    registry: registryOf(target.host, run.record.seen),
    left: named(left, run),
    notes: [],
  };
}

async function checkWithConfig(blob: BlobIdentity, run: CheckRun): Promise<Found> {
  run.book.blob = blob;
  const { target, registry } = run;
  announceWrite(`mounts ${blob.digest} into ${registry.host}/${target}; if the registry does so, the blob stays`, run);
  const before = await look(blob, 'there before any mount', run);
  const asked: MountEvidence = { write: false, ...(await askMounts(blob, run)) };
  const kept = before !== 'present';
  if (kept) run.book.left = mountedHere(blob, asked, run);
  const evidence = { ...asked, ...(await lookAfter(blob, asked, run)) };
  if (kept) run.book.left = mountedHere(blob, evidence, run);
  await provePush(blob, evidence, run);
  return {
    blob,
    evidence,
    before: before === 'present',
    left: named(run.book.left, run),
  };
}

function reportOf(
  target: Reference,
  source: Reference,
  write: boolean,
  manifest: ImageManifest,
  { blob, evidence, before, left }: Found,
  { registry, record }: CheckRun,
): MountCheck {
  const decision = decideMount(evidence);
  const blobs = new Map([manifest.config, ...manifest.layers].map((layer) => [layer.digest, layer]));
  const sent = [...blobs.values()].filter((layer) => !isForeignLayer(layer));
  const unknown = decision.verdict === 'unknown' ? { because: decision.because, lied: decision.lied } : undefined;
  const mounted = [evidence.any, evidence.first, evidence.second].includes('mounted');
  const shared = write && !mounted && evidence.after === 'present';
  return {
    schemaVersion: 1,
    target: `${target.host}/${target.repository}`,
    source: formatReference(source),
    write,
    blob: { digest: blob.digest, size: blob.size },
    steps: record.steps,
    verdict: decision.verdict,
    ...(unknown === undefined ? {} : { unknown }),
    meaning: verdictSentence(decision.verdict),
    spec: MOUNT_SPEC,
    publish: publishSentence({
      verdict: decision.verdict,
      blobs: sent.length,
      bytes: sent.reduce((sum, { size }) => sum + size, 0),
      shared,
      refused: (evidence.second ?? evidence.first) === 'refused',
      lied: unknown?.lied ?? false,
      mounting: registry.mounting,
    }),
    registry: registryOf(target.host, record.seen),
    left,
    notes: [...(before === true ? [BEFORE] : []), ...(shared ? [SHARED] : [])],
  };
}

const BEFORE =
  'the target had or showed the blob before it was mounted, so that a 201 proves less; --write asks with a blob that is new';

const SHARED =
  'the target shows blobs of other repositories: a HEAD that finds one there does not prove that it has it';
