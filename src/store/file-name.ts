import { digestOf } from '../model/digest.ts';

/** Characters of the part that people read; with the hash and what a lock adds, far below the 255 bytes of a name. */
const READABLE_MAX = 100;

/** The end of the names of drafts; everything else in the folder is work under way. */
export const DRAFT_END = '.json';

/**
 * The name of a draft's file without its end. The SHA-256 of the reference makes it injective; percent-encoding would
 * too, but not within 255 bytes, and not where file names have no case, as tags do. The part in front is for people.
 * It has no dot, as Windows reserves names such as `con.` whatever follows.
 */
export function draftFileName(reference: string): string {
  const readable = reference.toLowerCase().replace(/[^a-z0-9]+/g, '_');
  const hash = digestOf(new TextEncoder().encode(reference)).slice('sha256:'.length);
  return `${readable.slice(0, READABLE_MAX)}-${hash}`;
}
