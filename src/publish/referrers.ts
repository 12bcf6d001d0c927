import { PublishError } from '../errors.ts';
import { type Descriptor, ENTRIES_MAX, isManifestType } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { type Manifest, parseManifest } from '../model/manifest.ts';
import { quoted } from '../model/quoted.ts';
import { formatReference, repositoryName } from '../model/reference.ts';
import { cosignTags } from '../model/referrers.ts';
import type { RawManifest } from '../registry/client.ts';
import { allOrNone, oncePerKey } from './once.ts';
import type { PublishPorts } from './ports.ts';
import type { Location } from './resolved.ts';
import { stoppable } from './stop.ts';

/** A signature of an SBOM of an image is two deep; deeper ones than three are told and left out. */
const DEEPEST = 3;

/** Something that is published, and where its referrers are. */
export type Subject = { readonly digest: Digest; readonly from: Location };

/**
 * A manifest that speaks of something that is published: an image manifest or an index, found as a referrer, by a tag of
 * cosign's, or in an index that was found so.
 */
export type FoundReferrer = {
  readonly from: Location;
  /** In full, with the tag where it was found by one, and pinned to its digest. */
  readonly name: string;
  readonly manifest: Manifest;
  /** Absent when it was found otherwise: its `subject`, for which it has to be listed wherever it is put. */
  readonly refersTo?: Digest;
};

/** A tag of cosign's, and what it holds at the source. */
export type FoundTag = { readonly tag: string; readonly digest: Digest };

/** What was found, each manifest once, subjects before what speaks of them; and what was left out, in words. */
export type FoundReferrers = {
  readonly manifests: readonly FoundReferrer[];
  readonly tags: readonly FoundTag[];
  readonly warnings: readonly string[];
};

/** How one manifest leads to another. `listed` by the API, `noted` in the fallback tag, `tagged` by cosign, `held` by an index. */
type Edge = {
  readonly from: Digest;
  readonly to: Digest;
  readonly how: 'listed' | 'noted' | 'tagged' | 'held';
  readonly tag?: string;
};

/** A manifest that was led to; a text says why it cannot be taken along. */
type Met = Manifest | { readonly kind: 'left out'; readonly why: string; readonly gone?: PublishError };

/** What a walk through one repository has met. Filled in any order; {@link reached} brings order into it. */
type Walk = {
  readonly from: Location;
  readonly edges: Edge[];
  readonly met: Map<Digest, Met>;
  /** Manifests with referrers too deep to be followed. */
  readonly deep: Digest[];
  readonly odd: string[];
};

/**
 * Reads everything that speaks of the subject, and what speaks of that, down to three levels and 1,000 manifests.
 *
 * Requests: for the subject one list (two where the registry has no API for it) and three tags of cosign's, all side by
 * side, and the same for every referrer found, beside the GET of its manifest; nothing more for what has no referrers. So a
 * level costs one round trip (two without the API), and all of it runs beside configs and mounts.
 *
 * A referrer is what says so itself: one whose `subject` is another is left out, with a warning, and so is a type that we
 * cannot read. One that the API lists but that is not there ends the run, since the registry contradicts itself or is
 * being changed right now; one that only the fallback tag notes is left out with a warning: no registry keeps that list,
 * and clients that delete a referrer often leave it there.
 *
 * @param bytes exact bytes of all manifests read are put here
 * @throws PublishError `MANIFEST_NOT_FOUND`, `MANIFEST_INVALID` for too many, and what the registry throws or could not tell
 */
export async function readReferrers(
  { digest: root, from }: Subject,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  outer: AbortSignal,
): Promise<FoundReferrers> {
  const { repository } = from;
  const registry = ports.registry(from.host);
  const { signal, stop } = stoppable(outer);
  const all = (parts: readonly Promise<void>[]): Promise<unknown> => allOrNone(parts, stop);
  const walk: Walk = { from, edges: [], met: new Map(), deep: [], odd: [] };

  const follow = (edge: Edge): void => {
    walk.edges.push(edge);
    if (walk.edges.length > ENTRIES_MAX) throw tooMany(from);
  };

  const keep = (raw: RawManifest): Met => {
    const met = parsed(raw, nameOf(from, raw.digest));
    walk.met.set(raw.digest, met);
    if (met.kind !== 'left out') bytes.set(raw.digest, raw.bytes);
    return met;
  };

  const readManifest = oncePerKey(async (digest: Digest): Promise<void> => {
    const answer = await registry.getManifest(repository, digest, { signal });
    if (answer.kind === 'unknown') throw answer.error.with({ side: 'source' });
    if (answer.kind === 'absent') {
      const gone = answer.error.with({ side: 'source' });
      walk.met.set(digest, { kind: 'left out', why: 'it is not there', gone });
      return;
    }
    await takeIn(keep(answer.manifest), digest);
  });

  /** What an index holds belongs to it; nobody is asked who refers to that. */
  const takeIn = async (met: Met, digest: Digest): Promise<void> => {
    if (met.kind !== 'index') return;
    for (const entry of met.manifests) follow({ from: digest, to: entry.digest, how: 'held' });
    await all(met.manifests.map(readEntry));
  };

  const readEntry = async ({ digest, mediaType }: Descriptor): Promise<void> => {
    if (isManifestType(mediaType)) return readManifest(digest);
    walk.met.set(digest, { kind: 'left out', why: `a manifest of type ${quoted(mediaType)} cannot be read` });
  };

  /** Its own referrers are asked for before it is known to be one: what it leads to counts only if it is. */
  const readListed = async (entry: Descriptor, level: number): Promise<void> => {
    const isReadable = isManifestType(entry.mediaType);
    await all([readEntry(entry), ...(isReadable ? [ask(entry.digest, level + 1)] : [])]);
  };

  const readLists = async (digest: Digest, level: number): Promise<void> => {
    const answer = await registry.listReferrers(repository, digest, { signal });
    if (answer.kind === 'unknown') throw answer.error.with({ side: 'source' });
    if (answer.via === 'tag' && answer.odd !== undefined) walk.odd.push(answer.odd.message);
    if (level > DEEPEST) {
      if (answer.referrers.length > 0) walk.deep.push(digest);
      return;
    }
    const how = answer.via === 'api' ? 'listed' : 'noted';
    for (const entry of answer.referrers) follow({ from: digest, to: entry.digest, how });
    await all(answer.referrers.map((entry) => readListed(entry, level)));
  };

  const readTag = async (digest: Digest, tag: string, level: number): Promise<void> => {
    const answer = await registry.getManifest(repository, tag, { signal });
    if (answer.kind === 'unknown') throw answer.error.with({ side: 'source' });
    if (answer.kind === 'absent') return;
    if (level > DEEPEST) {
      walk.deep.push(digest);
      return;
    }
    const { manifest } = answer;
    follow({ from: digest, to: manifest.digest, how: 'tagged', tag });
    await all([takeIn(keep(manifest), manifest.digest), ask(manifest.digest, level + 1)]);
  };

  const asked = new Set<Digest>();
  const ask = async (digest: Digest, level: number): Promise<void> => {
    // Lists and tags may lead in circles, hashes cannot.
    if (asked.has(digest)) return;
    asked.add(digest);
    await all([readLists(digest, level), ...cosignTags(digest).map((tag) => readTag(digest, tag, level))]);
  };

  await ask(root, 1);
  return reached(walk, root);
}

/** What can be reached from the subject by steps that are what they say they are, in the order of the steps. Pure. */
function reached({ from, edges, met, deep, odd }: Walk, root: Digest): FoundReferrers {
  const found = new Map<Digest, FoundReferrer>();
  const tags: FoundTag[] = [];
  const warnings = new Set<string>();
  const leave = (digest: Digest, why: string): void => {
    warnings.add(`${nameOf(from, digest)} is left out, although it is listed as a referrer: ${why}`);
  };
  const seen = new Set([root]);
  const queue = [root];
  const byStart = new Map<Digest, Edge[]>();
  // Answers come in any order; what is told of them does not.
  for (const edge of [...edges].sort((one, other) => rank(one) - rank(other))) {
    byStart.set(edge.from, [...(byStart.get(edge.from) ?? []), edge]);
  }
  for (let digest = queue.shift(); digest !== undefined; digest = queue.shift()) {
    for (const edge of byStart.get(digest) ?? []) {
      const manifest = whole(edge.to, met);
      if (manifest.kind === 'left out') {
        if (manifest.gone !== undefined && edge.how !== 'noted') throw lacking(from, edge, manifest.gone);
        leave(edge.to, manifest.why);
        continue;
      }
      if (edge.to === root) {
        leave(root, `${edge.tag ?? 'a list'} leads back to what is published itself`);
        continue;
      }
      const { subject } = manifest;
      if ((edge.how === 'listed' || edge.how === 'noted') && subject?.digest !== digest) {
        leave(edge.to, `its subject is ${subject?.digest ?? 'nothing'}, not ${digest}`);
        continue;
      }
      if (edge.tag !== undefined) tags.push({ tag: edge.tag, digest: edge.to });
      const before = found.get(edge.to);
      const name = before?.name ?? nameOf(from, edge.to, edge.tag);
      const refersTo = before?.refersTo ?? (edge.how === 'listed' || edge.how === 'noted' ? digest : undefined);
      found.set(edge.to, { from, name, manifest, ...(refersTo === undefined ? {} : { refersTo }) });
      if (seen.has(edge.to)) continue;
      seen.add(edge.to);
      queue.push(edge.to);
    }
  }
  for (const digest of new Set(deep)) {
    if (seen.has(digest)) warnings.add(`referrers of ${nameOf(from, digest)} are left out: more than ${DEEPEST} deep`);
  }
  return { manifests: [...found.values()], tags, warnings: [...odd, ...warnings] };
}

/** Of a manifest's own list, then cosign's tags in their order. */
function rank({ from, tag }: Edge): number {
  return tag === undefined ? -1 : cosignTags(from).indexOf(tag);
}

/** A manifest that was led to; an index is left out when something that it holds has to be. */
function whole(digest: Digest, met: Walk['met']): Met {
  const manifest = met.get(digest);
  if (manifest === undefined) throw new Error(`${digest} was followed, but not read`);
  if (manifest.kind !== 'index') return manifest;
  for (const entry of manifest.manifests) {
    const held = whole(entry.digest, met);
    if (held.kind === 'left out') return { ...held, why: `it holds ${entry.digest}, and ${held.why}` };
  }
  return manifest;
}

function parsed({ bytes, digest, contentType }: RawManifest, name: string): Met {
  try {
    return parseManifest(bytes, digest, contentType, name);
  } catch (error) {
    if (error instanceof PublishError) return { kind: 'left out', why: error.message };
    throw error;
  }
}

function nameOf({ host, repository }: Location, digest: Digest, tag?: string): string {
  return formatReference({ host, repository, ...(tag === undefined ? {} : { tag }), digest });
}

function lacking(from: Location, { from: subject, to, how, tag }: Edge, error: PublishError): PublishError {
  const by = how === 'held' ? `${nameOf(from, subject)} lists it` : `${repositoryName(from)} lists it as a referrer`;
  const where = tag === undefined ? by : `${by} under ${tag}`;
  return error.with({
    message: `${nameOf(from, to)} is not there, although ${where}: ${error.message}`,
    hint: 'Run the same command again: it may just have been deleted; or publish without --referrers all.',
  });
}

function tooMany(from: Location): PublishError {
  return new PublishError(
    'MANIFEST_INVALID',
    `${repositoryName(from)} has more than ${ENTRIES_MAX} referrers of what is published`,
    'Publish without --referrers all, or clean up what refers to these images.',
    { side: 'source', registry: from.host, repository: from.repository },
  );
}
