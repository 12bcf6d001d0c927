import type { Digest } from '../model/digest.ts';

/**
 * How a registry answers mounts. `mounts`: it does, and it was not asked on which condition. `existence`: the source
 * has the blob, that is enough. `referenced`: a manifest of the source must name the blob. `discovery`: it finds the
 * blob by itself, without being told a source. `never`: not even then.
 */
export const MOUNT_VERDICTS = ['existence', 'referenced', 'discovery', 'never', 'mounts'] as const;

/** @see MOUNT_VERDICTS */
export type MountVerdict = (typeof MOUNT_VERDICTS)[number];

/** One request of the check, in the order in which they were sent. */
export type MountStep = {
  readonly step: number;
  readonly method: string;
  /** What was asked for: `mount with from`, `blob`, … */
  readonly what: string;
  /** Where; with a tag or digest when a manifest is read. */
  readonly repository: string;
  /** Of the answer, to be shown; absent when the registry itself gave none, such as where there was no token. */
  readonly status?: number;
  readonly meaning: string;
};

/** Something the check has written and not taken away. */
export type LeftBehind = {
  readonly what: 'blob' | 'manifest';
  /** With its host. */
  readonly repository: string;
  readonly digest: Digest;
};

/** What is known of a check that failed: its requests, what it left behind, and no verdict. */
export type BrokenMountCheck = Omit<MountCheck, 'blob'> & Partial<Pick<MountCheck, 'blob'>>;

/** What `mount-check` found; `--json` prints it as it is. Sizes in bytes. */
export type MountCheck = {
  readonly schemaVersion: 1;
  /** `HOST/REPOSITORY` */
  readonly target: string;
  /** The reference in full. */
  readonly source: string;
  /** Whether blobs and a manifest of our own were used. */
  readonly write: boolean;
  /** The blob whose mount was asked for. */
  readonly blob: { readonly digest: Digest; readonly size: number };
  readonly steps: readonly MountStep[];
  readonly verdict: MountVerdict | 'unknown';
  /** Only with `unknown`: what stood in the way, and whether it was that the registry contradicts itself. */
  readonly unknown?: { readonly because: string; readonly lied: boolean };
  /** The verdict in words, measured by the specification. */
  readonly meaning: string;
  readonly spec: string;
  /** What `publish` is going to do with images of SOURCE. */
  readonly publish: string;
  readonly registry: {
    /** Which product or service it is, when its host name or headers say so. */
    readonly kind?: string;
    /** What was seen of it. */
    readonly signs: readonly string[];
  };
  readonly left: readonly LeftBehind[];
  readonly notes: readonly string[];
};
