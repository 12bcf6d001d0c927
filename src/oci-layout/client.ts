import { digestOf, isDigest } from '../model/digest.ts';
import { layoutFolder } from '../model/reference.ts';
import type { Limiter, RegistryClient, UploadSession } from '../registry/client.ts';
import type { LayoutPorts } from './folder.ts';
import { createLayout } from './layout.ts';
import { getManifest, hasBlob, hasManifest, openBlob, readBlob } from './read.ts';
import { listReferrers } from './referrers.ts';
import { putManifest, writeBlob } from './write.ts';

/** A tag that was not written. */
const LATEST = 'latest';

/**
 * The verbs of a registry over the folder of an OCI image layout. It has one repository, whose name is empty. Nothing is
 * written, and no folder is made, before the first blob or manifest is.
 *
 * @param host `oci:FOLDER`
 * @see image-spec v1.1.1 image-layout.md
 */
export function createLayoutClient(host: string, ports: LayoutPorts, limiter: Limiter): RegistryClient {
  const layout = createLayout(host, layoutFolder(host), ports, limiter);
  /** Uploads that are on their way, by the address of their session. */
  const uploads = new Map<string, Promise<unknown>>();
  const noMount = 'a layout mounts nothing';
  return {
    host,
    mounting: 'never',
    announce: () => undefined,
    getManifest: (_repository, reference, options) => getManifest(layout, reference, options),
    listReferrers: (_repository, subject, options) => listReferrers(layout, subject, options),
    hasManifest: (_repository, digest, options) => hasManifest(layout, digest, options),
    hasBlob: (_repository, digest, options) => hasBlob(layout, digest, options),
    readBlob: (_repository, blob, options) => readBlob(layout, blob, options),
    openBlob: (_repository, blob, options) => openBlob(layout, blob, options),
    mountBlob: async () => ({ kind: 'refused', sourceBarred: true, why: noMount }),
    mountAnyBlob: async () => ({ kind: 'refused', sourceBarred: true, why: noMount }),
    openUpload: async (repository) => ({ repository, url: `${host}#${ports.token()}` }),
    uploadTurn: async () => ({ release: () => undefined }),
    upload: async (session, blob, body, options) => {
      const written = writeBlob(layout, blob, body, options);
      uploads.set(session.url, Promise.allSettled([written]));
      return written.finally(() => uploads.delete(session.url));
    },
    resumeUpload: async () => undefined,
    // A file that did not become a blob is removed by whoever was writing it.
    cancelUpload: async ({ url }: UploadSession) => void (await uploads.get(url)),
    putManifest: async (_repository, reference, manifest, options) => {
      if (!isDigest(reference)) return putManifest(layout, reference === '' ? LATEST : reference, manifest, options);
      if (digestOf(manifest.bytes, reference.startsWith('sha512:') ? 'sha512' : 'sha256') !== reference) {
        throw new Error(`a manifest that is not ${reference}`);
      }
      return putManifest(layout, undefined, manifest, options);
    },
    deleteManifest: async () => 'refused',
    deleteBlob: async () => 'refused',
  };
}
