import { usage } from './settings.ts';

/** What an annotation can be of: the index, or one entry of it. */
export type AnnotationPlace = 'index' | 'descriptor';

/** Places that buildx names in front of an annotation, with a platform perhaps: `manifest-descriptor[linux/amd64]:`. */
const PLACE = /^(index|manifest|descriptor|index-descriptor|manifest-descriptor)(?:\[[^\]=]*\])?:/;

/**
 * Reads `[PLACE:]KEY=VALUE`. Values may be empty and may hold anything; of a key that is given twice the last value
 * counts.
 *
 * @param place the one that the command can write to, which need not be named
 * @throws PublishError `USAGE_INVALID`
 */
export function annotations(texts: readonly string[], place: AnnotationPlace): Readonly<Record<string, string>> {
  return Object.fromEntries(texts.map((text) => annotation(text, place)));
}

function annotation(text: string, place: AnnotationPlace): readonly [string, string] {
  const named = PLACE.exec(text);
  if (named !== null && named[1] !== place) {
    throw usage(
      `--annotation cannot annotate the ${named[1]}`,
      place === 'index'
        ? 'Write index:KEY=VALUE, or KEY=VALUE, for the index.'
        : 'Write KEY=VALUE for the entry, and push --annotation KEY=VALUE for the index.',
    );
  }
  const pair = named === null ? text : text.slice(named[0].length);
  const equals = pair.indexOf('=');
  if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
  throw usage(
    '--annotation must be KEY=VALUE',
    'Write for example --annotation org.opencontainers.image.source=https://example.com/app.',
  );
}
