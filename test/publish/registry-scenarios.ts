import type {
  JournalEntry,
  ProfileChanges,
  RegistryOptions,
  RunningRegistry,
  SeededImage,
  SeedOptions,
} from '../../src/registry-server/index.ts';
import { findProfile, seedDebian, startRegistry } from '../../src/registry-server/index.ts';
import { requests, writes } from '../helpers/registry.ts';
import { type Lesson, lessonProblems, lessonsOf, logProblems } from './registry-log.ts';
import { type Around, fastClock, type Outcome, runPublish } from './registry-world.ts';

/** How a registry is imitated in the matrix; sizes in bytes. */
export type Setting = {
  readonly profile: string;
  /** Multiplies the limits of the registry and the sizes on which our uploads turn. Default 1/1024. */
  readonly scale?: number;
  /** Default: more than every limit, and one byte more than a whole number of our first chunks. */
  readonly layerBytes?: number;
  /** How much faster than the world its clock runs. Default 10. */
  readonly speed?: number;
  /** Waits from so many ms on are not shortened. Default 1000: they stand for patience with slow answers. */
  readonly hurry?: number;
  readonly tls?: { readonly key: string; readonly cert: string; readonly file: string };
};

/** What one cell came to; `problems` are broken promises, whatever the outcome. */
export type Cell = {
  readonly outcome: 'done' | number;
  readonly message: string;
  readonly problems: readonly string[];
  readonly lessons: readonly Lesson[];
};

const CHUNK = 5 * 1024;
const LAYER = 22 * CHUNK + 1;
const TARGET = 'debian/debian';
const TAG = 'bullseye';

type Seeded = { readonly registry: RunningRegistry; readonly images: readonly SeededImage[]; readonly around: Around };

type Wish = {
  readonly changes?: ProfileChanges;
  readonly users?: RegistryOptions['users'];
  readonly logins?: Around['logins'];
  readonly seed?: SeedOptions;
  /** How many of the eight images are published. */
  readonly count?: number;
  readonly onEntry?: (entry: JournalEntry, clock: Around['clock']) => void;
};

/** Starts the registry, seeds it, and closes it afterwards. */
async function stage<T>(setting: Setting, wish: Wish, use: (seeded: Seeded) => Promise<T>): Promise<T> {
  const { scale = 1 / 1024, layerBytes = LAYER, speed = 10, hurry = 1000, tls } = setting;
  const clock = fastClock(speed, hurry);
  const registry = await startRegistry({
    profile: setting.profile,
    changes: wish.changes ?? {},
    scale,
    ...(wish.users === undefined ? {} : { users: wish.users }),
    ...(tls === undefined ? {} : { tls }),
    onEntry: (entry) => wish.onEntry?.(entry, clock),
    now: clock.registry,
  });
  try {
    const images = seedDebian(registry, { layers: 2, layerBytes, ...wish.seed }).slice(0, wish.count ?? 8);
    const open = registry.profile.auth.scheme === 'none';
    const logins = open ? [] : (wish.logins ?? [{ path: '', name: 'robot' }]);
    const around = { logins, scale, clock, ...(tls === undefined ? {} : { caFile: tls.file }) };
    return await use({ registry, images, around });
  } finally {
    await registry.close();
  }
}

const sources = (images: readonly SeededImage[]) => images.map(({ repository, tag }) => `${repository}:${tag}`);

const run = ({ registry, images, around }: Seeded) => runPublish(registry, `${TARGET}:${TAG}`, sources(images), around);

/** The common end of a cell: what came of it, whether the log is clean, and whether the result can be pulled. */
function judge({ registry, images }: Seeded, outcome: Outcome, more: readonly string[] = []): Cell {
  const lessons = lessonsOf(registry);
  const pulled = outcome.kind === 'done' ? pullProblems(registry, images) : leftBehind(registry);
  return {
    outcome: outcome.kind === 'done' ? 'done' : outcome.exitCode,
    message: outcome.kind === 'done' ? '' : outcome.message,
    problems: [...logProblems(registry), ...pulled, ...more],
    lessons,
  };
}

/** The index names every image, and everything below it is there byte for byte. */
function pullProblems(registry: RunningRegistry, images: readonly SeededImage[]): readonly string[] {
  const index = registry.manifestOf(TARGET, TAG)?.bytes.toString() ?? '';
  return images.flatMap(({ repository, image, config, layers }) => {
    const same = (name: string, a: Buffer | undefined, b: Buffer | undefined): readonly string[] =>
      a !== undefined && b !== undefined && a.equals(b) ? [] : [`${repository}: ${name} is not the source's`];
    return [
      ...(index.includes(image) ? [] : [`${repository} is not in the index`]),
      ...same('manifest', registry.manifestOf(TARGET, image)?.bytes, registry.manifestOf(repository, image)?.bytes),
      ...[config, ...layers].flatMap((digest) =>
        same(digest, registry.blobOf(TARGET, digest), registry.blobOf(repository, digest)),
      ),
    ];
  });
}

function leftBehind(registry: RunningRegistry): readonly string[] {
  return registry.tagOf(TARGET, TAG) === undefined ? [] : ['the run failed, and yet the tag is there'];
}

const COPIED = { mount: { mode: 'ignore' } } as const;

/** Blobs up to here are sent at once, whatever others are learning: 1 MiB, scaled. */
const small = ({ scale = 1 / 1024 }: Setting): number => Math.ceil(1024 * 1024 * scale);

const problem = (broken: boolean, text: string): readonly string[] => (broken ? [text] : []);

/** Scenarios 1 and 7: eight architectures into one reference. Scenario 2 right after it: nothing is sent again. */
export function seedAndAgain(setting: Setting): Promise<{ readonly seed: Cell; readonly again: Cell }> {
  return stage(setting, {}, async (seeded) => {
    const { registry } = seeded;
    const first = await run(seeded);
    const lessons = lessonsOf(registry);
    const seed = judge(seeded, first, lessonProblems(lessons, small(setting)));
    registry.clearJournal();
    seeded.around.clock.jump(registry.profile.manifest.visibleAfterMs);
    const second = await run(seeded);
    const unchanged = second.kind === 'failed' || second.report.lists[0]?.targets[0]?.action === 'unchanged';
    const wrote =
      first.kind === 'done' ? writes(registry).map(({ method, path }) => `wrote again: ${method} ${path}`) : [];
    return {
      seed,
      again: judge(seeded, second, [...wrote, ...problem(!unchanged, 'the tag was not found unchanged')]),
    };
  });
}

/** Scenario 1 where no mount is taken: every blob goes over, and what the registry takes is learnt only once. */
export function copied(setting: Setting): Promise<Cell> {
  return stage(setting, { changes: COPIED }, async (seeded) => {
    const outcome = await run(seeded);
    return judge(seeded, outcome, lessonProblems(lessonsOf(seeded.registry), small(setting)));
  });
}

/** Scenario 3: one blob's mount is answered 202, as ECR does while no manifest of the source names it. */
export function unreferenced(setting: Setting): Promise<Cell> {
  return stage(setting, { count: 2 }, async (seeded) => {
    const { registry, images } = seeded;
    const blob = images[0]?.layers[0] ?? '';
    registry.configure({ mount: { byDigest: { [blob]: 'ignore' } } });
    const outcome = await run(seeded);
    const { mode } = registry.profile.mount;
    const mounting = outcome.kind === 'done' && mode !== 'ignore';
    const mounted = requests(registry, 'mount').filter(({ status }) => status === 201).length;
    return judge(seeded, outcome, problem(mounting && mounted !== 5, `${mounted} of 5 other blobs were mounted`));
  });
}

const READER = { name: 'reader', password: 'secret', access: { 'debian/amd64': 'pull' } } as const;
const WRITER = { name: 'writer', password: 'secret', access: { [TARGET]: 'push' } } as const;

/** Where the registry asks for no login, one is asked for: this scenario is about rights. */
function withRights(setting: Setting, wish: Wish, use: (seeded: Seeded) => Promise<Cell>): Promise<Cell> {
  const { scheme } = findProfile(setting.profile).auth;
  const auth = { anonymousPull: false, scheme: scheme === 'none' ? ('basic' as const) : scheme };
  return stage(setting, { ...wish, users: [READER, WRITER], count: 1, changes: { auth } }, use);
}

/** Scenario 4: two robots, each with rights on one repository. The mount is refused, the bytes are carried over. */
export function rights(setting: Setting): Promise<Cell> {
  const logins = [
    { path: '/debian/amd64', name: 'reader' },
    { path: `/${TARGET}`, name: 'writer' },
  ];
  return withRights(setting, { logins }, async (seeded) => judge(seeded, await run(seeded)));
}

/** Scenario 4, worse: nobody may read the source. It is named, and nothing is written. */
export function unreadable(setting: Setting): Promise<Cell> {
  return withRights(setting, { logins: [{ path: '', name: 'writer' }] }, async (seeded) => {
    const outcome = await run(seeded);
    const named = outcome.kind === 'failed' && `${outcome.message} ${outcome.repository}`.includes('debian/amd64');
    const wrote = writes(seeded.registry).length;
    return judge(seeded, outcome, [
      ...problem(!named, 'the source was not named'),
      ...problem(wrote > 0, `${wrote} writes`),
    ]);
  });
}

/** The query of the closing PUT of a blob. */
const closing = (digest: string) => new RegExp(`digest=${digest.replace(':', '(?::|%3[Aa])')}`);

/** Scenario 5a: the connection breaks when half of a layer has arrived. */
export function half(setting: Setting): Promise<Cell> {
  return stage(setting, { count: 2, changes: COPIED }, async (seeded) => {
    const { registry, images, around } = seeded;
    const layer = images[0]?.layers[0] ?? '';
    const at = (setting.layerBytes ?? LAYER) / 2;
    const reset = (bodyBytes: number) => ({ kind: 'reset', when: { bodyBytes } }) as const;
    registry.addFault({ operation: 'uploadPut', query: closing(layer), action: reset(Math.floor(at)) });
    registry.addFault({ operation: 'uploadPatch', nth: 2, action: reset(Math.floor(200 * 1024 * around.scale)) });
    const outcome = await run(seeded);
    const broke = requests(registry, 'uploadPut', 'uploadPatch').some(({ status }) => status === undefined);
    const reached = requests(registry, 'uploadPut').length > 0;
    return judge(seeded, outcome, problem(reached && !broke, 'no upload was broken'));
  });
}

/**
 * Scenario 5b: every blob is committed and the answer lost. None is committed a second time. Where a blob is seen late,
 * it cannot be told from one that was lost; there only one answer is lost, and that the run ends well is all that counts.
 */
export function lost(setting: Setting): Promise<Cell> {
  const late = findProfile(setting.profile).manifest.visibleAfterMs > 0;
  const changes = late ? COPIED : ({ ...COPIED, upload: { commit: 'loseAnswer' } } as const);
  return stage(setting, { count: 2, changes }, async (seeded) => {
    const { registry, images } = seeded;
    const layers = images.flatMap((image) => image.layers);
    if (late) registry.addFault({ query: closing(layers[0] ?? ''), action: { kind: 'loseAnswer' } });
    const outcome = await run(seeded);
    const unanswered = requests(registry, 'uploadPut').filter(({ status }) => status === undefined);
    const twice = layers.filter((digest) => unanswered.filter(({ query }) => closing(digest).test(query)).length > 1);
    return judge(seeded, outcome, late ? [] : twice.map((digest) => `committed twice: ${digest}`));
  });
}

/** Scenario 5c: the registry takes the token for expired from the first session on, earlier than it had said. */
export function expired(setting: Setting): Promise<Cell> {
  let jumped = false;
  const onEntry: Wish['onEntry'] = ({ operation, status }, clock) => {
    if (jumped || status !== 202 || (operation !== 'uploadPost' && operation !== 'mount')) return;
    jumped = true;
    clock.jump(LONGEST_LIFE);
  };
  return stage(setting, { count: 2, changes: COPIED, onEntry }, async (seeded) => {
    const outcome = await run(seeded);
    const { auth } = seeded.registry.profile;
    const renewed = requests(seeded.registry).some(
      ({ status, authorization }) => status === 401 && authorization === 'bearer',
    );
    const untried = auth.scheme === 'bearer' && jumped && !renewed;
    return judge(seeded, outcome, problem(untried, 'no token had expired'));
  });
}

/** More than any token of the profiles lives, in ms. */
const LONGEST_LIFE = 3_700_000;

/** Scenario 6: one layer is the same in all images, and goes over once. */
export function shared(setting: Setting): Promise<Cell> {
  return stage(setting, { seed: { sharedBase: true } }, async (seeded) => {
    const { registry, images } = seeded;
    const base = images[0]?.layers[0] ?? '';
    const outcome = await run(seeded);
    const mounted = requests(registry, 'mount').filter(
      ({ status, query }) => status === 201 && query.includes(base.slice('sha256:'.length)),
    ).length;
    const stored = requests(registry, 'uploadPut').filter(
      ({ status = 0, query }) => status >= 200 && status < 300 && closing(base).test(query),
    ).length;
    const all = mounted + stored;
    return judge(seeded, outcome, [
      ...problem(outcome.kind === 'done' && all > 1, `the shared layer went over ${all} times`),
      ...lessonProblems(lessonsOf(registry), small(setting)),
    ]);
  });
}

/** Images in Docker's types. Where they are refused, the type is named. */
export function docker(setting: Setting): Promise<Cell> {
  return stage(setting, { count: 2, seed: { docker: true } }, async (seeded) => {
    const outcome = await run(seeded);
    const named = outcome.kind === 'done' || outcome.message.includes('application/vnd.docker.');
    const typed = seeded.registry.profile.manifest.types === 'ociOnly415';
    return judge(seeded, outcome, problem(typed && !named, 'the refused type was not named'));
  });
}

/** The target repository does not exist. */
export function absent(setting: Setting): Promise<Cell> {
  return stage(setting, { count: 2 }, async (seeded) => {
    const { registry, images, around } = seeded;
    const outcome = await runPublish(registry, `debian/new:${TAG}`, sources(images), around);
    const named = outcome.kind === 'done' || `${outcome.message} ${outcome.repository}`.includes('debian/new');
    return {
      outcome: outcome.kind === 'done' ? 'done' : outcome.exitCode,
      message: outcome.kind === 'done' ? '' : outcome.message,
      problems: [...logProblems(registry), ...problem(!named, 'the repository was not named')],
      lessons: [],
    };
  });
}
