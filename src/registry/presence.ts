import { MANIFEST_ACCEPT } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import type { Presence, VerbOptions } from './client.ts';
import { failureFor, readRefusal, violated } from './failure.ts';
import { blobPath, contentLength, isHtml, manifestPath } from './protocol.ts';
import { HEAD, meaningOf } from './statuses.ts';
import { readingStep, scopeOf, sendTo, type Wire } from './wire.ts';

/** @see RegistryClient.hasManifest, RegistryClient.hasBlob */
export async function isPresent(
  wire: Wire,
  what: 'manifest' | 'blob',
  repository: string,
  digest: Digest,
  options: VerbOptions,
): Promise<Presence> {
  const step = readingStep(wire, 'looking for', repository, `@${digest}`, 'target');
  const response = await sendTo(
    wire,
    step,
    {
      method: 'HEAD',
      to: { path: what === 'manifest' ? manifestPath(repository, digest) : blobPath(repository, digest) },
      scopes: [scopeOf(step)],
      ...(what === 'manifest' ? { headers: { accept: MANIFEST_ACCEPT } } : {}),
    },
    options,
  );
  const refusal = await readRefusal(response);
  const meaning = meaningOf(HEAD, refusal.status);
  switch (meaning) {
    case 'present':
      // Digest and length are not compared: of a mounted blob some registries tell the link's (serverless-registry).
      if (isHtml(response.headers)) return { kind: 'unknown', error: violated(step, response, 'with an HTML page') };
      return { kind: 'present', size: contentLength(response.headers) };
    case 'absent':
      return { kind: 'absent' };
    case 'unauthorized':
    case 'limited':
      throw await failureFor(meaning, wire, step, refusal);
    default:
      return { kind: 'unknown', error: await failureFor(meaning, wire, step, refusal) };
  }
}
