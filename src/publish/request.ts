import type { Descriptor, Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import type { IndexLayout } from '../model/image-index.ts';
import type { Reference } from '../model/reference.ts';

/** One image or index to take in. */
export type SourceRequest = {
  readonly reference: Reference;
  /** As the user wrote it before `=`, spelled Go's way. On an index it picks a child; on an image it is a claim. */
  readonly platform?: Platform;
  /** What a draft holds of it: not read again, and its entries are written as they are. */
  readonly known?: KnownSource;
  /** Where it was named, for messages: `app.yaml:12:9`, `digests/3f1c…`; absent for the command line. */
  readonly origin?: string;
  /** Annotations of the entries it brings, over those of the source; a Docker list cannot hold any. */
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Annotations of the entries of one platform, or of every image where none is named. */
export type EntryAnnotations = {
  readonly platform?: Platform;
  readonly annotations: Readonly<Record<string, string>>;
};

/** A source that was read before; the bytes of its manifests come beside the request, keyed by digest. */
export type KnownSource = {
  /** What the reference named when it was read. */
  readonly root: Descriptor;
  /** The entries that it brings to the index, platforms and annotations settled. */
  readonly children: readonly Descriptor[];
};

/** Which document the children are listed in. `auto`: a Docker list when every child is Docker, else an OCI index. */
export type IndexType = 'auto' | 'oci' | 'docker';

/**
 * Everything a publish needs to know, as plain data. Every door of the program ends here; there is no second
 * path.
 */
export type PublishRequest = {
  /**
   * At least one, in any number of repositories and registries; the first is TARGET. None has a digest. In each
   * repository the tags move one after the other; what fails in one does not stop another.
   */
  readonly targets: readonly Reference[];
  /** At least one; their order is the order of the index. */
  readonly sources: readonly SourceRequest[];
  readonly type: IndexType;
  /** Annotations of the index. A Docker list cannot hold any. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly layout: IndexLayout;
  /** Only children of these platforms; empty: all. */
  readonly platforms: readonly Platform[];
  /** The exact set of platforms the index must have; anything else ends the run before any write. */
  readonly expectPlatforms?: readonly Platform[];
  /** A platform that contradicts the image's config is written all the same. */
  readonly forcePlatform: boolean;
  /** Layers with `urls` or of a non-distributable type are copied too. */
  readonly foreignLayers: boolean;
  /** How long a source that is 404 is asked again, in ms; 0: not at all. */
  readonly waitForSource: number;
  /** Read and plan only. */
  readonly dryRun: boolean;
  /** False: mounted blobs are not looked at, and children that the tag lists count as present. */
  readonly verify: boolean;
  /**
   * A target tag that exists with another digest is left alone, and the run ends. The spec has no way to move a tag only
   * if it is still what it was, so this holds against everything that could be seen at the last read, just before the
   * PUT: between the two a tag of somebody else can still be lost (docs/decisions/0006).
   */
  readonly noClobber?: boolean;
  /** What every target tag must hold now, unless it holds the new index already; the same limits as `noClobber`. */
  readonly expectDigest?: Digest;
  /**
   * Annotations of entries, attestations aside, over those that they have: of all images, over them a source's own, over
   * these a platform's. A platform that no entry has ends the run. A Docker list cannot hold any.
   */
  readonly entryAnnotations?: readonly EntryAnnotations[];
  /**
   * Start from what TARGET holds now: entries of the platforms that the sources bring are replaced, with their
   * attestations, all others stay. The tag must still hold that when it is moved, as with `expectDigest`.
   */
  readonly amend?: boolean;
  /** Sources that are not there (404, and nothing else) are left out, and said in a warning; all of them missing: exit 4. */
  readonly ignoreMissing?: boolean;
  /** `drop`: attestations beside images are not taken in, nor kept where TARGET is amended. Default `keep`. */
  readonly attestations?: 'keep' | 'drop';
  /** `all`: referrers and cosign's tags of every child are taken along. Default `none`. */
  readonly referrers?: 'none' | 'all';
  /**
   * A TARGET whose tag holds a single image that is no source is left alone, and the run ends before any write: set where
   * a further tag is written as a reference, as `imagetools create -t` has it, since TARGET may then be meant as a source.
   */
  readonly guardsImage?: true;
  /**
   * `content`: children and blobs are placed, no index, no tag, and no referrer, which some registries list under tags.
   * `index`: only what `content` leaves out; a child that is not there ends the run before any tag moves.
   */
  readonly stage?: 'content' | 'index';
  /** The list has more sources than these, and others place them: what only the whole can be asked is not asked. */
  readonly part?: true;
  /** Where the list was named, for messages: `app.yaml:3:5`. */
  readonly origin?: string;
};
