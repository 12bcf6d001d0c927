import { PROFILES } from '../src/registry-server/index.ts';
import { bashCompletion } from './completion-bash.ts';
import { fishCompletion } from './completion-fish.ts';
import { zshCompletion } from './completion-zsh.ts';

/** What is read of `oclif.manifest.json`. */
export type CommandManifest = {
  readonly commands: Readonly<
    Record<
      string,
      {
        readonly summary?: string;
        readonly hidden?: boolean;
        readonly args: Readonly<Record<string, ManifestArgument>>;
        readonly flags: Readonly<Record<string, ManifestFlag>>;
      }
    >
  >;
};

type ManifestArgument = {
  readonly name: string;
  readonly multiple?: boolean;
  readonly options?: readonly string[];
  readonly hidden?: boolean;
};

type ManifestFlag = {
  readonly name: string;
  readonly char?: string;
  readonly type: 'boolean' | 'option';
  readonly allowNo?: boolean;
  readonly hidden?: boolean;
  readonly summary?: string;
  readonly description?: string;
  readonly helpValue?: string | readonly string[];
  readonly options?: readonly string[];
};

/** What can stand in one place. `list`: several of the words, with commas between them. */
export type Value =
  | { readonly kind: 'any' | 'file' | 'folder' | 'drafts' }
  | { readonly kind: 'words' | 'list'; readonly words: readonly string[] };

export type CompletedFlag = {
  readonly name: string;
  readonly char: string | undefined;
  /** Undefined: it takes none. */
  readonly value: Value | undefined;
  readonly summary: string;
};

export type CompletedCommand = {
  /** As it is typed: `registry serve`. */
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletedFlag[];
  readonly args: readonly Value[];
  /** The last argument may be repeated. */
  readonly repeats: boolean;
};

/** What the scripts complete. */
export type Completed = {
  readonly commands: readonly CompletedCommand[];
  /** First words of commands of two, and what they are for. */
  readonly topics: ReadonlyMap<string, string>;
  /** Flags that take a value, in every spelling. */
  readonly valued: readonly string[];
};

/** What images are built for most; any other can be typed. */
const PLATFORMS = [
  'linux/amd64',
  'linux/arm64',
  ...['v5', 'v6', 'v7'].map((variant) => `linux/arm/${variant}`),
  ...['386', 'loong64', 'mips64le', 'ppc64le', 'riscv64', 's390x'].map((architecture) => `linux/${architecture}`),
  'windows/amd64',
  'windows/arm64',
];
const parts = (at: number): readonly string[] => [
  ...new Set(PLATFORMS.map((platform) => platform.split('/')[at] ?? '')),
];

/** By the value that the help shows. */
const BY_VALUE: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['FILE', { kind: 'file' }],
  ['SPEC', { kind: 'file' }],
  ['DIR', { kind: 'folder' }],
  ['PLATFORM', { kind: 'words', words: PLATFORMS }],
  ['OS', { kind: 'words', words: parts(0) }],
  ['ARCH', { kind: 'words', words: parts(1) }],
  ['VARIANT', { kind: 'words', words: [...parts(2).filter(Boolean), 'v8'] }],
]);

/** By the name of the flag, where the value that the help shows says too little. */
const BY_FLAG: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['platforms', { kind: 'list', words: PLATFORMS }],
  ['expect-platforms', { kind: 'list', words: PLATFORMS }],
  ['profile', { kind: 'words', words: PROFILES.map(({ name }) => name) }],
]);

/** Commands whose first argument may name a draft. */
const OF_DRAFTS: ReadonlySet<string> = new Set(['create', 'annotate', 'push', 'inspect', 'rm']);

/** The scripts that `manifest-publish completion SHELL` prints, made from `oclif.manifest.json`. */
export function completionScripts(manifest: CommandManifest): Readonly<Record<'bash' | 'zsh' | 'fish', string>> {
  const completed = read(manifest);
  return { bash: bashCompletion(completed), zsh: zshCompletion(completed), fish: fishCompletion(completed) };
}

function read({ commands }: CommandManifest): Completed {
  const shown = Object.entries(commands)
    .filter(([, { hidden }]) => hidden !== true)
    .map(([id, { summary = '', args, flags }]): CompletedCommand => {
      const taken = Object.values(args).filter(({ hidden }) => hidden !== true);
      return {
        name: id.replaceAll(':', ' '),
        summary: firstSentence(summary),
        flags: Object.values(flags)
          .filter(({ hidden }) => hidden !== true)
          .flatMap(completedFlags),
        args: taken.map((argument, at) => argumentValue(id, argument, at)),
        repeats: taken.at(-1)?.multiple === true,
      };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const topics = new Map<string, string>();
  for (const { name, summary } of shown) {
    const [first = '', second] = name.split(' ');
    if (second !== undefined) topics.set(first, topics.has(first) ? 'Several commands.' : summary);
  }
  return { commands: shown, topics, valued: valuedFlags(shown) };
}

function completedFlags(flag: ManifestFlag): readonly CompletedFlag[] {
  const summary = firstSentence(flag.summary ?? flag.description ?? '');
  const value = flag.type === 'option' ? flagValue(flag) : undefined;
  const own: CompletedFlag = { name: flag.name, char: flag.char, value, summary };
  return flag.allowNo === true ? [own, { ...own, name: `no-${flag.name}`, char: undefined }] : [own];
}

function flagValue({ name, helpValue, options }: ManifestFlag): Value {
  if (options !== undefined) return { kind: 'words', words: options };
  const known = BY_FLAG.get(name);
  if (known !== undefined) return known;
  const text = typeof helpValue === 'string' ? helpValue : '';
  // `auto|oci|docker`, and not `TAG|REF`.
  if (/^[a-z]+(?:\|[a-z]+)*$/.test(text)) return { kind: 'words', words: text.split('|') };
  return BY_VALUE.get(text) ?? { kind: 'any' };
}

function argumentValue(id: string, { name, options }: ManifestArgument, at: number): Value {
  if (options !== undefined) return { kind: 'words', words: options };
  if (at === 0 && OF_DRAFTS.has(id)) return { kind: 'drafts' };
  return name === 'dir' || name === 'folder' ? { kind: 'folder' } : { kind: 'any' };
}

/** A shell must know which flags are followed by a value before it knows the command: they may stand before it. */
function valuedFlags(commands: readonly CompletedCommand[]): readonly string[] {
  const kinds = new Map<string, boolean>();
  for (const { name, char, value } of commands.flatMap(({ flags }) => flags)) {
    for (const spelling of [`--${name}`, ...(char === undefined ? [] : [`-${char}`])]) {
      const takes = value !== undefined;
      if ((kinds.get(spelling) ?? takes) !== takes) throw new Error(`${spelling} takes a value in some commands only`);
      kinds.set(spelling, takes);
    }
  }
  return [...kinds].flatMap(([spelling, takes]) => (takes ? [spelling] : []));
}

/** Up to the first full stop or bracket; a shell shows one line of it. */
function firstSentence(text: string): string {
  const [first = ''] = text.split(/\.(?:\s|$)|[:;]\s|\s\[/);
  return first.replace(/[^ -~]|['"\\`$]/g, '');
}
