import type { Source } from './images.ts';
import { type ConfigPlatform, type Family, type ImagePlan, makeSource, type Writing } from './manifest-images.ts';
import { makeRandom, type Random } from './random.ts';

/** What somebody types after `docker manifest`; `{host}` is the registry and `{list}` the list. */
export type Command = readonly string[];

/** A list that both clients are to make, and the commands that make it and look at it. */
export type Input = {
  readonly name: string;
  readonly kind: Kind;
  readonly sources: readonly Source[];
  /** The list without its host, one for each client. */
  readonly list: { readonly ours: string; readonly docker: string };
  readonly commands: readonly Command[];
  /** Types of the images in the order in which docker lists them. */
  readonly families: readonly Family[];
};

/** An image as a command names it. */
type Named = { readonly plan: ImagePlan; readonly reference: string; readonly annotate?: readonly Command[] };

type Shape = (random: Random, base: string) => Made;

type Made = {
  readonly images: readonly Named[];
  /** Repository of the list; by default one of its own. */
  readonly repository?: string;
  /** Without a tag: what docker calls `latest`. */
  readonly untagged?: boolean;
  /** How many of the images the first `create` names; the rest are amended, one by one. */
  readonly first?: number;
};

/** Platforms that docker lets one annotate, no two of which are the same to anybody. */
const PLATFORMS: readonly ConfigPlatform[] = [
  { architecture: 'amd64', os: 'linux' },
  { architecture: 'arm64', os: 'linux', variant: 'v8' },
  { architecture: 'arm', os: 'linux', variant: 'v5' },
  { architecture: 'arm', os: 'linux', variant: 'v6' },
  { architecture: 'arm', os: 'linux', variant: 'v7' },
  { architecture: '386', os: 'linux' },
  { architecture: 'ppc64le', os: 'linux' },
  { architecture: 'riscv64', os: 'linux' },
  { architecture: 's390x', os: 'linux' },
  { architecture: 'mips64le', os: 'linux' },
  { architecture: 'amd64', os: 'freebsd' },
];

const ARM = PLATFORMS.filter(({ architecture = '' }) => architecture.startsWith('arm'));

/** None of these is in docker's table of what may be annotated; it creates and pushes them all the same. */
const STRANGE: readonly ConfigPlatform[] = [
  { architecture: 'loong64', os: 'linux' },
  { architecture: 'wasm', os: 'wasip1' },
  { architecture: 'arm64', os: 'freebsd' },
  { architecture: 'mipsle', os: 'linux', variant: 'softfloat' },
  { architecture: 'arm64', os: 'windows', 'os.version': '10.0.26100.1' },
  { architecture: 'amd64', os: 'linux', variant: 'v3' },
];

const WINDOWS = ['10.0.14393.6614', '10.0.17763.5576', '10.0.20348.2322', '10.0.26100.3194'];

/** File names sort otherwise than references: docker writes `-` for `:` and `_` for `/`. */
const ODD_REPOSITORIES = ['a-b', 'a.b', 'a_b', 'a__b', 'a/b', 'a--b', 'a0', 'a', 'ab', 'a/b/c', 'a.b/c', 'a_b.c-d'];
const ODD_TAGS = ['1', 'V1', 'v1', '1.0', '1-0', '1_0', '_1', 'latest', 'a.b_c-D', '10', '0'];

const SHAPES = {
  'Docker images': (random, base) => plain(random, base, () => 'docker'),
  'OCI images': (random, base) => plain(random, base, () => 'oci'),
  'Docker and OCI images': (random, base) => plain(random, base, (index) => (index % 2 === 0 ? 'docker' : 'oci'), 2),
  'ARM variants': (random, base) => {
    const family = random.pick(FAMILIES);
    return { images: random.shuffled(ARM).map((platform, index) => own(random, base, index, family, platform)) };
  },
  'Windows beside Linux': (random, base) => {
    const versions = random.shuffled(WINDOWS).slice(0, 1 + random.below(3));
    const features = random.pick([[], ['win32k'], ['win32k', 'b<a&c>']]);
    const windows = versions.map((version): ConfigPlatform => {
      const platform = { architecture: 'amd64', os: 'windows', 'os.version': version };
      return features.length === 0 ? platform : { ...platform, 'os.features': features };
    });
    const linux = random.shuffled(PLATFORMS).slice(0, 2);
    return { images: [...linux, ...windows].map((platform, index) => own(random, base, index, 'docker', platform)) };
  },
  'the same repository': (random, base) => {
    const images = some(random, 2).map((platform, index) => {
      // One of them comes from elsewhere now and then.
      const plan = own(random, base, index, 'docker', platform).plan;
      const repository = random.below(4) === 0 && index > 0 ? plan.repository : `${base}/list`;
      return named({ ...plan, repository, tag: `arch-${index}` });
    });
    return { images, repository: `${base}/list` };
  },
  'digests as sources': (random, base) => {
    const family = random.pick(FAMILIES);
    const images = some(random, 2).map((platform, index) => {
      const { plan, reference } = own(random, base, index, family, platform);
      const { repository, document } = makeSource(plan);
      const digest = index % 2 === 0 ? `{host}/${repository}@${document.digest}` : `${reference}@${document.digest}`;
      return { plan, reference: index % 4 === 3 ? reference : digest };
    });
    return { images };
  },
  'annotations of platforms': (random, base) => {
    const family = random.pick(FAMILIES);
    const images = some(random, 2, 4).map((platform, index) => {
      // What the config says is wrong or missing, as in images that were built without thinking of it.
      const config = random.pick<ConfigPlatform>([{}, { architecture: 'amd64', os: 'linux' }]);
      const image = own(random, base, index, family, config);
      return { ...image, annotate: annotations(random, platform) };
    });
    return { images };
  },
  'configs that tell half of the platform': (random, base) => {
    const family = random.pick(FAMILIES);
    const images = some(random, 1, 4).map((platform, index) => {
      const { os = '', architecture = '', ...rest } = platform;
      const lacksSystem = random.below(2) === 0;
      const config = lacksSystem ? { architecture, ...rest } : { os, ...rest };
      const image = own(random, base, index, family, config);
      return { ...image, annotate: [lacksSystem ? ['--os', os] : ['--arch', architecture]] };
    });
    return { images };
  },
  'unusual names': (random, base) => {
    const family = random.pick(FAMILIES);
    const repositories = random.shuffled(ODD_REPOSITORIES);
    const images = some(random, 4).map((platform, index) => {
      const { plan } = own(random, base, index, family, platform);
      const repository = `${base}/${repositories[index] ?? 'more'}`;
      return named({ ...plan, repository, tag: random.pick(ODD_TAGS) });
    });
    return { images: withoutCollisions(images) };
  },
  'characters that Go escapes': (random, base) => {
    const family = random.pick(FAMILIES);
    const odd = ['<', '>', '&', '<a>&b', '"', '\\', "it's", 'a=b'];
    const images = some(random, 1, 4).map((platform, index) => {
      const { architecture = '', os = '' } = platform;
      const flags = ['--os-version', `1.0${random.pick(odd)}0`, '--os-features', feature(random.pick(odd))];
      return {
        ...own(random, base, index, family, platform),
        annotate: [['--os', os, '--arch', architecture, ...flags]],
      };
    });
    return { images };
  },
  'amended lists': (random, base) => {
    const family = random.pick(FAMILIES);
    const images = some(random, 3, 4).map((platform, index) => {
      const image = own(random, base, index, family, platform);
      return random.below(3) === 0 ? { ...image, annotate: [['--os-features', 'a']] } : image;
    });
    return { images, first: 1 + random.below(2) };
  },
  'Docker documents that others have written': (random, base) => ({ images: foreignHands(random, base, 'docker') }),
  'OCI documents that others have written': (random, base) => ({ images: foreignHands(random, base, 'oci') }),
  'no tags': (random, base) => {
    const images = some(random, 1).map((platform, index) => {
      const { plan } = own(random, base, index, 'docker', platform);
      return { plan: { ...plan, tag: 'latest' }, reference: `{host}/${plan.repository}` };
    });
    return { images, untagged: true };
  },
  'platforms that docker does not know': (random, base) => {
    const family = random.pick(FAMILIES);
    const platforms = random.shuffled(STRANGE).slice(0, 2 + random.below(4));
    return { images: platforms.map((platform, index) => own(random, base, index, family, platform)) };
  },
} as const satisfies Readonly<Record<string, Shape>>;

export type Kind = keyof typeof SHAPES;

const FAMILIES: readonly Family[] = ['docker', 'oci'];
const WRITINGS: readonly Writing[] = ['docker', 'buildkit', 'compact'];

/** The same inputs on every machine: `count` of each kind. */
export function makeInputs(count: number): readonly Input[] {
  return (Object.keys(SHAPES) as Kind[]).flatMap((kind, at) =>
    Array.from({ length: count }, (_, number) => makeInput(kind, `set${at}-${number}`, at * 1000 + number)),
  );
}

function makeInput(kind: Kind, base: string, seed: number): Input {
  const random = makeRandom(seed);
  const shape: Shape = SHAPES[kind];
  const { images, repository = `${base}/list`, untagged = false, first = images.length } = shape(random, base);
  const list = untagged
    ? { ours: `${repository}-by-us`, docker: `${repository}-by-docker` }
    : { ours: `${repository}:by-us`, docker: `${repository}:by-docker` };
  return {
    name: `${kind}, ${number(images.length, 'child', 'children')} (${base})`,
    kind,
    sources: images.map(({ plan }) => makeSource(plan)),
    list,
    commands: commandsFor(images, first, random),
    families: [...images]
      .sort((one, other) => (fileName(one.reference) < fileName(other.reference) ? -1 : 1))
      .map(({ plan }) => plan.family),
  };
}

function commandsFor(images: readonly Named[], first: number, random: Random): readonly Command[] {
  const looked = random.pick(images).reference;
  const purges = random.below(2) === 0;
  // One form of the draft, the other of the list in the registry: a process each is what these tests cost.
  const [local = [], remote = []] = random.shuffled([['--verbose'], []]);
  return [
    ['create', '--insecure', '{list}', ...images.slice(0, first).map(({ reference }) => reference)],
    ...images.slice(0, first).flatMap(annotationsOf),
    // What was annotated before stays when more is amended.
    ...images
      .slice(first)
      .flatMap((image) => [['create', '--insecure', '-a', '{list}', image.reference], ...annotationsOf(image)]),
    ['inspect', ...local, '{list}'],
    ['inspect', ...random.pick([[], ['-v']]), '{list}', looked],
    ...(purges
      ? [['push', '--insecure', '--purge', '{list}']]
      : [
          ['push', '--insecure', '{list}'],
          ['rm', '{list}'],
        ]),
    // Nothing is kept here any more, so these ask the registry.
    ['inspect', '--insecure', ...remote, '{list}'],
    ['inspect', ...random.pick([[], ['-v']]), '--insecure', looked],
  ];
}

function annotationsOf({ reference, annotate = [] }: Named): readonly Command[] {
  return annotate.map((flags) => ['annotate', '{list}', reference, ...flags]);
}

/** One image in a repository of its own for each platform. */
function plain(random: Random, base: string, family: (index: number) => Family, least = 1): Made {
  return { images: some(random, least).map((platform, index) => own(random, base, index, family(index), platform)) };
}

/** Images whose manifests are laid out as no tool of today lays them out. */
function foreignHands(random: Random, base: string, family: Family): readonly Named[] {
  return some(random, 1).map((platform, index) => {
    const { plan } = own(random, base, index, family, platform);
    return named({ ...plan, writing: random.pick(['odd', 'odd', 'compact']) });
  });
}

/** From `least` to 9 platforms, or fewer where each costs commands of its own. */
function some(random: Random, least: number, most = 9): readonly ConfigPlatform[] {
  return random.shuffled(PLATFORMS).slice(0, least + random.below(most + 1 - least));
}

function own(random: Random, base: string, index: number, family: Family, platform: ConfigPlatform): Named {
  const repository = `${base}/${random.pick(['arm', 'x', 'debian', 'deb'])}${index}`;
  return named({ repository, tag: 'bullseye', family, platform, writing: random.pick(WRITINGS) });
}

function named(plan: ImagePlan): Named {
  return { plan, reference: `{host}/${plan.repository}:${plan.tag}` };
}

/** Commands that together say `platform`: at once, or field by field, or with second thoughts. */
function annotations(random: Random, platform: ConfigPlatform): readonly Command[] {
  const { os = '', architecture = '', variant } = platform;
  const last = variant === undefined ? [] : ['--variant', variant];
  const features = random.pick([
    [],
    [['--os-features', 'a,b']],
    [
      ['--os-features', 'b', '--os-features=c'],
      ['--os-features', 'c,a'],
    ],
  ]);
  const version = random.pick([[], [['--os-version', '10.0']], [['--os-version=1'], ['--os-version', '2']]]);
  const whole = [['--os', os, '--arch', architecture, ...last]];
  const halves = [['--arch', architecture, `--os=${os}`], ...(last.length === 0 ? [] : [last])];
  const thoughts = [['--os', 'linux', '--arch', '386'], ...whole];
  return [...random.pick([whole, halves, thoughts]), ...features, ...version];
}

/** docker takes the value for a line of CSV. */
function feature(text: string): string {
  return text.includes('"') ? `"${text.replaceAll('"', '""')}"` : text;
}

/** docker keeps two references whose file names are one as one entry, which is a difference with a test of its own. */
function withoutCollisions(images: readonly Named[]): readonly Named[] {
  const files = images.map(({ reference }) => fileName(reference));
  return images.filter((_, index) => files.indexOf(files[index] ?? '') === index);
}

/** How docker calls the file of an entry; the entries of a list are in the order of these names. */
function fileName(reference: string): string {
  return reference.replaceAll(':', '-').replaceAll('/', '_');
}

function number(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
