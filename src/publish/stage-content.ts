import { MEDIA_TYPES } from '../model/descriptor.ts';
import { buildIndex } from '../model/image-index.ts';
import type { Composition } from './compose.ts';
import { type ConfigPlatforms, listChildren } from './entries.ts';
import type { PublishRequest, SourceRequest } from './request.ts';
import type { ResolvedSource } from './resolved.ts';

/**
 * A list with some of its sources, for a worker that places content alone. What only the whole list can be asked is
 * left to the stage that makes the index: which platforms it must have, what else stands in it, what its tags hold.
 */
export function partOf(request: PublishRequest, sources: readonly SourceRequest[]): PublishRequest {
  const {
    expectPlatforms: _platforms,
    expectDigest: _digest,
    noClobber: _clobber,
    amend: _amend,
    entryAnnotations: _entries,
    guardsImage: _guard,
    ...rest
  } = request;
  return {
    ...rest,
    type: 'auto',
    annotations: {},
    sources: sources.map(({ annotations: _, ...source }) => source),
    part: true,
  };
}

/**
 * What a part of a list brings, chosen and labelled as in the whole; perhaps nothing. Two images that an annotation
 * tells apart are duplicates here, so nothing of that kind is refused. Its index is never put anywhere.
 *
 * @throws PublishError `PLATFORM_CONFLICT`, `PLATFORM_INVALID`, `PLATFORM_NOT_FOUND`
 */
export function composePart(
  request: PublishRequest,
  sources: readonly ResolvedSource[],
  configs: ConfigPlatforms,
): Composition {
  const warnings: string[] = [];
  const listed = sources.flatMap((source) => listChildren(source, request, configs, warnings));
  const manifests = listed.map(({ entry }) => entry);
  const index = buildIndex({ mediaType: MEDIA_TYPES.ociIndex, manifests, annotations: {}, layout: 'plain' });
  return { index, listed, warnings };
}
