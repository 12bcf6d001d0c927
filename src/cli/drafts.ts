import { PublishError } from '../errors.ts';
import { quoted } from '../model/quoted.ts';
import { parseReference, type Reference } from '../model/reference.ts';
import type { SourceRequest } from '../publish/request.ts';
import { parseSource } from '../publish/source.ts';
import type { Draft, DraftStore, StoredDraft } from '../store/draft.ts';
import { tagReference } from './request.ts';
import { SYSTEM_CLOCK, type World } from './runtime.ts';

/** A draft, and in whose store it was. `warnings` are about entries that docker's files do not hold as they should. */
export type FoundDraft = {
  readonly stored: StoredDraft;
  readonly origin: 'own' | 'docker';
  readonly warnings: readonly string[];
};

/** The drafts of this machine's user: ours, and docker's own, which are read and never written. */
export type Drafts = {
  readonly own: DraftStore;
  /** Docker's own draft of that name. */
  docker(reference: string): Promise<FoundDraft | undefined>;
  /** Ours, or else docker's. */
  find(reference: string): Promise<FoundDraft | undefined>;
  /** Whether docker has a draft of that name, and whether it is what was taken over from docker. */
  compare(draft: Draft): Promise<'none' | 'same' | 'changed'>;
};

/** Opens both stores where docker and the variables of the environment say. Nothing is read yet. */
export async function openDrafts({ env, writer, token, ...world }: World, signal?: AbortSignal): Promise<Drafts> {
  const [{ createDraftStore }, { draftFolder, dockerFolder }, { readDockerDraft, dockerFingerprint }] =
    await Promise.all([import('../store/store.ts'), import('../store/folder.ts'), import('../store/docker-store.ts')]);
  const home = world.home();
  const own = createDraftStore({
    folder: draftFolder(env, home),
    clock: SYSTEM_CLOCK,
    writer,
    token,
    ...(signal === undefined ? {} : { signal }),
  });
  const place = dockerFolder(env, home);
  const docker = async (reference: string): Promise<FoundDraft | undefined> => {
    const found = await readDockerDraft(place, reference);
    return found === undefined ? undefined : { ...found, origin: 'docker' };
  };
  return {
    own,
    docker,
    find: async (reference) => {
      const stored = await own.read(reference);
      return stored === undefined ? docker(reference) : { stored, origin: 'own', warnings: [] };
    },
    compare: async (draft) => {
      // What cannot be read is no reason not to push ours.
      const now = await dockerFingerprint(place, draft.reference).catch(unlessUnreadable);
      if (now === undefined) return 'none';
      return draft.docker === undefined || draft.docker === now ? 'same' : 'changed';
    },
  };
}

/**
 * Reads LIST, which a draft is kept and pushed under.
 *
 * @throws PublishError with docker's words, `USAGE_INVALID` for a digest
 */
export function listReference(text: string): Reference {
  return inDockersWords(() => tagReference(text), `error parsing name for manifest list ${quoted(text)}: `);
}

/** Reads any other reference of these commands. @throws PublishError with docker's words */
export function imageReference(text: string): Reference {
  return inDockersWords(() => parseReference(text), '');
}

/**
 * Reads a source of LIST: `[PLATFORM=]REF`, or a digest in the repository of the list.
 *
 * @throws PublishError with docker's words, `PLATFORM_INVALID`
 */
export function sourceRequest(text: string, list: Reference): SourceRequest {
  return inDockersWords(() => parseSource(text, list), '');
}

/** Neither store has it. `reference` is what docker names in this place. */
export function noSuchManifest(reference: string, hint: string): PublishError {
  return new PublishError('DRAFT_NOT_FOUND', `No such manifest: ${reference}`, hint);
}

/** What is told of a draft that was found in docker's store. */
export function dockerNotes(reference: string, { origin, warnings }: FoundDraft, what: string): readonly string[] {
  return origin === 'docker' ? [`${what} docker's own draft of ${reference}`, ...warnings] : [];
}

function unlessUnreadable(error: unknown): undefined {
  if (error instanceof PublishError) return undefined;
  throw error;
}

function inDockersWords<T>(read: () => T, prefix: string): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof PublishError) || error.code !== 'REFERENCE_INVALID') throw error;
    throw error.with({ message: `${prefix}invalid reference format: ${error.message}` });
  }
}
