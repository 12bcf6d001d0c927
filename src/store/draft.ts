import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import type { PartialPlatform } from '../model/platform.ts';

/** A list that is being put together on this machine: what `create` read and `annotate` changed. Plain data. */
export type Draft = {
  /** The list's reference in full, for example `docker.io/acme/app:1.2.3`. */
  readonly reference: string;
  /** Keyed by their reference, as docker's; in the order in which they came. */
  readonly entries: readonly DraftEntry[];
  /** Of a draft that was taken over from docker: a hash of docker's files as they were, to tell when they change. */
  readonly docker?: Digest;
};

/** One source of the list. */
export type DraftEntry = {
  /** The source in full, with the tag or digest that the user wrote. */
  readonly reference: string;
  /** What the reference named when it was read: an image, or an index of images. */
  readonly root: Descriptor;
  /** The image itself, or the images and attestations of the index, in its order. */
  readonly children: readonly DraftChild[];
};

/** One image of a source. */
export type DraftChild = {
  /** As the registry and the config have it; the platform is absent when neither tells one. */
  readonly descriptor: Descriptor;
  /** What `annotate` said; it wins over the descriptor, field by field. os.features are added to the image's own. */
  readonly changes?: {
    readonly platform?: PartialPlatform;
    readonly annotations?: Readonly<Record<string, string>>;
  };
};

/** A draft with the exact bytes of every manifest that it names, keyed by digest. */
export type StoredDraft = { readonly draft: Draft; readonly manifests: ReadonlyMap<Digest, Uint8Array> };

/** The drafts of this machine's user. One lock per draft; a change is there whole or not at all. */
export interface DraftStore {
  /** @throws PublishError `FILE_FAILED`, `DRAFT_INVALID` naming the file */
  read(reference: string): Promise<StoredDraft | undefined>;
  /**
   * Reads, changes and writes under the draft's lock, so that two processes lose nothing. `work` gives the draft to be
   * written; undefined leaves what is there. It is called again in the rare case that another process took the lock
   * over meanwhile.
   *
   * @throws as {@link DraftStore.read}, and what `work` throws: nothing is written then
   */
  change(
    reference: string,
    work: (current: StoredDraft | undefined) => Promise<StoredDraft | undefined>,
  ): Promise<void>;
  /** By reference. Files that are no drafts are named in `damaged`. */
  list(): Promise<{ readonly drafts: readonly Draft[]; readonly damaged: readonly string[] }>;
  /** Whether there was one. Never asks a registry. */
  remove(reference: string): Promise<boolean>;
}
