import { parsePlatform } from '../model/platform.ts';
import type { EntryAnnotations } from '../publish/request.ts';
import { usage } from './settings.ts';
import { createdFrom } from './source-date.ts';

/** What an annotation can be of: the index, or one entry of it. */
export type AnnotationPlace = 'index' | 'descriptor';

/** Places that buildx names in front of an annotation, with a platform perhaps: `manifest-descriptor[linux/amd64]:`. */
const PLACE = /^((?:index-descriptor|manifest-descriptor|index|manifest|descriptor)(?:,[a-z-]+)*)(?:\[([^\]=]*)\])?:/;

/** What stands before a colon and is no key, which has a dot: a place that was mistyped would become part of the key. */
const ALMOST_PLACE = /^([a-z,-]*(?:\[[^=]*?)?):[^=]*=/i;

/** The one annotation that can take its value from the environment, as `docker build --build-arg NAME` does. */
const CREATED = 'org.opencontainers.image.created';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads `[PLACE:]KEY=VALUE`. Values may be empty and may hold anything; of a key that is given twice the last value
 * counts.
 *
 * @param place the one that the command can write to, which need not be named
 * @throws PublishError `USAGE_INVALID`
 */
export function annotations(
  texts: readonly string[],
  place: AnnotationPlace,
  env: Environment = {},
): Readonly<Record<string, string>> {
  const pairs = texts.map((text) => {
    const { places, platform, pair } = split(text);
    const wrong = places.find((named) => placeOf(named) !== place);
    if (wrong !== undefined || platform !== undefined) {
      throw usage(
        `--annotation cannot annotate the ${wrong ?? `${place} of a platform`}`,
        place === 'index'
          ? 'Write index:KEY=VALUE, or KEY=VALUE, for the index.'
          : 'Write KEY=VALUE for the entry, and push --annotation KEY=VALUE for the index.',
      );
    }
    return keyAndValue(pair, env);
  });
  return Object.fromEntries(pairs);
}

/** Annotations of the index, and of its entries. */
export type PlacedAnnotations = {
  readonly index: Readonly<Record<string, string>>;
  readonly entries: readonly EntryAnnotations[];
};

/**
 * Reads `[PLACES[PLATFORM]:]KEY=VALUE` with PLACES `index`, `descriptor`, or both with a comma between them, as buildx
 * does; its `manifest-descriptor` is a descriptor of ours. Without a place the index is annotated.
 *
 * @param env where SOURCE_DATE_EPOCH may stand, for {@link CREATED} without a value
 * @throws PublishError `USAGE_INVALID`, `PLATFORM_INVALID`
 */
export function placedAnnotations(texts: readonly string[], env: Environment): PlacedAnnotations {
  const index: [string, string][] = [];
  const entries: EntryAnnotations[] = [];
  for (const text of texts) {
    const { places, platform, pair } = split(text);
    const [key, value] = keyAndValue(pair, env);
    for (const named of places.length === 0 ? ['index'] : places) {
      const place = placeOf(named);
      if (place === undefined) {
        throw usage(
          `--annotation cannot annotate the ${named}`,
          named === 'manifest'
            ? 'Images keep their bytes: write descriptor[PLATFORM]:KEY=VALUE to annotate their entries of the index.'
            : 'Write index:KEY=VALUE or descriptor[PLATFORM]:KEY=VALUE.',
        );
      }
      if (place === 'index' && platform !== undefined) {
        throw usage('--annotation of an index has no platform', `Write index:${key}=VALUE, without the brackets.`);
      }
      if (place === 'index') index.push([key, value]);
      else {
        const of = platform === undefined ? {} : { platform: parsePlatform(platform) };
        // Object.fromEntries, as a key may be `__proto__`.
        entries.push({ ...of, annotations: Object.fromEntries([[key, value]]) });
      }
    }
  }
  return { index: Object.fromEntries(index), entries };
}

function placeOf(named: string): AnnotationPlace | undefined {
  if (named === 'index') return 'index';
  return named === 'descriptor' || named === 'manifest-descriptor' ? 'descriptor' : undefined;
}

type Split = {
  readonly places: readonly string[];
  readonly platform: string | undefined;
  readonly pair: string;
};

function split(text: string): Split {
  const named = PLACE.exec(text);
  if (named === null) {
    const [, unknown] = ALMOST_PLACE.exec(text) ?? [];
    if (unknown === undefined) return { places: [], platform: undefined, pair: text };
    throw usage(
      `--annotation has no place ${JSON.stringify(unknown)}`,
      `Write index:KEY=VALUE or descriptor[PLATFORM]:KEY=VALUE; a key with a colon is written index:${text}`,
    );
  }
  return { places: named[1]?.split(',') ?? [], platform: named[2], pair: text.slice(named[0].length) };
}

function keyAndValue(pair: string, env: Environment): [string, string] {
  const equals = pair.indexOf('=');
  if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
  if (pair === CREATED) return [CREATED, createdFrom(env)];
  throw usage(
    '--annotation must be KEY=VALUE',
    'Write for example --annotation org.opencontainers.image.source=https://example.com/app.',
  );
}
