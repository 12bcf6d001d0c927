import type { MountVerdict } from './mount-check-report.ts';

/** Where the rules stand that every verdict is measured by. */
export const MOUNT_SPEC = 'OCI distribution-spec v1.1.1, section "Mounting a blob from another repository"';

/** What came back, by the kinds of the answers. */
export type MountEvidence = {
  /** Whether the blob was one that no manifest named when its mount was asked for first. */
  readonly write: boolean;
  /** Without `from`. */
  readonly any: MountKind;
  /** With `from`. */
  readonly first: MountKind;
  /** With `from`, once a manifest of the source named the blob. */
  readonly second?: MountKind;
  /** The look at the target after a 201. */
  readonly after?: 'present' | 'absent' | 'unknown';
  /** The last refusal that was no session, in words. */
  readonly refusal?: string;
  /** Why no manifest could be made to name the blob. */
  readonly unreferenced?: string;
};

export type MountKind = 'mounted' | 'session' | 'refused';

/** @see decideMount */
export type MountDecision =
  | { readonly verdict: MountVerdict }
  | { readonly verdict: 'unknown'; readonly because: string; readonly lied: boolean };

/** The verdict that the evidence allows; what it does not settle is never guessed. Pure. */
export function decideMount(evidence: MountEvidence): MountDecision {
  const { write, any, first, second, after, refusal, unreferenced } = evidence;
  const mounted = [any, first, second].includes('mounted');
  if (mounted && after === 'absent') {
    const because = 'the mount was answered 201, but the blob is not in the target repository';
    return { verdict: 'unknown', because, lied: true };
  }
  if (any === 'mounted') return { verdict: 'discovery' };
  if (first === 'mounted') return { verdict: write ? 'existence' : 'mounts' };
  if (second === 'mounted') return { verdict: 'referenced' };
  if (unreferenced !== undefined) return { verdict: 'unknown', because: unreferenced, lied: false };
  if (first === 'session' && (second ?? first) === 'session') return { verdict: 'never' };
  return { verdict: 'unknown', because: `the mount was refused: ${refusal ?? 'no reason was given'}`, lied: false };
}

const SENTENCES: Readonly<Record<MountVerdict, string>> = {
  existence:
    'A blob is mounted when the source repository has it, whether or not a manifest names it: the one condition that the specification knows.',
  referenced:
    'A blob is mounted only when a manifest of the source repository names it. The specification knows no such condition, it asks only that the blob exists; the 202 for the others is an answer that it allows, so that no conformance suite turns red (aws/containers-roadmap#2860).',
  discovery:
    'A blob is mounted without being told where from: the specification lets a registry treat "from" as optional (automatic content discovery).',
  never:
    'Mounts are answered with an upload session (202), which is what the specification asks of a registry that does not mount, or not this blob; the session may be used. That can be a setting of the registry, or of these two repositories.',
  mounts:
    'A blob that a manifest of the source repository names is mounted. Whether it has to be named, where the specification asks only that it exists, is told by --write.',
};

/** The verdict as a sentence. */
export function verdictSentence(verdict: MountVerdict | 'unknown'): string {
  if (verdict !== 'unknown') return SENTENCES[verdict];
  return 'The answers do not tell how this registry mounts. The specification has 201 for a mount, and 202 with an upload session for everything that is not mounted.';
}

/** What is known of the images that would be published. Sizes in bytes. */
export type MountOutlook = {
  readonly verdict: MountVerdict | 'unknown';
  /** Blobs of the image that was looked at, foreign layers aside. */
  readonly blobs: number;
  readonly bytes: number;
  /** The target showed a blob that only the source had: then nothing needs to be sent. */
  readonly shared: boolean;
  readonly refused: boolean;
  readonly lied: boolean;
  /** Of the configuration. */
  readonly mounting: 'auto' | 'never';
};

/** What `publish` does with such a registry. */
export function publishSentence(outlook: MountOutlook): string {
  const { verdict, blobs, bytes, shared, refused, lied, mounting } = outlook;
  const each = `${blobs} ${blobs === 1 ? 'blob' : 'blobs'}`;
  const stream = `streams ${bytes} bytes`;
  if (mounting === 'never') return `asks for no mount here, since the configuration says so, and ${stream} (${each}).`;
  if (lied) return `looks for every blob after its 201, and ${stream} (${each}) where they are missing.`;
  if (verdict !== 'never' && verdict !== 'unknown') {
    return `mounts the ${each} of this image in as many requests and sends no byte of them; a HEAD each makes sure of it (not with --no-verify).`;
  }
  if (shared)
    return `asks for the ${each} after their refused mounts, is shown them from other repositories, and sends none.`;
  if (refused) {
    return `takes such a refusal for an answer: it opens an upload without mount, ${stream} (${each}), and does not offer this source again in the same run where the registry has turned it down (4xx).`;
  }
  if (verdict === 'unknown') {
    return `asks for ${each} to be mounted, and streams what is not, at most ${bytes} bytes, into the upload sessions that the refused mounts open.`;
  }
  return `${stream} (${each}), each blob into the upload session that its refused mount has opened.`;
}
