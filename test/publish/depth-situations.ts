import {
  type JournalEntry,
  type ProfileChanges,
  type RunningRegistry,
  type SeededImage,
  type SeedOptions,
  seedDebian,
} from '../../src/registry-server/index.ts';
import { type PublishOptions, publishTo } from '../helpers/publishing.ts';
import { startRegistry } from '../helpers/registry.ts';
import { createRounds, frozenClock } from '../helpers/rounds.ts';

/** How the registries want to be shown who asks; the columns of the table in docs/performance.md. */
export const ACCESS = ['open', 'Basic', 'Bearer'] as const;

export type Access = (typeof ACCESS)[number];

const AUTH: Readonly<Record<Access, ProfileChanges>> = {
  open: {},
  Basic: { auth: { scheme: 'basic', anonymousPull: false } },
  Bearer: { auth: { scheme: 'bearer', anonymousPull: false } },
};

/** What a situation is made of: the target is at home. */
type World = Readonly<Record<Place, RunningRegistry>> & {
  readonly images: readonly SeededImage[];
  readonly sources: readonly string[];
  readonly publish: (options?: RunOptions) => Promise<unknown>;
};

type Place = 'home' | 'away' | 'third';
type RunOptions = PublishOptions & { readonly sources?: readonly string[] };

/** One row of the table. */
export type Situation = {
  readonly name: string;
  readonly home?: ProfileChanges;
  readonly away?: ProfileChanges;
  readonly seed?: SeedOptions;
  /** Where the sources are; default all at home. */
  readonly sources?: 'away' | 'both';
  /** Default: all. */
  readonly only?: Access;
  readonly loggedIn?: false;
  readonly before?: (world: World) => Promise<unknown>;
  readonly run?: (world: World) => RunOptions;
};

const REFUSED: ProfileChanges = { mount: { mode: 'ignore' } };
const STORAGE: ProfileChanges = { blob: { redirect: '307otherHost' } };

const again = ({ publish }: World): Promise<unknown> => publish();
const half = ({ publish, sources }: World): Promise<unknown> => publish({ sources: sources.slice(0, 4) });
const mirror = ({ home }: World): RunOptions => ({ also: [`${home.host}/mirror/all:bullseye`] });

/** By name; the job is the bench's, with small layers. */
export const SITUATIONS: readonly Situation[] = [
  { name: 'mounts work' },
  { name: 'mounts work, `--no-verify`', run: () => ({ verify: false }) },
  { name: 'mounts work, platforms named', run: withPlatforms },
  // Layers as large as the bench's: what is learnt from the first upload must not hold the others back.
  { name: 'mounts refused (202)', home: REFUSED, seed: { layerBytes: 1_100_000 } },
  { name: 'mounts refused (405)', home: { mount: { mode: 'off(405)' } } },
  { name: 'half of the children there', before: half },
  { name: 'half of the children there, mounts refused', home: REFUSED, before: half },
  { name: 'children deleted since', before: deleted },
  { name: 'nothing to do', before: again },
  { name: 'nothing to do, `--no-verify`', before: again, run: () => ({ verify: false }) },
  { name: 'sources in the target repository', run: inOne },
  { name: 'two tags', run: () => ({ tags: ['11'] }) },
  { name: 'two repositories', run: mirror },
  { name: 'two repositories, mounts refused', home: REFUSED, run: mirror },
  { name: 'attested sources', seed: { attested: true } },
  { name: 'attested sources, mounts refused', seed: { attested: true }, home: REFUSED },
  { name: 'attested sources, nothing to do', seed: { attested: true }, before: again },
  { name: 'sources elsewhere', sources: 'away' },
  { name: 'sources elsewhere, nothing to do', sources: 'away', before: again },
  { name: 'sources elsewhere, two repositories', sources: 'away', run: mirror },
  {
    name: 'sources elsewhere, two registries',
    sources: 'away',
    run: ({ third }) => ({ also: [`${third.host}/mirror/all:bullseye`] }),
  },
  { name: 'sources on two registries', sources: 'both' },
  { name: 'blobs behind a redirect', home: STORAGE },
  { name: 'blobs behind a redirect, mounts refused', home: { ...REFUSED, ...STORAGE } },
  {
    name: 'sources elsewhere, tokens without a login',
    only: 'Bearer',
    sources: 'away',
    loggedIn: false,
    home: { auth: { scheme: 'none' } },
    away: { auth: { scheme: 'bearer', anonymousPull: true } },
  },
  {
    name: 'reads public, writes by login',
    only: 'Basic',
    home: { auth: { scheme: 'basic', anonymousPull: true } },
  },
];

function withPlatforms({ images }: World): RunOptions {
  const words = images.map(({ platform: { os, architecture, variant }, repository, tag }) => {
    const platform = [os, architecture, ...(variant === undefined ? [] : [variant])].join('/');
    return `${platform}=${repository}:${tag}`;
  });
  return { sources: words };
}

async function deleted({ publish, home, images }: World): Promise<void> {
  await publish();
  for (const { image } of images) home.deleteManifest('debian/all', image);
}

function inOne({ home, images }: World): RunOptions {
  const copies = images.map(({ repository, image, config, layers }) => {
    for (const digest of [config, ...layers])
      home.putBlob('debian/all', home.blobOf(repository, digest) ?? Buffer.of());
    const manifest = home.manifestOf(repository, image);
    const name = repository.replace('/', '-');
    home.putManifest('debian/all', manifest?.bytes ?? Buffer.of(), manifest?.mediaType ?? '', name);
    return `debian/all:${name}`;
  });
  return { sources: copies };
}

const PASSWORDS: Readonly<Record<Place, string>> = { home: 'pass-home', away: 'pass-away', third: 'pass-third' };

/** What a run cost. */
export type Cost = {
  /** How often it waited for answers. */
  readonly rounds: number;
  /** Most requests at a time. */
  readonly widest: number;
  /** Of all registries. */
  readonly journals: readonly (readonly JournalEntry[])[];
};

/** Plays a situation, in time that goes on from round to round alone, and measures the run that counts. */
export async function measure(situation: Situation, access: Access): Promise<Cost> {
  const rounds = createRounds();
  const start = async (place: Place, changes: ProfileChanges = {}): Promise<RunningRegistry> =>
    startRegistry({
      profile: { ...AUTH[access], ...changes },
      users: [{ name: 'robot', password: PASSWORDS[place] }],
      ...rounds.options,
    });
  const home = await start('home', situation.home);
  const away = await start('away', situation.away);
  const third = await start('third');
  const registries = [home, away, third];
  const passwords = { [home.host]: PASSWORDS.home, [away.host]: PASSWORDS.away, [third.host]: PASSWORDS.third };
  const logins = access === 'open' || situation.loggedIn === false ? {} : { logins: passwords };
  try {
    const images = seedDebian(situation.sources === 'away' ? away : home, situation.seed);
    if (situation.sources === 'both') seedDebian(away, situation.seed);
    const sources = images.map(({ repository, tag }, index) => {
      const elsewhere = situation.sources === 'away' || (situation.sources === 'both' && index > 3);
      return `${(elsewhere ? away : home).host}/${repository}:${tag}`;
    });
    const publish: World['publish'] = ({ sources: given = sources, ...options } = {}) =>
      publishTo(home, 'debian/all:bullseye', given, { clock: frozenClock(), ...logins, ...options });
    const world = { home, away, third, images, sources, publish };
    await situation.before?.(world);
    const run = situation.run?.(world);
    for (const one of registries) one.clearJournal();
    rounds.begin();
    await publish(run);
    return { rounds: rounds.count, widest: rounds.widest, journals: registries.map(({ journal }) => journal) };
  } finally {
    for (const one of registries) await one.close();
  }
}
