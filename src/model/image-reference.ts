import { PublishError } from '../errors.ts';
import { readsAsPlatform } from './platform.ts';
import { quoted } from './quoted.ts';
import { parseReference, type Reference } from './reference.ts';

/**
 * A reference to an image that is to be published or listed. What reads as a platform is not taken for one of Docker Hub:
 * mostly it stands behind a blank where a comma or `=` was meant.
 *
 * @throws PublishError `REFERENCE_INVALID`
 */
export function imageReference(text: string): Reference {
  if (!readsAsPlatform(text)) return parseReference(text);
  throw new PublishError(
    'REFERENCE_INVALID',
    `${quoted(text)} is a platform, not an image`,
    `Put a comma between platforms, as in linux/amd64,${text}, or write a source as ${text}=REF; an image of that name is docker.io/${text}.`,
  );
}
