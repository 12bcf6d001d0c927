import { FRONTS } from './profiles-fronts.ts';
import { HOSTED } from './profiles-hosted.ts';
import { SELF_HOSTED } from './profiles-self-hosted.ts';
import { applyChanges, type Profile, type ProfileChanges } from './switches.ts';

/**
 * How well an imitation is founded. `run`: the registry was asked by hand; `source`: its code was read; `document`:
 * the vendor says so; `report`: users' reports with captured requests; `guess`: nobody has told how it is.
 */
export type ProfileMark = 'run' | 'source' | 'document' | 'report' | 'guess';

/** One registry's habits, as far as they differ from the spec's; `over` names the profile that it starts from. */
export type NamedProfile = {
  readonly name: string;
  readonly title: string;
  /** When it was seen to behave so; registries change without notice. */
  readonly date: string;
  readonly sources: readonly string[];
  readonly mark: ProfileMark;
  readonly over?: string;
  readonly changes: ProfileChanges;
};

/** All profiles; a switch or value that does not exist is refused by name when the profile is used. */
export const PROFILES: readonly NamedProfile[] = [
  {
    name: 'spec',
    title: 'strict OCI distribution-spec; mounts whatever exists in the source',
    date: '2026-11-30',
    sources: ['opencontainers/distribution-spec v1.1.1 and main of 2026-07-16, spec.md'],
    mark: 'source',
    changes: {},
  },
  {
    name: 'spec-strict',
    title: 'the spec with every choice made against the client: chunks from 5 MiB, one type, warnings',
    date: '2026-07-16',
    sources: ['opencontainers/distribution-spec main of 2026-07-16, spec.md'],
    mark: 'source',
    changes: {
      upload: {
        chunk: { min: 5 * 1024 * 1024 },
        chunkHeaders: 'min',
        contentType: 'octetOnly415',
        sameSessionRestart: '416',
      },
      warning: 'this registry is strict',
    },
  },
  ...HOSTED,
  ...SELF_HOSTED,
  ...FRONTS,
];

/** The switches of a named profile. @throws RangeError when there is none of that name */
export function findProfile(name: string): Profile {
  const found = PROFILES.find((profile) => profile.name === name);
  if (found === undefined) {
    throw new RangeError(`no profile "${name}"; there are: ${PROFILES.map((profile) => profile.name).join(', ')}`);
  }
  const base = found.over === undefined ? undefined : findProfile(found.over);
  return applyChanges(base, found.changes);
}
