import { PublishError } from '../errors.ts';
import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { isForeignLayer, type Manifest } from '../model/manifest.ts';
import type { PublishRequest } from './request.ts';
import type { ChildKind, Location, ResolvedChild } from './resolved.ts';

/**
 * Where a child stands before anything is written. `here`: its source is the target repository, reading it was the
 * proof. `listed`: a target tag lists it, a HEAD will tell. `trusted`: the same, but the user asked for no HEAD.
 * `away`: it must be put.
 */
export type ChildStanding = 'here' | 'listed' | 'trusted' | 'away';

/** What can be planned: a child of the list, or an index that refers to one, with what it holds as its `subjects`. */
export type Plannable = Pick<ResolvedChild, 'from' | 'name' | 'kind' | 'subjects'> & { readonly manifest: Manifest };

/** What the target says it holds, as far as a plan looks at it. */
type Lists =
  | { readonly kind: 'absent' | 'unknown' }
  | { readonly kind: 'present'; readonly children: readonly Digest[] };

/** One child manifest to be in the target. Sizes in bytes. */
export type PlannedChild = {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly size: number;
  readonly name: string;
  readonly kind: ChildKind;
  readonly standing: ChildStanding;
  /** Digests of its blobs, each once, foreign layers left out. */
  readonly blobs: readonly Digest[];
  readonly skipped: readonly { readonly digest: Digest; readonly size: number }[];
  /** Children that must be in the target before it. */
  readonly after: readonly Digest[];
};

/** One blob to be in the target, however many children share it. */
export type PlannedBlob = {
  readonly digest: Digest;
  readonly size: number;
  /** Where it can be read, the best first. */
  readonly sources: readonly Location[];
  /** Repositories of the target's registry that can be offered in a mount. */
  readonly mountFrom: readonly string[];
  /** True when a child that is surely in the target names it. */
  readonly present: boolean;
  /** Children whose HEAD decides whether it must be placed at all; empty: place it at once. */
  readonly waitsFor: readonly Digest[];
};

/** What a publish will do, as plain data: it can be printed, compared and tested. */
export type PublishPlan = {
  readonly target: Location;
  readonly children: readonly PlannedChild[];
  readonly blobs: readonly PlannedBlob[];
};

/**
 * Turns what was read into what is to be placed. Pure. `children` are those that the index may list.
 *
 * @throws PublishError `SIZE_MISMATCH` when two manifests give one blob different sizes
 */
export function planPublish(
  request: Pick<PublishRequest, 'verify' | 'foreignLayers'>,
  resolution: { readonly target: Location; readonly tags: readonly Lists[] },
  children: readonly Plannable[],
): PublishPlan {
  const { target } = resolution;
  const listed = new Set(resolution.tags.flatMap((tag) => (tag.kind === 'present' ? tag.children : [])));
  const standing = (child: Plannable): ChildStanding => {
    if (isSamePlace(child.from, target)) return 'here';
    if (!listed.has(child.manifest.digest)) return 'away';
    return request.verify ? 'listed' : 'trusted';
  };

  const planned = new Map<Digest, PlannedChild>();
  const blobs = new Map<Digest, BlobUses>();
  const known = new Set(children.map((child) => child.manifest.digest));
  for (const child of children) {
    const one = plannedChild(child, standing(child), known, request.foreignLayers);
    const before = planned.get(one.digest);
    planned.set(one.digest, before?.standing === 'here' ? before : one);
    collectBlobs(child, one, blobs);
  }
  return {
    target,
    children: withoutCycles(planned),
    blobs: [...blobs.values()].map((uses) => plannedBlob(uses, planned, target)),
  };
}

/**
 * Drops the edges that close a circle: an attestation names its image in an annotation, which no hash protects, so a
 * hostile index could make two children wait for each other.
 */
function withoutCycles(children: ReadonlyMap<Digest, PlannedChild>): readonly PlannedChild[] {
  const states = new Map<Digest, 'open' | 'done'>();
  const kept = new Map<Digest, Digest[]>();
  const visit = (child: PlannedChild): void => {
    states.set(child.digest, 'open');
    const after: Digest[] = [];
    for (const digest of child.after) {
      const subject = children.get(digest);
      if (subject === undefined || states.get(digest) === 'open') continue;
      if (!states.has(digest)) visit(subject);
      after.push(digest);
    }
    kept.set(child.digest, after);
    states.set(child.digest, 'done');
  };
  for (const child of children.values()) if (!states.has(child.digest)) visit(child);
  return [...children.values()].map((child) => ({ ...child, after: kept.get(child.digest) ?? [] }));
}

/** A blob with everything that names it, while the plan is made. */
type BlobUses = {
  readonly digest: Digest;
  readonly size: number;
  readonly sources: Location[];
  readonly children: Set<Digest>;
};

function plannedChild(
  { manifest, name, kind, subjects }: Plannable,
  standing: ChildStanding,
  known: ReadonlySet<Digest>,
  foreignLayers: boolean,
): PlannedChild {
  // Only layers can be foreign: a config is needed by everyone, whatever `urls` it has.
  const all = blobsOf(manifest);
  const wanted = all.filter((blob, position) => position === 0 || foreignLayers || !isForeignLayer(blob));
  const blobs = new Set(wanted.map((blob) => blob.digest));
  return {
    digest: manifest.digest,
    mediaType: manifest.mediaType,
    size: manifest.size,
    name,
    kind,
    standing,
    blobs: [...blobs],
    skipped: all.filter(({ digest }) => !blobs.has(digest)).map(({ digest, size }) => ({ digest, size })),
    after: subjects.filter((subject) => known.has(subject) && subject !== manifest.digest),
  };
}

/** The config and the layers; an index has none. */
function blobsOf(manifest: Manifest): readonly Descriptor[] {
  return manifest.kind === 'image' ? [manifest.config, ...manifest.layers] : [];
}

function collectBlobs({ manifest, from, name }: Plannable, child: PlannedChild, blobs: Map<Digest, BlobUses>): void {
  const wanted = new Set(child.blobs);
  for (const { digest, size } of blobsOf(manifest)) {
    if (!wanted.has(digest)) continue;
    const uses = blobs.get(digest) ?? { digest, size, sources: [], children: new Set() };
    if (uses.size !== size) {
      throw new PublishError(
        'SIZE_MISMATCH',
        `${name} gives blob ${digest} ${size} bytes, another source gives it ${uses.size}`,
        'One of the images is damaged; build and push it again.',
        { side: 'source' },
      );
    }
    if (!uses.sources.some((source) => isSamePlace(source, from))) {
      uses.sources.push(from);
    }
    uses.children.add(child.digest);
    blobs.set(digest, uses);
  }
}

function plannedBlob(uses: BlobUses, children: ReadonlyMap<Digest, PlannedChild>, target: Location): PlannedBlob {
  const standings = [...uses.children].map((digest) => children.get(digest)?.standing ?? 'away');
  const local = uses.sources.filter((source) => source.host === target.host);
  const remote = uses.sources.filter((source) => source.host !== target.host);
  const waits = standings.every((standing) => standing === 'listed');
  return {
    digest: uses.digest,
    size: uses.size,
    sources: [...local, ...remote],
    mountFrom: local.map((source) => source.repository).filter((repository) => repository !== target.repository),
    present: standings.some((standing) => standing === 'here' || standing === 'trusted'),
    waitsFor: waits ? [...uses.children] : [],
  };
}

/** Whether both are one repository. */
export function isSamePlace(one: Location, other: Location): boolean {
  return one.host === other.host && one.repository === other.repository;
}
