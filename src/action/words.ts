import { settingsOfFlags } from '../cli/publish-flags.ts';
import type { InputFlags } from '../cli/publish-usage.ts';
import { firstTarget, furtherTag, isReference, type RequestSettings } from '../cli/request.ts';
import { usage } from '../cli/settings.ts';
import { PublishError } from '../errors.ts';
import { formatReference, isLayoutHost, repositoryName } from '../model/reference.ts';
import type { ActionInputs, InputName } from './inputs.ts';

/** The inputs as the command line would say them. */
export type ActionWords = {
  readonly words: {
    readonly target: string | undefined;
    readonly sources: readonly string[];
    readonly tags: readonly string[];
    readonly certain: true;
  };
  readonly flags: InputFlags;
  readonly settings: RequestSettings;
};

/** No flag at all, for {@link settingsOfFlags}. */
const NO_FLAGS = {
  'force-platform': false,
  'foreign-layers': false,
  'dry-run': false,
  'no-verify': false,
  'no-clobber': false,
  amend: false,
  'ignore-missing': false,
} as const;

/**
 * What is to be published. Nothing is read from files yet.
 *
 * @throws PublishError that names the input
 */
export function actionWords(inputs: ActionInputs, env: Readonly<Record<string, string | undefined>>): ActionWords {
  checkTogether(inputs);
  const { spec, digestsDir, metadataFiles, platform, expectPlatforms, annotations, dryRun } = inputs;
  const given = <T>(list: readonly T[]) => (list.length === 0 ? undefined : list);
  return {
    words: { ...targetWords(inputs), sources: inputs.sources, certain: true },
    flags: { file: given(spec), 'digests-dir': digestsDir, 'from-metadata': given(metadataFiles) },
    settings: {
      ...naming('platform', () => settingsOfFlags({ ...NO_FLAGS, platform: given(platform) }, env)),
      ...naming('expect-platforms', () =>
        settingsOfFlags({ ...NO_FLAGS, 'expect-platforms': given(expectPlatforms)?.join(',') }, env),
      ),
      ...naming('annotations', () => settingsOfFlags({ ...NO_FLAGS, annotation: given(annotations) }, env)),
      ...(dryRun ? { dryRun } : {}),
    },
  };
}

function checkTogether({ spec, target, tags, sources, digestsDir, metadataFiles }: ActionInputs): void {
  const images = { sources: sources.length > 0, 'digests-dir': digestsDir !== undefined };
  const others = { target: target !== undefined, ...images, 'metadata-files': metadataFiles.length > 0 };
  if (spec.length > 0) {
    const clash = Object.entries(others).find(([, isGiven]) => isGiven)?.[0];
    if (clash === undefined) return;
    throw usage(`inputs spec and ${clash} cannot be used together`, 'Name targets and sources in the spec file.');
  }
  if (target === undefined && metadataFiles.length === 0 && !tags.some(isReference)) {
    throw usage(
      tags.length === 0 ? 'input target is missing' : 'input target is missing, and tags holds no whole reference',
      'Write target: HOST/REPOSITORY:TAG, or hand the tags of docker/metadata-action to tags.',
    );
  }
  if (![...Object.values(images), metadataFiles.length > 0].some(Boolean)) {
    throw usage('there is no source', 'Name images with the input sources, digests-dir or metadata-files.');
  }
}

/** TARGET and further tags. A target without a tag is the repository of the tags; `latest` is never meant by leaving it out. */
function targetWords({ target, tags, metadataFiles }: ActionInputs): {
  readonly target: string | undefined;
  readonly tags: readonly string[];
} {
  if (target === undefined) {
    const first = tags.find(isReference);
    return { target: first, tags: tags.filter((tag) => tag !== first) };
  }
  const base = naming('target', () => firstTarget(target, []));
  const all = naming('tags', () => tags.map((tag) => furtherTag(tag, base)));
  if (/:[^/]*$/.test(target) || (tags.length === 0 && isLayoutHost(base.host))) return { target, tags };
  if (tags.length === 0) {
    // As the output of another step is that was misspelt: nobody asked for latest.
    throw usage(
      `input target has no tag, and input tags is empty: ${target}`,
      metadataFiles.length > 0
        ? 'Leave target out where metadata-files brings tags, else write it with its tag.'
        : `Write target with its tag, ${target}:latest if that is the one.`,
    );
  }
  const first = all.find((reference) => repositoryName(reference) === repositoryName(base));
  if (first === undefined) {
    throw usage(
      `none of the input tags is in the repository of the input target, ${repositoryName(base)}`,
      'Write target with its tag, or leave it out.',
    );
  }
  const names = all.map(formatReference);
  const name = formatReference(first);
  return { target: name, tags: names.filter((other) => other !== name) };
}

/** Errors of the work say which input they are about. */
function naming<T>(name: InputName, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    const { message, hint } = inInputWords(error);
    const start = `input ${name}`;
    throw error.with({ message: message.startsWith(start) ? message : `${start}: ${message}`, hint });
  }
}

const NAMES: Readonly<Record<string, InputName>> = {
  '--tag': 'tags',
  '-t': 'tags',
  '--file': 'spec',
  '-f': 'spec',
  '--digests-dir': 'digests-dir',
  '--from-metadata': 'metadata-files',
  '--platform': 'platform',
  '--expect-platforms': 'expect-platforms',
  '--annotation': 'annotations',
  '--dry-run': 'dry-run',
  '--config': 'config',
  '--jobs': 'jobs',
};

/**
 * The failure with the names of inputs, or keys of `config`, where the command line has flags. Hints are ours; what
 * others said stays.
 */
export function inInputWords(error: PublishError): PublishError {
  const translated = (text: string) =>
    text
      .replace(/\bAdd --type oci\b/, 'Write type: oci into the file of input config')
      .replace(/(?<![\w-])(--?[a-z][a-z-]*)(=?)/g, (flag, name: string, equals: string) => {
        const input = NAMES[name];
        return input === undefined ? flag : equals === '' ? `input ${input}` : `${input}: `;
      });
  const hint = translated(error.hint);
  if (error.side === 'local') return error.with({ message: translated(error.message), hint });
  return hint === error.hint ? error : error.with({ hint });
}
