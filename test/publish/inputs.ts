import { expect } from 'vitest';
import type { Descriptor } from '../../src/model/descriptor.ts';
import { formatPlatform } from '../../src/model/platform.ts';
import { parseReference } from '../../src/model/reference.ts';
import { publish } from '../../src/publish/publish.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import { verify } from '../../src/publish/verify.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { type PortOptions, type PublishOptions, requestOf, withPorts } from '../helpers/publishing.ts';

/** What a tag lists now. */
export type ReadBack = {
  readonly mediaType: string;
  readonly entries: readonly Descriptor[];
  readonly annotations: Readonly<Record<string, string>> | undefined;
  readonly bytes: Buffer;
};

/** A request whose references are written without the registry's host; `PLATFORM=` may stand before a source. */
export function requestAt(
  registry: RunningRegistry,
  target: string,
  sources: readonly string[],
  options: PublishOptions = {},
): PublishRequest {
  const full = sources.map((text) => text.replace(/^([^=]*=)?(?!sha256:)/, `$1${registry.host}/`));
  return requestOf(`${registry.host}/${target}`, full, options);
}

/** Publishes a request as it stands; the invariants are asserted at these registries. */
export function publishRequest(
  request: PublishRequest,
  registries: readonly RunningRegistry[],
  options: PortOptions = {},
): Promise<PublishReport> {
  return withPorts(options, (ports, signal) => publish(request, ports, signal), registries);
}

/** Reads a tag over HTTP as `verify` does, everything below it too, and finds no problem. */
export async function readBack(registry: RunningRegistry, name: string): Promise<ReadBack> {
  const reference = parseReference(`${registry.host}/${name}`);
  const found = await withPorts({}, (ports, signal) => verify(reference, { deep: true }, ports, signal));
  expect(found.problems).toEqual([]);
  return listAt(registry, name);
}

/** What a tag lists, from the registry's own store. */
export function listAt(registry: RunningRegistry, name: string): ReadBack {
  const [repository = '', tag = ''] = name.split(':');
  const bytes = registry.manifestOf(repository, tag)?.bytes;
  if (bytes === undefined) throw new Error(`${name} is not there`);
  const { mediaType, manifests, annotations } = JSON.parse(bytes.toString()) as {
    readonly mediaType: string;
    readonly manifests: readonly Descriptor[];
    readonly annotations?: Readonly<Record<string, string>>;
  };
  return { mediaType, entries: manifests, annotations, bytes: Buffer.from(bytes) };
}

/** Platforms of a tag's entries, in order. */
export function platformsAt(registry: RunningRegistry, name: string): readonly string[] {
  return listAt(registry, name).entries.map(({ platform }) =>
    platform === undefined ? 'none' : formatPlatform(platform),
  );
}
