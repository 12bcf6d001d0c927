import { quoted } from '../model/quoted.ts';
import { isReference } from './request.ts';
import { usage } from './settings.ts';

/** What the input flags of `publish` parse to. */
export type InputFlags = {
  readonly file?: readonly string[] | undefined;
  readonly var?: readonly string[] | undefined;
  readonly template?: string | undefined;
  readonly platforms?: string | undefined;
  readonly 'digests-dir'?: string | undefined;
  readonly 'from-metadata'?: readonly string[] | undefined;
  readonly 'bake-target'?: readonly string[] | undefined;
  readonly 'digests-repository'?: string | undefined;
  readonly tag?: readonly string[] | undefined;
};

type Flag = keyof InputFlags;

/** Flags that bring images to the one list of the command line. */
const IMAGES: readonly Flag[] = ['template', 'digests-dir', 'from-metadata'];

/** Flags that mean nothing without another one. */
const NEEDS: readonly (readonly [Flag, readonly Flag[]])[] = [
  ['var', ['file']],
  ['platforms', ['template']],
  ['template', ['platforms']],
  ['bake-target', ['from-metadata']],
  ['digests-repository', ['digests-dir', 'from-metadata']],
];

/**
 * Refuses what cannot be meant together, before any file is read.
 *
 * @throws PublishError `USAGE_INVALID`
 */
export function checkInputs(target: string | undefined, sources: readonly string[], flags: InputFlags): void {
  const given = (flag: Flag) => flags[flag] !== undefined;
  if (given('file')) {
    const other = [...IMAGES, 'platforms', 'bake-target', 'digests-repository'] as const;
    const clash = other.find(given);
    if (clash !== undefined) {
      throw usage(
        `--file and --${clash} cannot be used together`,
        'Name the images in the spec file, or publish one list: TARGET with the other flag.',
      );
    }
    if (target !== undefined) {
      throw usage(
        'with --file there is no TARGET and no SOURCE: the spec file names them',
        'Leave them out. For another tag add --tag; for another spec file write -f again.',
      );
    }
  }
  for (const word of [...(target === undefined ? [] : [target]), ...sources]) refuseFile(word);
  for (const [flag, needed] of NEEDS) {
    if (!given(flag) || needed.some(given)) continue;
    const names = needed.map((name) => `--${name}`).join(' or ');
    const hint =
      flag === 'platforms'
        ? 'To take only images of some platforms write --platform.'
        : `Add ${names}, or leave it out.`;
    throw usage(`--${flag} needs ${names}`, hint);
  }
  const stdin = [...(flags.file ?? []), ...(flags['from-metadata'] ?? [])].filter((path) => path === '-').length;
  if (stdin > 1) throw usage('standard input can be read once only', 'Name a file for all but one -.');
  if (given('file') || given('from-metadata')) return;
  const missing = [
    ...(target === undefined ? ['TARGET'] : []),
    ...(sources.length > 0 || IMAGES.some(given) ? [] : ['SOURCE']),
  ];
  if (missing.length === 0) return;
  const images = IMAGES.find(given);
  // As in `imagetools create -t TARGET SOURCE`, where the only source was taken for TARGET.
  if (images === undefined && flags.tag?.some(isReference) === true) {
    throw usage(
      `missing argument ${missing.join(', ')}`,
      'TARGET comes first: publish TARGET SOURCE...; -t is for further tags.',
    );
  }
  const hint =
    images === undefined
      ? 'Write TARGET SOURCE..., or -f SPEC. Run manifest-publish publish --help.'
      : `TARGET is the first argument: manifest-publish publish TARGET --${images} ${flags[images]}`;
  throw usage(`missing argument ${missing.join(', ')}`, hint);
}

/** A spec file without -f is a name of Docker Hub like any other, and would be asked for there. */
function refuseFile(word: string): void {
  const name = word.slice(word.indexOf('=') + 1);
  if (/[/:@]/.test(name) || !/\.(?:ya?ml|json)$/i.test(name)) return;
  throw usage(
    `${quoted(name)} looks like a file, not like an image`,
    `Write -f ${name} for a spec file, --from-metadata ${name} for one of docker buildx; an image of that name is docker.io/library/${name}.`,
  );
}
