import type { Digest } from '../model/digest.ts';
import { formatPlatform, type PartialPlatform, platformKey } from '../model/platform.ts';
import { changesOf } from './annotate.ts';
import { imagesOf, isAttestation, platformOf } from './children.ts';
import type { DraftChild, DraftEntry, StoredDraft } from './draft.ts';

/**
 * The draft with entries that were read now: those of references that it has take their place, the others come last.
 * What `annotate` said of an image stays. Without a draft, a new one.
 *
 * @param bytes of the manifests that the new entries name
 * @returns warnings where an entry's platform is not what it was
 */
export function amendDraft(
  current: StoredDraft | undefined,
  reference: string,
  read: readonly DraftEntry[],
  bytes: ReadonlyMap<Digest, Uint8Array>,
): { readonly stored: StoredDraft; readonly warnings: readonly string[] } {
  const draft = current?.draft ?? { reference, entries: [] };
  const old = new Map(draft.entries.map((entry) => [entry.reference, entry]));
  // Of a reference that is given twice the last one counts, as docker keeps one file for both.
  const fresh = new Map(read.map((entry) => [entry.reference, withChanges(entry, old.get(entry.reference))]));
  const entries = [...new Map([...old, ...fresh]).values()];
  const warnings = [...fresh.values()].flatMap((entry) => movedPlatform(old.get(entry.reference), entry));
  const manifests = new Map([...(current?.manifests ?? []), ...bytes]);
  return { stored: { draft: { ...draft, entries }, manifests: onlyNamed(entries, manifests) }, warnings };
}

/**
 * The entry as it was read now, with what `annotate` had said: an only image stays that image when its tag has moved;
 * of several, those of the same digest or platform do. New changes win over old ones.
 */
function withChanges(fresh: DraftEntry, old: DraftEntry | undefined): DraftEntry {
  if (old === undefined) return fresh;
  const before = imagesOf(old);
  const only = before.length === 1 && imagesOf(fresh).length === 1 ? before[0] : undefined;
  const children = fresh.children.map((child): DraftChild => {
    const earlier = isAttestation(child) ? undefined : (only ?? sameImage(before, child));
    if (earlier === undefined) return child;
    const platform = { ...unsaidPlatform(earlier, child), ...earlier.changes?.platform, ...child.changes?.platform };
    const annotations = { ...earlier.changes?.annotations, ...child.changes?.annotations };
    return { descriptor: child.descriptor, ...changesOf(platform, annotations) };
  });
  return { ...fresh, children };
}

function sameImage(before: readonly DraftChild[], { descriptor }: DraftChild): DraftChild | undefined {
  const { digest, platform } = descriptor;
  return (
    before.find((one) => one.descriptor.digest === digest) ??
    before.find(({ descriptor: { platform: other } }) => {
      return platform !== undefined && other !== undefined && platformKey(platform) === platformKey(other);
    })
  );
}

/**
 * What docker's annotate had said of the very same image: docker writes it over what the config says, so that only the
 * difference tells. Drafts of our own never differ here.
 */
function unsaidPlatform(earlier: DraftChild, { descriptor }: DraftChild): PartialPlatform {
  if (earlier.descriptor.digest !== descriptor.digest) return {};
  const now: PartialPlatform = descriptor.platform ?? {};
  const said = Object.entries(earlier.descriptor.platform ?? {}).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(now[key as keyof PartialPlatform]),
  );
  return Object.fromEntries(said);
}

function movedPlatform(old: DraftEntry | undefined, fresh: DraftEntry): readonly string[] {
  const [before, now] = [old, fresh].map((entry) => entry && imagesOf(entry).map(shownPlatform).join(', '));
  return before === undefined || before === now ? [] : [`${fresh.reference} was ${before}, it is ${now} now`];
}

function shownPlatform(child: DraftChild): string {
  const platform = platformOf(child);
  return platform === undefined ? 'an image without a platform' : formatPlatform(platform);
}

/** The bytes of what the entries name, and no others. */
function onlyNamed(
  entries: readonly DraftEntry[],
  manifests: ReadonlyMap<Digest, Uint8Array>,
): ReadonlyMap<Digest, Uint8Array> {
  const named = entries.flatMap(({ root, children }) => [root, ...children.map(({ descriptor }) => descriptor)]);
  const kept = new Set(named.map(({ digest }) => digest));
  return new Map([...manifests].filter(([digest]) => kept.has(digest)));
}
