import type { PublishError } from '../errors.ts';

/** The failure of something that was named in a file, with the place in front: `digests/3f1c…: … is not there`. */
export function atOrigin(error: PublishError, origin: string | undefined): PublishError {
  return origin === undefined ? error : error.with({ message: `${origin}: ${error.message}` });
}

/** A source and where it was named, inside a sentence. */
export function namedAt({ name, origin }: { readonly name: string; readonly origin?: string }): string {
  return origin === undefined ? name : `${name} (${origin})`;
}
