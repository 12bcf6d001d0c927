import { PublishError } from '../errors.ts';
import type { Descriptor } from '../model/descriptor.ts';
import { type ImageManifest, parseManifest } from '../model/manifest.ts';
import { formatReference, type Reference, requestTarget, withDigest } from '../model/reference.ts';
import { isAttestation } from './flatten.ts';
import { type CheckRun, needsPush } from './mount-check-run.ts';

/** Indexes below indexes are followed so far. */
const DEEPEST = 3;

/**
 * The image of SOURCE, or the first one of an index. Read also where a blob of our own is going to be mounted: a
 * mistyped repository would be created by the upload.
 *
 * @throws PublishError `MANIFEST_NOT_FOUND`, with `write` also when the source may not be pushed to
 */
export async function readSourceImage(
  source: Reference,
  options: { readonly write: boolean },
  run: CheckRun,
): Promise<ImageManifest> {
  let wanted = source;
  for (let depth = 0; depth <= DEEPEST; depth += 1) {
    const manifest = await read(wanted, options.write, run);
    if (manifest.kind === 'image') return manifest;
    const first = manifest.manifests.find((entry) => !isAttestation(entry));
    if (first === undefined) throw noImage(source);
    wanted = withDigest(source, first.digest);
  }
  throw noImage(source);
}

async function read(wanted: Reference, write: boolean, run: CheckRun) {
  const { registry, record, signal } = run;
  const name = formatReference(wanted);
  const reading = record.take(
    'GET',
    'manifest',
    `${wanted.repository}${wanted.digest === undefined ? `:${requestTarget(wanted)}` : `@${wanted.digest}`}`,
    async (witness) => {
      const answer = await registry.getManifest(wanted.repository, requestTarget(wanted), { signal, ...witness });
      if (answer.kind !== 'found') throw answer.error.with({ side: 'source' });
      const { bytes, digest, contentType } = answer.manifest;
      return parseManifest(bytes, digest, contentType, name);
    },
    (manifest) => {
      if (manifest.kind === 'index') return 'an index: its first image is taken';
      return write ? 'the source is there' : `an image; its config is ${shown(manifest.config)}`;
    },
  );
  return reading.catch((error: unknown) => {
    throw write ? needsPush(error, run) : error;
  });
}

function shown({ digest, size }: Descriptor): string {
  return `${digest.slice(0, digest.indexOf(':') + 13)}, ${size} bytes`;
}

function noImage(source: Reference): PublishError {
  return new PublishError(
    'MANIFEST_NOT_FOUND',
    `${formatReference(source)} lists no image`,
    'Name an image of the source repository: HOST/REPOSITORY:TAG.',
    { side: 'source', registry: source.host, repository: source.repository },
  );
}
