import { PublishError } from '../errors.ts';
import { type Digest, isDigest } from './digest.ts';
import { isPrintable, quoted } from './quoted.ts';
import type { Reference } from './reference.ts';
import { badTag, isTag } from './tag.ts';

/**
 * What a reference to an OCI image layout begins with; its host is this and the folder, its repository is empty. An
 * image of Docker Hub that is called `oci` is written `docker.io/library/oci`.
 *
 * @see image-spec v1.1.1 image-layout.md
 */
const LAYOUT = 'oci:';

/** The longest path that Linux takes, in bytes. */
const PATH_MAX = 4096;

/** `C:\…` and `C:/…`: that colon starts no tag. */
const DRIVE = /^[a-z]:[\\/]/i;

const DIGEST_START = /^sha(?:256|512):/i;

/** Whether the host of a reference is the folder of an OCI image layout. */
export function isLayoutHost(host: string): boolean {
  return host.startsWith(LAYOUT);
}

/** The folder of such a host, as it was written. */
export function layoutFolder(host: string): string {
  return host.slice(LAYOUT.length);
}

/** The same for several spellings of one folder, as far as its name tells: links are not followed. */
export function layoutKey(host: string): string {
  const folder = layoutFolder(host);
  const parts = folder.split('/').filter((part) => part !== '' && part !== '.');
  return `${LAYOUT}${folder.startsWith('/') ? '/' : ''}${parts.join('/')}`;
}

/**
 * Reads `oci:FOLDER[:TAG][@DIGEST]`. The last colon behind the last slash starts the tag, as with buildx, oras and
 * regctl (skopeo takes the first colon of all): a folder whose own name has a colon is written with a slash at its end.
 * Neither tag nor digest: the layout's `latest`, or its only manifest.
 *
 * @throws PublishError `REFERENCE_INVALID`
 */
export function parseLayoutReference(text: string): Reference {
  if (text.startsWith('oci://')) {
    throw invalid(
      `${quoted(text)}: a reference has no scheme`,
      'Write oci:FOLDER:TAG for a layout on this machine, or HOST/REPOSITORY:TAG for a registry.',
    );
  }
  if (text.length > PATH_MAX || !isPrintable(text)) {
    throw invalid(`${quoted(text)}: not the path of a folder`, 'Write oci:FOLDER:TAG, on one line.');
  }
  const at = digestStart(text);
  const digest = at < 0 ? undefined : layoutDigest(text, text.slice(at + 1));
  const name = text.slice(LAYOUT.length, at < 0 ? text.length : at);

  const colon = tagStart(name);
  const tag = colon < 0 ? undefined : name.slice(colon + 1);
  const folder = colon < 0 ? name : name.slice(0, colon);
  if (folder === '')
    throw invalid(`${quoted(text)}: no folder is named`, 'Write oci:FOLDER:TAG; oci:.:TAG means here.');
  if (tag !== undefined && !isTag(tag)) {
    const problem = badTag(tag, text);
    throw problem.with({ hint: `${problem.hint} If the colon is part of the folder, end that with a slash.` });
  }
  return {
    host: `${LAYOUT}${folder}`,
    repository: '',
    ...(tag === undefined ? {} : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** Folders may have `@` in their names. */
function digestStart(text: string): number {
  const at = text.lastIndexOf('@');
  return at >= 0 && DIGEST_START.test(text.slice(at + 1)) ? at : -1;
}

function layoutDigest(text: string, digest: string): Digest {
  if (isDigest(digest)) return digest;
  throw invalid(
    `${quoted(text)}: not a sha256 or sha512 digest: ${quoted(digest)}`,
    'Write @sha256: followed by 64 lower-case hex digits.',
  );
}

function tagStart(name: string): number {
  const drive = DRIVE.test(name) ? 'C:'.length : 0;
  const colon = name.lastIndexOf(':');
  const slash = Math.max(name.lastIndexOf('/'), drive > 0 ? name.lastIndexOf('\\') : -1);
  return colon > slash && colon >= drive ? colon : -1;
}

function invalid(message: string, hint: string): PublishError {
  return new PublishError('REFERENCE_INVALID', message, hint);
}
