/** The figures on which uploads turn, in bytes but for the last. */
export type UploadSizes = {
  /** First size of a chunk: ECR and serverless-registry take none that is smaller. */
  readonly chunk: number;
  /** Where a 416 to a chunk leads at once: what GHCR takes. */
  readonly tooLarge: number;
  /** No chunk is made smaller than this; proxies that let less through are not seen. */
  readonly least: number;
  /** Blobs up to here are sent without waiting for what others learn: they cost little when they are sent again. */
  readonly scout: number;
  /** What no proxy cuts for its size: nginx's own limit. */
  readonly uncut: number;
  /** How long they wait, in ms: a slow registry must not be sent one blob after the other. */
  readonly patience: number;
};

const KIB = 1024;
const MIB = 1024 * KIB;

/** @see facts of registries: GHCR, ECR, serverless-registry, nginx `client_max_body_size` */
export const UPLOAD_SIZES: UploadSizes = {
  chunk: 5 * MIB,
  tooLarge: 4 * MIB,
  least: 512 * KIB,
  scout: 4 * MIB,
  uncut: MIB,
  patience: 1000,
};
