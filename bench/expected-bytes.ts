import type { SeededImage } from './seed.ts';
import type { SituationId } from './situations.ts';
import type { Auth } from './token-gate.ts';

/** Bytes of bodies in either direction, errors and tokens aside. */
export type Bytes = { readonly up: number; readonly down: number };

/**
 * What `publish` sends and reads in a situation: each manifest once, each blob that is copied once in each direction.
 * Undefined where it depends on which half of the blobs was there.
 * @param index bytes of the list that it makes
 */
export function expectedBytes(
  situation: SituationId,
  images: readonly SeededImage[],
  index: number,
): Bytes | undefined {
  const manifests = sum(images.flatMap(({ size, attestation }) => [size, attestation?.size ?? 0]));
  const sources = manifests + sum(images.map(({ attestation }) => attestation?.indexSize ?? 0));
  const blobs = sum(images.flatMap((image) => image.blobs.map(({ size }) => size)));
  const configs = sum(images.map((image) => image.blobs.at(-1)?.size ?? 0));
  switch (situation) {
    case 'mounts':
    case 'interrupted':
      return { up: manifests + index, down: sources + configs };
    case 'refused':
      return { up: manifests + index + blobs, down: sources + blobs };
    case 'again':
      return { up: 0, down: sources + configs + index };
    case 'attested':
      return { up: manifests + index, down: sources };
    case 'interrupted-refused':
      return undefined;
  }
}

const WIDEST_STEP: Readonly<Record<SituationId, number>> = {
  mounts: 48, // 40 mounts, 8 configs
  refused: 64, // as many as may be in flight
  again: 16, // 8 configs, 8 children
  interrupted: 48,
  'interrupted-refused': 64,
  attested: 64,
};

/**
 * Most connections that may carry a request of `publish`: as many as the widest step has requests. A token is asked for
 * while the 401 that demands it may still hold its connection, and a body that is given up takes its connection along.
 */
export function connectionsAtMost(situation: SituationId, auth: Auth): number {
  const givenUp = situation === 'interrupted-refused' ? 20 : 0;
  return WIDEST_STEP[situation] + (auth === 'none' ? 0 : 17) + givenUp;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
