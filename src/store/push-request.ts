import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { isDockerType } from '../model/manifest.ts';
import { parseReference, type Reference } from '../model/reference.ts';
import type { IndexType, PublishRequest, SourceRequest } from '../publish/request.ts';
import { descriptorOf, platformOf } from './children.ts';
import { byDockerName } from './docker-name.ts';
import type { Draft, DraftEntry } from './draft.ts';

/** What `push` may be told besides the draft. */
export type PushOptions = {
  /** Default `auto`. */
  readonly type?: IndexType;
  /** Annotations of the index. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** More tags of the list's repository, beside the list's own reference. */
  readonly tags?: readonly Reference[];
  readonly dryRun?: boolean;
  /** Default true. */
  readonly verify?: boolean;
  readonly foreignLayers?: boolean;
  readonly noClobber?: boolean;
  readonly expectDigest?: Digest;
};

/**
 * What publishing the draft means: the entries in docker's order, pinned to what was read, with what `annotate` said,
 * in docker's layout, so that the digest is the one that `docker manifest push` gives.
 *
 * @throws PublishError `PLATFORM_INVALID` for an image whose os or architecture nobody has told, `INDEX_TYPE_CONFLICT`
 *   for annotations that a Docker list cannot hold, `DRAFT_NOT_FOUND` for a draft without entries
 */
export function pushRequest(draft: Draft, options: PushOptions = {}): PublishRequest {
  if (draft.entries.length === 0) {
    throw new PublishError(
      'DRAFT_NOT_FOUND',
      `the draft of ${draft.reference} has no entries`,
      `Add some: manifest-publish create --amend ${draft.reference} SOURCE...`,
    );
  }
  const { type = 'auto', annotations = {}, tags = [] } = options;
  checkAnnotations(draft, type, annotations);
  const entries = [...draft.entries].sort((one, other) => byDockerName(one.reference, other.reference));
  return {
    targets: [parseReference(draft.reference), ...tags],
    sources: entries.map(sourceOf),
    type,
    annotations,
    layout: 'docker',
    platforms: [],
    forcePlatform: false,
    foreignLayers: options.foreignLayers ?? false,
    waitForSource: 0,
    dryRun: options.dryRun ?? false,
    verify: options.verify ?? true,
    ...(options.noClobber === true ? { noClobber: true } : {}),
    ...(options.expectDigest === undefined ? {} : { expectDigest: options.expectDigest }),
  };
}

/** The tag stays beside the digest, so that messages name the source as the user does. */
function sourceOf(entry: DraftEntry): SourceRequest {
  const { root, children, reference } = entry;
  for (const child of children) {
    // What an index lists without a platform may be no image at all; whoever reads its config can tell.
    if (child.descriptor.digest !== root.digest || platformOf(child) !== undefined) continue;
    throw new PublishError(
      'PLATFORM_INVALID',
      `manifest ${reference} must have an OS and Architecture to be pushed to a registry`,
      `Say them: manifest-publish annotate LIST ${reference} --os linux --arch amd64`,
    );
  }
  return {
    reference: { ...parseReference(reference), digest: root.digest },
    known: { root, children: children.map(descriptorOf) },
  };
}

/** buildx drops them without a word (docker/buildx#2148). */
function checkAnnotations({ entries }: Draft, type: IndexType, annotations: Readonly<Record<string, string>>): void {
  const children = entries.flatMap((entry) => entry.children.map((child) => ({ entry, child })));
  if (type === 'oci' || !children.every(({ child }) => isDockerType(child.descriptor.mediaType))) return;
  const annotated = children.find(({ child }) => Object.keys(child.changes?.annotations ?? {}).length > 0);
  if (annotated === undefined && Object.keys(annotations).length === 0) return;
  const whose = annotated === undefined ? '' : ` (${annotated.entry.reference} has some)`;
  throw new PublishError(
    'INDEX_TYPE_CONFLICT',
    `a Docker manifest list cannot hold annotations${whose}, and all images are Docker`,
    'Add --type oci to get an OCI index, or leave the annotations out.',
  );
}
