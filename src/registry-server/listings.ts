import { MEDIA_TYPES } from '../model/descriptor.ts';
import { asDigest, type Call, isTag } from './call.ts';
import { isIndexType } from './document.ts';
import { json, plain, type Reply, refuse } from './reply.ts';
import type { RegistryState } from './state.ts';
import type { StoredManifest } from './store.ts';

/** @see distribution-spec v1.1.1 spec.md, section "Listing Tags" */
export function listTags(call: Call, state: RegistryState): Reply {
  const repository = state.store.repositories.get(call.repository);
  if (repository === undefined && state.profile.repo.tags === '404')
    return refuse(404, 'NAME_UNKNOWN', 'repository name not known to registry', call.repository);
  const asked = call.query.get('n');
  if (asked !== null && !/^\d+$/.test(asked)) {
    return refuse(400, 'PAGINATION_NUMBER_INVALID', 'n is not a number of tags', asked);
  }
  const last = call.query.get('last');
  // Default order of JavaScript strings is the ASCII order of the spec: tags are ASCII.
  const after = [...(repository?.tags.keys() ?? [])]
    .filter(isTag)
    .sort()
    .filter((tag) => last === null || tag > last);
  const tags = asked === null ? after : after.slice(0, Number(asked));
  const end = tags.at(-1);
  const more = end !== undefined && tags.length < after.length;
  const next = `</v2/${call.repository}/tags/list?n=${asked}&last=${encodeURIComponent(end ?? '')}>; rel="next"`;
  return json(200, { name: call.repository, tags }, more ? { Link: next } : {});
}

/** @see distribution-spec v1.1.1 spec.md, section "Listing Referrers" */
export function listReferrers(call: Call, state: RegistryState): Reply {
  if (state.profile.manifest.referrers === '404') return plain(404, '404 page not found\n');
  const subject = asDigest(call.reference);
  if (subject === undefined) return refuse(400, 'DIGEST_INVALID', 'digest is not valid', call.reference);
  const wanted = call.query.get('artifactType');
  const repository = state.store.repositories.get(call.repository);
  const last = call.query.get('last');
  const all = [...(repository?.manifests.values() ?? [])]
    .filter((manifest) => manifest.document?.subject === subject)
    .map(describe)
    .filter((descriptor) => wanted === null || descriptor.artifactType === wanted);
  const after = all.slice(1 + all.findIndex(({ digest }) => digest === last));
  const { referrersPage } = state.profile.manifest;
  const manifests = referrersPage === 0 ? after : after.slice(0, referrersPage);
  const end = manifests.at(-1);
  const filter = wanted === null ? '' : `artifactType=${encodeURIComponent(wanted)}&`;
  const more = end !== undefined && manifests.length < after.length;
  const next = `</v2/${call.repository}/referrers/${subject}?${filter}last=${encodeURIComponent(end?.digest ?? '')}>; rel="next"`;
  return json(
    200,
    { schemaVersion: 2, mediaType: MEDIA_TYPES.ociIndex, manifests },
    {
      'Content-Type': MEDIA_TYPES.ociIndex,
      ...(wanted === null ? {} : { 'OCI-Filters-Applied': 'artifactType' }),
      ...(more ? { Link: next } : {}),
    },
  );
}

function describe(manifest: StoredManifest) {
  const { artifactType, configType, annotations } = manifest.document ?? {};
  const type = artifactType ?? (isIndexType(manifest.mediaType) ? undefined : configType);
  return {
    mediaType: manifest.mediaType,
    size: manifest.bytes.length,
    digest: manifest.digest,
    ...(type === undefined ? {} : { artifactType: type }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}
