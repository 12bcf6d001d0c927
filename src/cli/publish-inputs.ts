import type { Config } from '../config/config.ts';
import { parsePlatform } from '../model/platform.ts';
import { formatReference, parseReference, type Reference } from '../model/reference.ts';
import type { EntryAnnotations, PublishRequest, SourceRequest } from '../publish/request.ts';
import { parseSource } from '../publish/source.ts';
import { type InputText, type InputWorld, readFolder, readInput } from './input-files.ts';
import { itemsOf } from './publish-flags.ts';
import type { InputFlags } from './publish-usage.ts';
import { assembleRequest, firstTarget, furtherTag, type RequestSettings, targetGuard } from './request.ts';
import { usage } from './settings.ts';

/** The lists of a command line. */
export type PublishInput = {
  /** What to publish, with what the configuration adds. */
  readonly requests: (config: Config) => readonly PublishRequest[];
  /** They come from spec files. */
  readonly listing: boolean;
  /** What was left out of the files, for stderr. */
  readonly notes: readonly string[];
};

type Words = {
  readonly target: string | undefined;
  readonly sources: readonly string[];
  readonly tags: readonly string[];
  /** No source can have been meant as a tag, or the other way round. */
  readonly certain?: true;
};

/**
 * Reads everything that the command line names on this machine. Nothing is asked of a registry.
 *
 * @throws PublishError `SPEC_INVALID` with file, line and column, `FILE_FAILED`, `USAGE_INVALID` and what references and
 *   platforms throw
 */
export async function publishInput(
  words: Words,
  flags: InputFlags,
  settings: RequestSettings,
  world: InputWorld,
): Promise<PublishInput> {
  if (flags.file !== undefined) return fromSpecs(flags.file, words.tags, flags.var ?? [], settings, world);
  const { documents, action, notes } = await metadataOf(flags, world);
  const targets = targetsOf(words, action?.targets ?? []);
  const [first] = targets;
  if (first === undefined) {
    throw usage(
      'missing argument TARGET',
      'Write TARGET, or take it from docker/metadata-action: --from-metadata env:DOCKER_METADATA_OUTPUT_JSON.',
    );
  }
  const sources = [
    ...words.sources.map((source) => parseSource(source, first)),
    ...(await templateSources(flags)),
    ...(await digestSources(flags, first)),
    ...(await buildSources(documents, flags, first)),
  ];
  if (sources.length === 0) {
    throw usage(
      'there is no source',
      'Name images: SOURCE..., --digests-dir, --template, or --from-metadata with a file of docker buildx.',
    );
  }
  const said = {
    ...(action === undefined ? settings : underFlags(action, settings)),
    ...targetGuard(words.certain ? [] : words.tags),
  };
  return {
    requests: (config) => [assembleRequest(targets, sources, { ...fromConfig(config), ...said })],
    listing: false,
    notes,
  };
}

async function fromSpecs(
  paths: readonly string[],
  tags: readonly string[],
  words: readonly string[],
  settings: RequestSettings,
  world: InputWorld,
): Promise<PublishInput> {
  const files: InputText[] = [];
  for (const path of paths) files.push(await readInput(path, '--file', world));
  const variables = variablesOf(words, world.env);
  const { readSpecs } = await import('../spec/index.ts');
  const flags = { ...settings, ...(tags.length === 0 ? {} : { tags }) };
  const requests = (config: Config) => {
    const lists = readSpecs(files, { flags, config: fromConfig(config) }, variables);
    if (lists.length > 1 && settings.expectDigest !== undefined) {
      throw usage(
        `--expect-digest is for one list, and the spec files have ${lists.length}`,
        'Write expectDigest into the spec file, or name a file with one list.',
      );
    }
    return lists;
  };
  return { requests, listing: true, notes: [] };
}

/** Only what was named is handed in: a spec file of a pull request must not read the environment of a publisher. */
function variablesOf(words: readonly string[], env: InputWorld['env']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    words.map((word) => {
      const equals = word.indexOf('=');
      const name = equals < 0 ? word : word.slice(0, equals);
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        throw usage('--var must be NAME=VALUE or NAME', 'Write for example --var VERSION=1.2.3.');
      }
      const value = equals < 0 ? env[name] : word.slice(equals + 1);
      if (value === undefined) throw usage(`--var ${name} is not set`, `Write --var ${name}=VALUE, or set ${name}.`);
      return [name, value];
    }),
  );
}

type Action = {
  readonly targets: readonly Reference[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly entryAnnotations: readonly EntryAnnotations[];
  readonly notes: readonly string[];
};

/** The files of `--from-metadata` by what they are; those of docker/metadata-action are joined. */
async function metadataOf(flags: InputFlags, world: InputWorld) {
  const documents: InputText[] = [];
  let action: Action | undefined;
  for (const path of flags['from-metadata'] ?? []) {
    const file = await readInput(path, '--from-metadata', world);
    if (!isMetadataAction(file.text)) {
      documents.push(file);
      continue;
    }
    const { metadataAction } = await import('../spec/index.ts');
    const read = metadataAction(file);
    action = {
      targets: [...(action?.targets ?? []), ...read.targets],
      annotations: { ...action?.annotations, ...read.annotations },
      entryAnnotations: [...(action?.entryAnnotations ?? []), ...read.entryAnnotations],
      notes: [...(action?.notes ?? []), ...read.notes],
    };
  }
  return { documents, action, notes: action?.notes ?? [] };
}

/** `{"tags":[…],"labels":{…}}`; a target of bake that is called `tags` is an object. */
function isMetadataAction(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && 'tags' in value && Array.isArray(value.tags);
  } catch (error) {
    // The reader of the other documents says what is wrong, and where.
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function targetsOf({ target, tags }: Words, fromMetadata: readonly Reference[]): readonly Reference[] {
  const first = target === undefined ? fromMetadata[0] : firstTarget(target, tags);
  if (first === undefined) return [];
  if (target !== undefined && fromMetadata.length > 0 && !/:[^/]*$/.test(target)) {
    throw usage(
      `TARGET has no tag, and --from-metadata brings tags: ${formatReference(first)} would be moved too`,
      'Leave TARGET out, or write it with its tag.',
    );
  }
  return [first, ...tags.map((tag) => furtherTag(tag, first)), ...fromMetadata];
}

async function templateSources({ template, platforms }: InputFlags): Promise<readonly SourceRequest[]> {
  if (template === undefined) return [];
  const wanted = itemsOf(platforms ?? '').map(parsePlatform);
  if (wanted.length === 0) {
    throw usage('--platforms names no platform', 'Write for example --platforms=linux/amd64,linux/arm64.');
  }
  const { expandTemplate } = await import('../spec/index.ts');
  return expandTemplate(template, wanted);
}

async function digestSources(flags: InputFlags, target: Reference): Promise<readonly SourceRequest[]> {
  const dir = flags['digests-dir'];
  if (dir === undefined) return [];
  const folders = await readFolder(dir, '--digests-dir');
  const { digestsFolder } = await import('../spec/index.ts');
  const where = repositoryOf(flags);
  return folders.flatMap(({ folder, files }) => digestsFolder(files, { folder, target, ...where }));
}

async function buildSources(
  documents: readonly InputText[],
  flags: InputFlags,
  target: Reference,
): Promise<readonly SourceRequest[]> {
  const bakeTargets = flags['bake-target'];
  if (documents.length === 0 && bakeTargets === undefined) return [];
  const { buildxMetadata, isBakeMetadata } = await import('../spec/index.ts');
  if (bakeTargets !== undefined && !documents.some(isBakeMetadata)) {
    const names = (flags['from-metadata'] ?? []).join(', ');
    throw usage(
      `--bake-target is for a file of docker buildx bake, and --from-metadata names none: ${names}`,
      'Leave --bake-target out, or name the file of docker buildx bake --metadata-file.',
    );
  }
  const options = { target, ...repositoryOf(flags), ...(bakeTargets === undefined ? {} : { bakeTargets }) };
  return documents.flatMap((file) => buildxMetadata(file, options));
}

function repositoryOf(flags: InputFlags): { readonly repository?: Reference } {
  const text = flags['digests-repository'];
  return text === undefined ? {} : { repository: parseReference(text) };
}

/** The flags count over what a metadata file says. */
function underFlags(action: Action, settings: RequestSettings): RequestSettings {
  const annotations = { ...action.annotations, ...settings.annotations };
  const entryAnnotations = [...action.entryAnnotations, ...(settings.entryAnnotations ?? [])];
  return { ...settings, annotations, entryAnnotations };
}

function fromConfig({ type, waitForSource, foreignLayers }: Config): RequestSettings {
  return {
    ...(type === undefined ? {} : { type }),
    ...(waitForSource === undefined ? {} : { waitForSource }),
    ...(foreignLayers === undefined ? {} : { foreignLayers }),
  };
}
