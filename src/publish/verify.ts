import { PublishError } from '../errors.ts';
import type { Descriptor } from '../model/descriptor.ts';
import { type Digest, hashFor, hashMatches } from '../model/digest.ts';
import { isForeignLayer, type Manifest, parseManifest } from '../model/manifest.ts';
import { formatReference, type Reference, requestTarget, withDigest } from '../model/reference.ts';
import type { BlobIdentity } from '../registry/client.ts';
import type { Verification } from './findings.ts';
import { allOrNone, oncePerKey } from './once.ts';
import type { PublishPorts } from './ports.ts';
import { stoppable } from './stop.ts';

type Problem = Verification['problems'][number];
type Finding = Omit<Problem, 'digest'>;

/**
 * Reads and hashes every manifest a reference reaches and asks for every blob; `deep` downloads and hashes the blobs
 * too. A size that a HEAD claims wrongly is only a warning: serverless-registry answers for a link, not for the blob.
 * What could not be checked is never a pass: alone it is thrown, beside problems it is listed with them.
 *
 * @throws PublishError `MANIFEST_NOT_FOUND` when the reference itself is not there, and what stops every look
 */
export async function verify(
  reference: Reference,
  options: { readonly deep: boolean },
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Verification> {
  const problems: Problem[] = [];
  const warnings: string[] = [];
  const unchecked: PublishError[] = [];
  const counts = { manifests: 0, blobs: 0, bytesRead: 0 };
  const skipped = new Set<Digest>();
  const { signal: both, stop } = stoppable(signal);
  const registry = ports.registry(reference.host);
  const { repository } = reference;

  const blobs = new Map<Digest, BlobIdentity>();
  const blob = oncePerKey(async (digest: Digest): Promise<void> => {
    const identity = blobs.get(digest);
    if (identity === undefined) throw new Error(`${digest} was not announced`);
    counts.blobs += 1;
    const look = options.deep ? download(identity) : ask(identity);
    const finding = await look.catch((error: unknown) => notChecked(error));
    if (finding !== undefined) problems.push({ digest, ...finding });
  });

  async function ask({ digest, size }: BlobIdentity): Promise<Finding | undefined> {
    const presence = await registry.hasBlob(repository, digest, { signal: both });
    if (presence.kind === 'absent') return { what: 'blob is not there' };
    if (presence.kind === 'unknown') throw presence.error;
    if (presence.size !== undefined && presence.size !== size) {
      warnings.push(`${digest}: HEAD claims ${presence.size} bytes, its manifest says ${size}`);
    }
    return undefined;
  }

  async function download(identity: BlobIdentity): Promise<Finding | undefined> {
    const places = await ports.limiter.takeCopy({ target: registry.host, size: identity.size, signal: both });
    try {
      const stream = await registry.openBlob(repository, identity, { signal: both, place: places.target });
      const hash = hashFor(identity.digest);
      let size = 0;
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        hash.update(chunk);
        size += chunk.byteLength;
      }
      counts.bytesRead += size;
      if (size !== identity.size) {
        return { what: `blob has ${size} bytes, its manifest says ${identity.size}`, damaged: true };
      }
      return hashMatches(hash, identity.digest)
        ? undefined
        : { what: 'blob does not hash to its digest', damaged: true };
    } finally {
      places.release();
    }
  }

  async function below(manifest: Manifest): Promise<void> {
    counts.manifests += 1;
    if (manifest.kind === 'index') {
      await allOrNone(manifest.manifests.map(entryBelow), stop);
      return;
    }
    const wanted = [manifest.config, ...manifest.layers.filter((layer) => !isForeignLayer(layer))];
    for (const layer of manifest.layers) if (isForeignLayer(layer)) skipped.add(layer.digest);
    for (const one of wanted) blobs.set(one.digest, one);
    await allOrNone(
      wanted.map((one) => blob(one.digest)),
      stop,
    );
  }

  async function entryBelow({ digest, size }: Descriptor): Promise<void> {
    const manifest = await child(digest);
    if (manifest !== undefined && manifest.size !== size) {
      problems.push({ digest, what: `manifest has ${manifest.size} bytes, its index says ${size}` });
    }
  }

  /** What is missing or wrong is a problem; what could not be looked at is neither, and ends in its own exit code. */
  function notChecked(error: unknown): Finding | undefined {
    if (!(error instanceof PublishError) || both.aborted) throw error;
    if (error.exitCode === 4) return { what: error.message };
    if (error.exitCode === 6) return { what: error.message, damaged: true };
    unchecked.push(error);
    return undefined;
  }

  const child = oncePerKey(async (digest: Digest): Promise<Manifest | undefined> => {
    const manifest = await readManifest(withDigest(reference, digest)).catch((error: unknown) => {
      const finding = notChecked(error);
      if (finding !== undefined) problems.push({ digest, ...finding });
      return undefined;
    });
    if (manifest !== undefined) await below(manifest);
    return manifest;
  });

  async function readManifest(wanted: Reference): Promise<Manifest> {
    const answer = await registry.getManifest(repository, requestTarget(wanted), { signal: both });
    if (answer.kind !== 'found') throw answer.error;
    const { bytes, digest, contentType } = answer.manifest;
    return parseManifest(bytes, digest, contentType, formatReference(wanted));
  }

  const root = await readManifest(reference);
  await below(root);
  const name = formatReference(reference);
  const [first] = unchecked;
  if (first !== undefined && problems.length === 0) {
    throw first.with({ message: `${name} could not be checked whole (${unchecked.length} parts): ${first.message}` });
  }
  for (const error of unchecked) problems.push({ digest: root.digest, what: `not checked: ${error.message}` });
  return {
    reference: name,
    digest: root.digest,
    deep: options.deep,
    ...counts,
    skipped: skipped.size,
    problems,
    warnings,
  };
}
