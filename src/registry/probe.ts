import type { Digest } from '../model/digest.ts';
import type { MountAnswer, VerbOptions } from './client.ts';
import { mountAnyPath } from './protocol.ts';
import { askForMount } from './session.ts';
import type { Wire } from './wire.ts';

/** @see RegistryClient.mountAnyBlob */
export function mountAnyBlob(
  wire: Wire,
  repository: string,
  digest: Digest,
  options: VerbOptions,
): Promise<MountAnswer> {
  return askForMount(wire, repository, digest, { path: mountAnyPath(repository, digest), sources: [] }, options);
}
