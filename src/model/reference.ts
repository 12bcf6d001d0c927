import { PublishError } from '../errors.ts';
import { type Digest, isDigest } from './digest.ts';
import { isLayoutHost, parseLayoutReference } from './layout-reference.ts';
import { quoted } from './quoted.ts';
import { badTag, isTag } from './tag.ts';
import { parseUrl } from './url.ts';

export { isLayoutHost, layoutFolder } from './layout-reference.ts';
export { isTag } from './tag.ts';

/**
 * An image reference after Docker's normalisation: `debian` is host `docker.io`, repository `library/debian`, tag
 * `latest`. At least one of tag and digest is set; the tag is `latest` only when neither was written. An OCI image
 * layout, `oci:FOLDER:TAG`, is a host with one repository, whose name is empty; it alone may have neither.
 *
 * @see https://github.com/distribution/reference, regexp.go and normalize.go
 */
export type Reference = {
  /** As users know it: `docker.io`, `localhost:5000`, `[::1]:5000`, `oci:FOLDER`. */
  readonly host: string;
  /** Empty in an OCI image layout; {@link repositoryName} puts both together. */
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: Digest;
};

const DOCKER_HUB = 'docker.io';

/** Names of Docker Hub: of its index in credential files, and of the host that serves its API. */
const DOCKER_HUB_ALIASES: ReadonlySet<string> = new Set(['index.docker.io', 'registry-1.docker.io']);

/** Docker Hub keeps its official images here; Docker adds it to one-word names. */
const OFFICIAL = 'library/';

const DEFAULT_TAG = 'latest';

/** Longest repository name Docker takes, in characters, without the host. */
const REPOSITORY_MAX = 255;

/** Longer than any reference that could be good: keeps the patterns below from long work on hostile text. */
const TEXT_MAX = 1024;

const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
const HOST = new RegExp(`^(?:${LABEL}(?:\\.${LABEL})*|\\[[a-f0-9:]+\\])(?::[0-9]+)?$`, 'i');
const COMPONENT = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const REPOSITORY = new RegExp(`^${COMPONENT}(?:/${COMPONENT})*$`);

/** How buildx, regctl and others write what is `oci:` here. */
const LAYOUT_SCHEME = /^(?:oci-layout|ocidir):\/\//;

/** Docker refuses it as a name, since it is how image ids look. */
const IMAGE_ID = /^[a-f0-9]{64}$/;

/** An IPv6 address, perhaps with a zone or a port behind it, that lacks its brackets. */
const BARE_IPV6 = /^[a-f0-9.]*:[a-f0-9.]*:[a-f0-9.:]*(?:%.*)?$/i;

/**
 * Reads a reference as Docker does. The part before the first `/` is a host when it is `localhost` or has a dot, a
 * colon or a capital; hosts are lower-cased. Stricter than Docker where the reference could never be used: hosts must
 * be ones that a URL can hold unchanged, and digests must be whole ones.
 *
 * @throws PublishError `REFERENCE_INVALID`
 */
export function parseReference(text: string): Reference {
  if (isLayoutHost(text)) return parseLayoutReference(text);
  refuseOtherThings(text);
  const at = text.indexOf('@');
  const name = at < 0 ? text : text.slice(0, at);
  const digest = at < 0 ? undefined : readDigest(text, text.slice(at + 1));

  const { host, rest } = splitHost(text, name);
  const colon = rest.indexOf(':');
  const path = colon < 0 ? rest : rest.slice(0, colon);
  const tag = colon < 0 ? undefined : rest.slice(colon + 1);
  if (path !== path.toLowerCase()) throw withCapitals(text, text.slice(0, name.length - rest.length + path.length));
  if (!REPOSITORY.test(path)) {
    throw invalid(
      `${quoted(text)}: not a repository name: ${quoted(path)}`,
      'Write HOST/REPOSITORY:TAG, the repository in lower-case letters, digits and single . _ - or / between them.',
    );
  }
  if (tag !== undefined && !isTag(tag)) throw badTag(tag, text);

  const repository = host === DOCKER_HUB && !path.includes('/') ? OFFICIAL + path : path;
  if (repository.length > REPOSITORY_MAX) {
    throw invalid(
      `${quoted(text)}: a repository name of ${repository.length} characters`,
      `Use a name of at most ${REPOSITORY_MAX} characters.`,
    );
  }
  if (digest === undefined) return { host, repository, tag: tag ?? DEFAULT_TAG };
  return { host, repository, ...(tag === undefined ? {} : { tag }), digest };
}

/** The reference in full, `docker.io/library/debian:bullseye@sha256:…`; {@link parseReference} reads it back. */
export function formatReference(reference: Reference): string {
  const tag = reference.tag === undefined ? '' : `:${reference.tag}`;
  const digest = reference.digest === undefined ? '' : `@${reference.digest}`;
  return `${repositoryName(reference)}${tag}${digest}`;
}

/** `HOST/REPOSITORY`; of an OCI image layout `oci:FOLDER`. */
export function repositoryName({ host, repository }: Pick<Reference, 'host' | 'repository'>): string {
  return repository === '' ? host : `${host}/${repository}`;
}

/**
 * What a manifest request asks for: beside a digest, a tag decides nothing. Empty for a layout of which neither was
 * named: whatever it holds, if that is one thing.
 */
export function requestTarget(reference: Reference): string {
  return reference.digest ?? reference.tag ?? (isLayoutHost(reference.host) ? '' : DEFAULT_TAG);
}

/** As something to write to: what has neither tag nor digest, as a layout may be read, is written as `latest`. */
export function writtenReference(reference: Reference): Reference {
  return reference.tag === undefined && reference.digest === undefined ? withTag(reference, DEFAULT_TAG) : reference;
}

/**
 * That tag of the same repository, without a digest.
 *
 * @throws PublishError `REFERENCE_INVALID`
 */
export function withTag(reference: Reference, tag: string): Reference {
  if (!isTag(tag)) throw badTag(tag, repositoryName(reference));
  return { host: reference.host, repository: reference.repository, tag };
}

/** That content of the same repository, without a tag. */
export function withDigest(reference: Reference, digest: Digest): Reference {
  return { host: reference.host, repository: reference.repository, digest };
}

function refuseOtherThings(text: string): void {
  if (text === '')
    throw invalid('the reference is empty', 'Write HOST/REPOSITORY:TAG, or REPOSITORY:TAG on Docker Hub.');
  if (text.length > TEXT_MAX) {
    throw invalid(`${quoted(text)}: a reference of ${text.length} characters`, 'Pass one reference per argument.');
  }
  if (text.includes('://')) {
    throw invalid(
      `${quoted(text)}: a reference has no scheme`,
      LAYOUT_SCHEME.test(text)
        ? `Write ${text.replace(LAYOUT_SCHEME, 'oci:')}`
        : `Leave out ${quoted(text.slice(0, text.indexOf('://') + 3))}; for plain HTTP use --plain-http.`,
    );
  }
  if (IMAGE_ID.test(text) || isDigest(text)) {
    throw invalid(
      `${quoted(text)}: a digest without a repository`,
      'Write REPOSITORY@sha256:… to name the repository.',
    );
  }
}

function readDigest(text: string, digest: string): Digest {
  if (isDigest(digest)) return digest;
  const lower = digest.toLowerCase();
  throw invalid(
    `${quoted(text)}: not a sha256 or sha512 digest: ${quoted(digest)}`,
    isDigest(lower) ? `Write it in lower case: ${lower}` : 'Write @sha256: followed by 64 lower-case hex digits.',
  );
}

/** `rest` is what follows the host, a tag included; the whole name when no host was written. */
function splitHost(text: string, name: string): { readonly host: string; readonly rest: string } {
  const slash = name.indexOf('/');
  if (slash < 0) return { host: DOCKER_HUB, rest: name };
  const first = name.slice(0, slash);
  const hasCapital = first !== first.toLowerCase();
  if (first !== 'localhost' && !/[.:]/.test(first) && !hasCapital) return { host: DOCKER_HUB, rest: name };

  if (BARE_IPV6.test(first)) {
    throw invalid(
      `${quoted(text)}: IPv6 hosts need square brackets`,
      'Put the address in brackets, without the port: [2001:db8::1]/app, [2001:db8::1]:5000/app.',
    );
  }
  if (!HOST.test(first) || !survivesUrl(first)) {
    throw invalid(
      `${quoted(text)}: not a host name: ${quoted(first)}`,
      'Write HOST/REPOSITORY or HOST:PORT/REPOSITORY.',
    );
  }
  const lower = first.toLowerCase();
  const host = DOCKER_HUB_ALIASES.has(lower) ? DOCKER_HUB : lower;
  // Docker takes `Registry/app` for a host by its capital alone; in lower case it would be a repository of Docker Hub.
  return {
    host: hasCapital && !/[.:]/.test(first) && lower !== 'localhost' ? first : host,
    rest: name.slice(slash + 1),
  };
}

/**
 * Whether the address that a URL makes of the host is the one that was written. `192.168.1` becomes 192.168.0.1 there,
 * so a credential would be looked up for another name than the one that is connected to.
 */
function survivesUrl(host: string): boolean {
  const url = parseUrl(`https://${host}/`);
  if (url === undefined) return false;
  return host.startsWith('[') || url.hostname === host.replace(/:[0-9]+$/, '').toLowerCase();
}

/** `name` is the beginning of the text up to the end of the repository: what follows may have capitals. */
function withCapitals(text: string, name: string): PublishError {
  const rule = `${quoted(text)}: repository name must be lowercase`;
  const lower = name.toLowerCase();
  const proposal = lower + text.slice(name.length);
  const good = REPOSITORY.test(lower.slice(lower.indexOf('/') + 1)) && /^[\x21-\x7e]+$/.test(proposal);
  return good
    ? invalid(`${rule}; did you mean ${proposal}`, `Write ${proposal}`)
    : invalid(rule, 'Write the repository in lower case.');
}

function invalid(message: string, hint: string): PublishError {
  return new PublishError('REFERENCE_INVALID', message, hint);
}
