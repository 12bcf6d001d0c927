import type { ProxySettings } from './proxy.ts';

/** A state of the world in which the job is done. */
export type Situation = {
  readonly id: SituationId;
  readonly title: string;
  readonly mounts: ProxySettings['mounts'];
  /**
   * What happened to this very target before, by the same program: nothing, the whole job, or half of it: all processes
   * were killed when half of the blobs were in the target.
   */
  readonly target: 'fresh' | 'published' | 'interrupted';
  /** `attested`: each source is an index of the image and its attestation manifest, as buildx pushes them. */
  readonly sources: 'images' | 'attested';
};

/** @see Situation */
export type SituationId = 'mounts' | 'refused' | 'again' | 'interrupted' | 'interrupted-refused' | 'attested';

const IMAGES = { sources: 'images' } as const;

export const SITUATIONS: readonly Situation[] = [
  { id: 'mounts', title: 'Mounts work (201), fresh target', mounts: 'work', target: 'fresh', ...IMAGES },
  { id: 'refused', title: 'Mounts refused (202), fresh target', mounts: 'refused', target: 'fresh', ...IMAGES },
  { id: 'again', title: 'Again: nothing to do, mounts work', mounts: 'work', target: 'published', ...IMAGES },
  {
    id: 'interrupted',
    title: 'Run again after SIGKILL at half of the blobs, mounts work',
    mounts: 'work',
    target: 'interrupted',
    ...IMAGES,
  },
  {
    id: 'interrupted-refused',
    title: 'Run again after SIGKILL at half of the blobs, mounts refused',
    mounts: 'refused',
    target: 'interrupted',
    ...IMAGES,
  },
  {
    id: 'attested',
    title: 'Attested sources (an index of image and attestation each), mounts work, fresh target',
    mounts: 'work',
    target: 'fresh',
    sources: 'attested',
  },
];

/** Of these the limits speak; the others are measured at the longest delay only, unless they are asked for. */
export const MAIN_SITUATIONS: readonly SituationId[] = ['mounts', 'refused', 'again'];
