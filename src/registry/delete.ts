import type { Scope } from '../auth/scope.ts';
import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import type { Digest } from '../model/digest.ts';
import type { VerbOptions } from './client.ts';
import { readRefusal } from './failure.ts';
import { blobPath, manifestPath } from './protocol.ts';
import { meaningOf, type StatusTable } from './statuses.ts';
import { type Step, sendTo, type Wire, writingStep } from './wire.ts';

/**
 * DELETE of a manifest or blob. 405 is distribution with deletes off, Quay for blobs; a 404 means `gone` only with the
 * code for it, since registries without the endpoint answer 404 too.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Content Management"
 */
const DELETE: StatusTable<'deleted' | 'unsure' | 'refused'> = {
  statuses: { 200: 'deleted', 202: 'deleted', 204: 'deleted', 404: 'unsure' },
  client: 'refused',
  server: 'refused',
  other: 'refused',
};

/** What a registry says of something that is gone already: some drop a blob with the manifest that named it. */
const GONE: readonly string[] = ['MANIFEST_UNKNOWN', 'BLOB_UNKNOWN'];

/** @see RegistryClient.deleteManifest, RegistryClient.deleteBlob */
export async function deleteContent(
  wire: Wire,
  what: 'manifest' | 'blob',
  repository: string,
  digest: Digest,
  options: VerbOptions,
): Promise<'deleted' | 'refused'> {
  const step = writingStep(wire, 'deleting', repository, `@${digest}`);
  const path = what === 'manifest' ? manifestPath(repository, digest) : blobPath(repository, digest);
  const response = await sendDelete(wire, step, path, options);
  if (response === undefined) return 'refused';
  const refusal = await readRefusal(response);
  const meaning = meaningOf(DELETE, refusal.status);
  if (meaning === 'unsure') return refusal.codes.some((code) => GONE.includes(code)) ? 'deleted' : 'refused';
  return meaning;
}

/**
 * distribution wants the `delete` action in the token (registry/handlers/app.go, appendAccessRecords), and token
 * servers that do not know it give no token at all: then the rights of a push have to do. Undefined: no token.
 */
async function sendDelete(
  wire: Wire,
  step: Step,
  path: string,
  options: VerbOptions,
): Promise<HttpResponse | undefined> {
  for (const actions of ['pull,push,delete', 'pull,push'] as const) {
    const scopes: readonly Scope[] = [{ repository: step.repository, actions }];
    try {
      return await sendTo(wire, step, { method: 'DELETE', to: { path }, scopes }, options);
    } catch (error) {
      const barred = error instanceof PublishError && (error.code === 'UNAUTHORIZED' || error.code === 'DENIED');
      if (!barred || options.signal.aborted) throw error;
    }
  }
  return undefined;
}
