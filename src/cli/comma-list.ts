import { usage } from './settings.ts';

/** A field in quotes, which a doubled quote stands in for, or one without any; then a comma or the end. */
const FIELD = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;

/**
 * The items of a list with commas as docker's flags take it, which is a line of CSV: `a,"b,c","d""e"`.
 *
 * @throws PublishError `USAGE_INVALID` for a quote out of place
 * @see https://pkg.go.dev/github.com/spf13/pflag#FlagSet.StringSlice
 */
export function commaList(text: string, flag: string): readonly string[] {
  const items: string[] = [];
  const field = new RegExp(FIELD);
  for (let more = text !== ''; more; ) {
    const [, inQuotes, plain = '', end] = field.exec(text) ?? [];
    if (end === undefined) throw usage(`${flag} has a quote out of place`, `Write for example ${flag} win32k,other.`);
    items.push(inQuotes?.replaceAll('""', '"') ?? plain);
    more = end === ',';
  }
  return items;
}
